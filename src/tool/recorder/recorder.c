/* SPDX-License-Identifier: MIT */
/*
 * The order of things.
 *
 *   directory, memory, metadata, manifest (complete: false), sockets
 *   fork and exec COMMAND; the service thread; wait: hellos, signals, --delay and --duration
 *   COMMAND is dead, but a zombie: its threads' last packets, records, counts from /proc
 *   manifest (complete: true); reap
 *
 * When --duration is over all but the reaping is done as far as it can be (window.c), and again at
 * the end.
 *
 * Nothing of the user's is touched before the command is known to exist.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/draw.h"

#define PREFAULT_PAGES 2 /* of each region: the start-up touches no more */

_Static_assert(RECORD_MEMORY_MIN == MEMORY_BYTES_MIN, "told to users");
_Static_assert(RECORD_MEMORY_DEFAULT == MEMORY_BYTES_DEFAULT, "told to users");

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void note(struct recorder *recorder, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	if (recorder->nr_notes == NOTES_MAX)
		return;
	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	for (unsigned int i = 0; i < recorder->nr_notes; i++) {
		if (!strcmp(recorder->notes[i], text)) {
			free(text);
			return;
		}
	}
	recorder->notes[recorder->nr_notes++] = text;
}

/* CLOCK_REALTIME - CLOCK_MONOTONIC, the best of a few readings. */
static int64_t clock_offset(void)
{
	uint64_t best = UINT64_MAX;
	int64_t offset = 0;

	for (int i = 0; i < 4; i++) {
		uint64_t before = now_ns(), after;
		struct timespec real;

		clock_gettime(CLOCK_REALTIME, &real);
		after = now_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		offset = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec -
			 (int64_t)(before + best / 2);
	}
	return offset;
}

static void put_hex(char *to, size_t room, const uint8_t *bytes, size_t number)
{
	for (size_t i = 0; i < number && 2 * i + 2 < room; i++)
		snprintf(to + 2 * i, room - 2 * i, "%02x", bytes[i]);
}

static int draw_identity(struct recorder *recorder, struct errbuf *err)
{
	uint8_t bytes[16 + 16 + 8 + 8];
	char name[17];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return errbuf_set(err, -EIO, "Cannot get random bytes: %s", strerror(errno));
	memcpy(recorder->uuid, bytes, 16);
	recorder->uuid[6] = (uint8_t)((recorder->uuid[6] & 0x0f) | 0x40); /* RFC 4122, random */
	recorder->uuid[8] = (uint8_t)((recorder->uuid[8] & 0x3f) | 0x80);
	put_hex(recorder->secret, sizeof(recorder->secret), bytes + 16, 16);
	put_hex(name, sizeof(name), bytes + 32, 8);
	snprintf(recorder->abstract_name, sizeof(recorder->abstract_name), "pathprof-%s", name);
	memcpy(&recorder->seed, bytes + 40, 8);
	recorder->seed &= RECORD_SEED_MAX;
	if (recorder->request->seed_is_given)
		recorder->seed = recorder->request->seed;
	recorder->random = draw_seed(recorder->seed, 0);
	return 0;
}

/* The headlines come first: what a reader must know before all else. */
static void note_events(struct recorder *recorder)
{
	const struct record_request *request = recorder->request;

	for (size_t i = 0; i < request->nr_events; i++) {
		for (unsigned int n = 0; n < request->events[i].nr_headlines; n++)
			note(recorder, "%s", request->events[i].headlines[n]);
	}
	recorder->nr_headlines = recorder->nr_notes;
	for (size_t i = 0; i < request->nr_events; i++) {
		for (unsigned int n = 0; n < request->events[i].nr_notes; n++)
			if (!request->wall_ns ||
			    strncmp(request->events[i].notes[n], "Waiting is not seen", 19) != 0)
				note(recorder, "%s", request->events[i].notes[n]);
	}
}

static void fill_header(struct recorder *recorder)
{
	const struct record_request *request = recorder->request;
	struct memory_header *header = recorder->memory.header;

	header->nr_events = (uint32_t)request->nr_events;
	header->tick_ns = recorder->tick_ns;
	header->only_locked = request->only_locked;
	header->seed = recorder->seed;
	for (size_t i = 0; i < request->nr_events; i++) {
		const struct event_choice *event = &request->events[i];

		header->events[i].period = event->period;
		header->events[i].trigger = event->trigger;
		header->events[i].inherited = event->inherited;
		snprintf(header->events[i].name, sizeof(header->events[i].name), "%s", event->name);
		header->events[i].min_gap_ns = event->min_gap_ns;
		header->events[i].jitter = event->jitter;
	}
	throttle_init(recorder);
	note_events(recorder);
	atomic_store(&header->recording, request->delay_ns ? 0 : 1);
}

/* A limit on the size of files also meets the memory's, which is none on a disk. */
static int create_unlimited(struct recorder *recorder, const struct memory_sizes *sizes,
			    struct errbuf *err)
{
	struct rlimit limit, raised;
	int code;

	getrlimit(RLIMIT_FSIZE, &limit);
	raised = limit;
	raised.rlim_cur = raised.rlim_max;
	setrlimit(RLIMIT_FSIZE, &raised);
	code = memory_create(sizes, &recorder->memory, &recorder->memory_fd, err);
	setrlimit(RLIMIT_FSIZE, &limit);
	if (code == -EFBIG)
		return errbuf_prepend(err, code,
				      "The hard limit of file sizes (ulimit -Hf) is in "
				      "the way: raise it or lower --memory");
	if (code == -ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		return errbuf_prepend(err, code,
				      "The limit of address space (ulimit -v) is in the way: raise "
				      "it or lower --memory");
	if (code == -ENOMEM)
		return errbuf_prepend(err, code, "There is not that much memory: lower --memory");
	return code;
}

static int make_memory(struct recorder *recorder, struct errbuf *err)
{
	struct memory_sizes sizes = memory_sizes_for(recorder->request->memory_bytes);
	int code = create_unlimited(recorder, &sizes, err);

	if (code)
		return code;
	recorder->shadows = calloc(sizes.nr_slots, sizeof(*recorder->shadows));
	recorder->indices = calloc(sizes.nr_packets, sizeof(*recorder->indices));
	recorder->written = calloc(sizes.nr_packets, sizeof(*recorder->written));
	recorder->ended = calloc(sizes.nr_slots, sizeof(*recorder->ended));
	if (!recorder->shadows || !recorder->indices || !recorder->written || !recorder->ended)
		return errbuf_set(err, -ENOMEM,
				  "Out of memory for the tables of the shared memory: lower "
				  "--memory");
	memory_prefault(&recorder->memory, PREFAULT_PAGES);
	fill_header(recorder);
	return 0;
}

/* Everything that must be there before the program runs. */
static int prepare(struct recorder *recorder, struct errbuf *err)
{
	int code;

	launch_prepare(recorder);
	code = draw_identity(recorder, err);
	if (!code)
		code = make_memory(recorder, err);
	/* Not before: what is moved away may cost an older recording. */
	if (!code)
		code = directory_create(recorder->request->directory, &recorder->directory, err);
	if (!code &&
	    definitions_init(&recorder->definitions, recorder->directory.ust_fd, recorder->uuid))
		code = errbuf_set(err, -ENOMEM, "Out of memory");
	if (!code)
		code = metadata_write(recorder, err);
	if (!code)
		code = meet_listen(recorder, err);
	if (!code)
		code = manifest_write(recorder, false, 0, err);
	if (!code)
		clock_start_measure(recorder);
	return code;
}

static void read_exit_status(struct recorder *recorder)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)recorder->root_pid, &info, WEXITED | WNOWAIT))
		return;
	recorder->exit_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void note_what_is_missing(struct recorder *recorder)
{
	const char *name = recorder->request->command[0];

	throttle_note(recorder);
	if (!recorder->agent_came)
		note(recorder,
		     "'%s' did not load the agent, nothing of it was recorded: it is linked "
		     "statically, set-uid, or for another architecture or C library",
		     name);
	else if (!recorder->nr_interpreters && threads_nr_children(recorder) > 0)
		note(recorder,
		     "'%s' is no Python interpreter, and the processes that it started are not "
		     "recorded: record their commands themselves, or start them with exec",
		     name);
	else if (!recorder->nr_interpreters)
		note(recorder, "'%s' is no Python interpreter: samples have no Python frames",
		     name);
}

/* What one event for each thread costs it, beside what handlers do. */
static void note_arming(struct recorder *recorder)
{
	const struct memory_arming *arming = &recorder->memory.header->arming;
	char each[EVENT_TIME_BYTES], longest[EVENT_TIME_BYTES], before[EVENT_TIME_BYTES];
	uint64_t threads = atomic_load(&arming->threads);

	if (!threads)
		return;
	event_time_text(atomic_load(&arming->waited_ns) / threads, each);
	event_time_text(atomic_load(&arming->longest_ns), longest);
	event_time_text(atomic_load(&arming->uncovered_ns), before);
	note(recorder,
	     "%llu thread%s waited %s%s for the recorder to open %s perf events, %s at most; %s of "
	     "CPU time went by before that, in no sample",
	     (unsigned long long)threads, threads == 1 ? "" : "s", each,
	     threads == 1 ? "" : " each", threads == 1 ? "its" : "their", longest, before);
}

/* The program is a zombie. Returns whether all was written. */
static bool finish(struct recorder *recorder, uint64_t *ret_unseen_cpu_ns, struct errbuf *err)
{
	char delay[EVENT_TIME_BYTES];
	bool whole;

	recorder->end_ns = now_ns();
	atomic_store(&recorder->memory.header->closed, 1);
	read_exit_status(recorder);
	waits_finish(recorder);
	drain_end_image(recorder, recorder->end_ns);
	*ret_unseen_cpu_ns = threads_finish(recorder);
	window_settle(recorder);
	meet_late_interpreter(recorder);
	note_what_is_missing(recorder);
	note_arming(recorder);
	if (!recorder->window.begun)
		note(recorder,
		     "Nothing was sampled: '%s' had ended when it was to begin, %s after the start "
		     "(--delay)",
		     recorder->request->command[0],
		     event_time_text(recorder->request->delay_ns, delay));
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		recorder->totals.lost[i] += atomic_load(&recorder->memory.header->lost[i]);
	waits_flush(recorder);
	whole = !definitions_flush(&recorder->definitions) && !recorder->disk_full &&
		!recorder->definitions.dropped;
	if (manifest_write(recorder, whole, *ret_unseen_cpu_ns, err)) {
		note(recorder, "%s", err->text);
		whole = false;
	}
	return whole;
}

static void fill_result(struct recorder *recorder, struct record_result *result)
{
	result->exit_status = recorder->exit_status;
	result->agent_came = recorder->agent_came;
	result->samples = recorder->totals.samples;
	result->nr_threads = recorder->totals.nr_threads;
	result->nr_foreign_threads = recorder->nr_foreign;
	result->nr_children = threads_nr_children(recorder);
	result->bytes = drain_bytes(recorder) + waits_bytes(recorder);
	memcpy(result->lost, recorder->totals.lost, sizeof(result->lost));
	memcpy(result->degraded, recorder->totals.degraded, sizeof(result->degraded));
	memcpy(result->directory, recorder->directory.path, sizeof(result->directory));
	memcpy(result->notes, recorder->notes, sizeof(result->notes));
	result->nr_notes = recorder->nr_notes;
	recorder->nr_notes = 0; /* handed over */
	summary_details(recorder, result);
}

static void release(struct recorder *recorder)
{
	meet_close(recorder);
	waits_release(recorder);
	directory_close(&recorder->directory);
	definitions_release(&recorder->definitions);
	free(recorder->shadows);
	free(recorder->indices);
	free(recorder->written);
	free(recorder->ended);
	for (unsigned int i = 0; i < recorder->nr_notes; i++)
		free(recorder->notes[i]);
	if (recorder->memory.header)
		memory_unmap(&recorder->memory);
	if (recorder->memory_fd >= 0)
		close(recorder->memory_fd);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder);
}

/* From fork to the zombie. */
static int run(struct recorder *recorder, int *ret_not_run, struct errbuf *err)
{
	const struct record_request *request = recorder->request;
	int code = launch_signals(recorder);

	if (code)
		return errbuf_set(err, code, "Cannot block signals: %s", strerror(-code));
	recorder->start_ns = now_ns();
	recorder->window.begun = !request->delay_ns;
	recorder->window.begin_ns = recorder->start_ns;
	code = launch(recorder, ret_not_run, err);
	if (code)
		return code;
	code = service_start(recorder, err);
	if (!code && request->tell && request->announcement)
		request->tell(request->user, request->announcement);
	if (!code)
		code = launch_wait(recorder, err);
	service_stop(recorder);
	return code;
}

static int find_command(const struct record_request *request, int *ret_not_run, struct errbuf *err)
{
	char path[PATH_MAX];
	int code = paths_command(request->command[0], path);

	if (!code)
		return 0;
	*ret_not_run = code == -ENOENT ? 127 : 126;
	return errbuf_set(err, code, "Cannot run '%s': %s", request->command[0],
			  code == -ENOENT ? "not found" : strerror(-code));
}

static struct recorder *recorder_new(const struct record_request *request)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return NULL;
	recorder->request = request;
	recorder->memory_fd = -1;
	recorder->directory.fd = recorder->directory.ust_fd = -1;
	recorder->listen_fds[0] = recorder->listen_fds[1] = -1;
	recorder->tick_ns = perf_tick_ns();
	recorder->start_ns = now_ns();
	recorder->clock_offset_ns = clock_offset();
	pthread_mutex_init(&recorder->lock, NULL);
	return recorder;
}

int recorder_run(const struct record_request *request, struct record_result *ret_result,
		 struct errbuf *err)
{
	struct recorder *recorder = recorder_new(request);
	struct record_result result = {0};
	int code;

	if (!recorder)
		return errbuf_set(err, -ENOMEM, "Out of memory");
	code = paths_agent(recorder->agent, err);
	if (!code)
		code = find_command(request, &result.not_run, err);
	if (!code) {
		code = prepare(recorder, err);
		if (!code)
			code = run(recorder, &result.not_run, err);
		if (code && (!recorder->root_pid || result.not_run)) { /* nothing ran */
			meet_close(recorder);
			if (recorder->directory.fd >= 0)
				directory_discard(&recorder->directory);
		}
	}
	if (!code) {
		result.complete = finish(recorder, &result.unseen_cpu_ns, err);
		fill_result(recorder, &result);
		waitid(P_PID, (id_t)recorder->root_pid, NULL, WEXITED);
	}
	if (code)
		ret_result->not_run = result.not_run;
	else
		*ret_result = result;
	release(recorder);
	return code;
}

void record_result_release(struct record_result *result)
{
	for (unsigned int i = 0; i < result->nr_notes; i++)
		free(result->notes[i]);
	for (unsigned int i = 0; i < result->nr_details; i++)
		free(result->details[i]);
	memset(result, 0, sizeof(*result));
}
