/* SPDX-License-Identifier: MIT */
/*
 * Which thread a packet is of. Packets name a pid and a tid; the kernel gives a tid out again
 * after its thread has ended, so among the records of one tid the time decides. A packet whose
 * thread left no record (the recorder did not finish) gets a thread made from its own prefix.
 *
 * Records are sorted by (pid, tid, start). A packet that begins up to CLOCK_SLACK_NS outside of a
 * record is still that record's: a tid does not come back so soon.
 *
 * The leader (pid == tid) is one thread as long as its process lives: exec ends the others and
 * gives it a new image, for which the agent claims another slot, so that there is another record.
 * Its records are made one, and all its packets are that one's.
 */
#include "tool/trace/trace_priv.h"

#include <errno.h>
#include <stdlib.h>

#define CLOCK_SLACK_NS 10000000u
#define WAIT_SLACK_NS  1000000000u

static int compare_key(const struct trace_thread *thread, uint32_t pid, uint32_t tid)
{
	if (thread->pid != pid)
		return thread->pid < pid ? -1 : 1;
	if (thread->tid != tid)
		return thread->tid < tid ? -1 : 1;
	return 0;
}

static int compare_threads(const void *a, const void *b)
{
	const struct trace_thread *x = a, *y = b;
	int order = compare_key(x, y->pid, y->tid);

	return order ? order : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool is_leader(const struct trace_thread *thread)
{
	return thread->pid == thread->tid;
}

/* Add the record of the leader's next image. */
static void add_image(struct trace_thread *leader, const struct trace_thread *image)
{
	if (image->name[0])
		leader->name = image->name;
	if (!image->end_ns || (leader->end_ns && image->end_ns > leader->end_ns))
		leader->end_ns = image->end_ns;
	leader->cpu_ns += image->cpu_ns;
	leader->samples += image->samples;
	leader->lost += image->lost;
	leader->overrun += image->overrun;
	leader->voluntary_switches += image->voluntary_switches;
}

static void join_images(struct trace *trace)
{
	size_t kept = 0;

	for (size_t i = 0; i < trace->nr_threads; i++) {
		const struct trace_thread *thread = &trace->threads[i];
		struct trace_thread *last = kept ? &trace->threads[kept - 1] : NULL;

		if (last && is_leader(thread) && !compare_key(last, thread->pid, thread->tid))
			add_image(last, thread);
		else
			trace->threads[kept++] = *thread;
	}
	trace->nr_threads = kept;
}

int threads_sort(struct reading *reading)
{
	struct trace *trace = reading->trace;

	if (trace->nr_threads > UINT32_MAX / 2)
		return -ENOMEM;
	if (trace->nr_threads)
		qsort(trace->threads, trace->nr_threads, sizeof(*trace->threads), compare_threads);
	join_images(trace);
	reading->nr_recorded_threads = trace->nr_threads;
	for (size_t i = 0; i < trace->nr_threads; i++) {
		reading->recorded_samples += trace->threads[i].samples;
		trace->threads[i].samples = 0; /* what is read is counted, in samples.c */
	}
	return 0;
}

/* The last record of (pid, tid) that starts at or before @time, or the first; or NULL. */
static struct trace_thread *find_record(struct reading *reading, uint32_t pid, uint32_t tid,
					uint64_t time_ns)
{
	struct trace_thread *threads = reading->trace->threads;
	size_t low = 0, high = reading->nr_recorded_threads;

	while (low < high) { /* the first record beyond (pid, tid, time) */
		size_t middle = low + (high - low) / 2;
		int order = compare_key(&threads[middle], pid, tid);

		if (order < 0 || (!order && threads[middle].start_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && !compare_key(&threads[low - 1], pid, tid))
		return &threads[low - 1];
	if (low < reading->nr_recorded_threads && !compare_key(&threads[low], pid, tid))
		return &threads[low];
	return NULL;
}

static bool holds(const struct trace_thread *thread, uint64_t time_ns)
{
	if (time_ns < thread->start_ns)
		return thread->start_ns - time_ns <= CLOCK_SLACK_NS;
	return !thread->end_ns || time_ns <= thread->end_ns ||
	       time_ns - thread->end_ns <= CLOCK_SLACK_NS;
}

/*
 * The record that a wait is of. It may begin before the record, with a thread that was made but did
 * not come to run, and end behind it, in its exit: however busy the machine is.
 */
static struct trace_thread *record_of_wait(struct reading *reading,
					   const struct ctf_packet_prefix *wait)
{
	struct trace_thread *thread =
		find_record(reading, wait->vpid, wait->vtid, wait->timestamp_end);

	if (!thread || (thread->end_ns && wait->timestamp_begin > thread->end_ns + WAIT_SLACK_NS) ||
	    wait->timestamp_end + WAIT_SLACK_NS < thread->start_ns)
		return NULL;
	return thread;
}

static const char *packet_name(struct reading *reading, const struct ctf_packet_prefix *prefix)
{
	size_t length = strnlen(prefix->procname, CTF_PROCNAME_BYTES);
	char *name = arena_copy(reading->arena, prefix->procname, length);

	if (name)
		text_clean(name, length, false);
	return name;
}

static int make_thread(struct reading *reading, const struct ctf_packet_prefix *prefix,
		       uint32_t *ret_thread)
{
	struct trace *trace = reading->trace;
	struct trace_thread thread = {
		.pid = prefix->vpid,
		.tid = prefix->vtid,
		.name = packet_name(reading, prefix),
		.start_ns = prefix->timestamp_begin,
		.end_ns = prefix->timestamp_end,
	};

	if (!thread.name || trace->nr_threads >= UINT32_MAX / 2 ||
	    array_fit((void **)&trace->threads, &reading->room_threads, trace->nr_threads,
		      sizeof(thread)))
		return -ENOMEM;
	*ret_thread = (uint32_t)trace->nr_threads;
	trace->threads[trace->nr_threads++] = thread;
	return 0;
}

/*
 * Make a thread as long as a packet that no record holds; a leader takes the name of its last
 * image. 0 or -ENOMEM.
 */
static int stretch(struct reading *reading, struct trace_thread *thread,
		   const struct ctf_packet_prefix *prefix)
{
	if (prefix->timestamp_begin < thread->start_ns)
		thread->start_ns = prefix->timestamp_begin;
	if (prefix->timestamp_end <= thread->end_ns)
		return 0;
	thread->end_ns = prefix->timestamp_end;
	if (is_leader(thread) && prefix->procname[0]) /* a thread is named when it ends */
		thread->name = packet_name(reading, prefix);
	return thread->name ? 0 : -ENOMEM;
}

int threads_of_packet(struct reading *reading, const struct ctf_packet_prefix *prefix,
		      uint32_t *ret_thread)
{
	struct trace_thread *thread =
		find_record(reading, prefix->vpid, prefix->vtid, prefix->timestamp_begin);
	bool held = thread && holds(thread, prefix->timestamp_begin);
	uint32_t *index;

	if (held || (thread && is_leader(thread))) {
		if (!held && stretch(reading, thread, prefix))
			return -ENOMEM;
		if (!thread->name[0])
			thread->name = packet_name(reading, prefix);
		if (!thread->name)
			return -ENOMEM;
		*ret_thread = (uint32_t)(thread - reading->trace->threads);
		return 0;
	}
	index = map_at(&reading->packet_threads, (uint64_t)prefix->vpid << 32 | prefix->vtid,
		       UINT32_MAX);
	if (!index)
		return -ENOMEM;
	if (*index == UINT32_MAX && make_thread(reading, prefix, index))
		return -ENOMEM;
	if (stretch(reading, &reading->trace->threads[*index], prefix))
		return -ENOMEM;
	*ret_thread = *index;
	return 0;
}

int threads_of_wait(struct reading *reading, const struct ctf_packet_prefix *wait,
		    uint32_t *ret_thread)
{
	struct trace_thread *thread = record_of_wait(reading, wait);

	if (!thread)
		return threads_of_packet(reading, wait, ret_thread);
	*ret_thread = (uint32_t)(thread - reading->trace->threads);
	return 0;
}
