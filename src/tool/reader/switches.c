/* SPDX-License-Identifier: MIT */
/*
 * Switch records, unprivileged and without a signal: a dummy software event with context_switch.
 *
 * One event for each CPU, inherited by the process's threads, so two rings and no system call a
 * thread, however many there are (an event for each thread costs a ring and a descriptor each, and
 * with RLIMIT_MEMLOCK 8 MiB there are 135). A record is written by the CPU on which the thread
 * leaves or comes, before it runs a single instruction of its own: a ring's head that did not move
 * says that nobody of the process came or went there.
 *
 * The rings are read-only and written backwards: the kernel never waits for us and never stops
 * writing, so heads always move. What we copy may be overwritten meanwhile; the head is read
 * again afterwards, and what is no longer inside the ring is left out.
 *
 *      data_head                      seen
 *          |newest ... records ... oldest|   (offsets grow, time goes back)
 *
 * Memory order. The thread's CPU writes the head before the thread writes its memory (the switch
 * itself orders them); the reader reads the memory, then the head (acquire fence between them).
 */
#include "tool/reader/switches.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGES_MOST   32 /* of a ring: 5,400 records; a power of two */
#define PAGE_BYTES   ((size_t)sysconf(_SC_PAGESIZE))
#define THREADS_MOST 64 /* that are there before us: one a thread and CPU is opened */

struct ring {
	int fd;
	const struct perf_event_mmap_page *control;
	const uint8_t *data;
	uint64_t bytes; /* of data, a power of two */
	uint64_t seen;	/* the head up to which all was taken */
};

struct switches {
	struct ring *rings; /* one a CPU */
	size_t nr_rings;
	int *more_fds; /* of threads that were there already: they write to the same rings */
	size_t nr_more_fds;
	uint8_t *copy; /* as long as a ring */
	struct switch_record *records;
	size_t nr_records, room;
};

static struct perf_event_attr attributes(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.inherit = 1,
		.inherit_thread = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.context_switch = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1,
		.watermark = 1,
		.wakeup_watermark = 1u << 30, /* never: we come by the clock */
	};
}

static int open_event(pid_t tid, int cpu, int *ret_fd)
{
	struct perf_event_attr attr = attributes();
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EINVAL) { /* before Linux 5.13: forked children write here, too */
		attr.inherit_thread = 0;
		fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

/* As long a ring as the user's budget of locked memory allows; -EDQUOT: it allows none. */
static int map_ring(struct ring *ring)
{
	for (size_t pages = PAGES_MOST; pages; pages /= 2) {
		void *map =
			mmap(NULL, (pages + 1) * PAGE_BYTES, PROT_READ, MAP_SHARED, ring->fd, 0);

		if (map == MAP_FAILED && errno != EPERM)
			return -errno;
		if (map == MAP_FAILED)
			continue;
		ring->control = map;
		ring->data = (const uint8_t *)map + PAGE_BYTES;
		ring->bytes = pages * PAGE_BYTES;
		return 0;
	}
	return -EDQUOT;
}

static uint64_t head_of(const struct ring *ring)
{
	return atomic_load_explicit((const _Atomic __u64 *)&ring->control->data_head,
				    memory_order_acquire);
}

static int explain(int code, struct errbuf *err)
{
	switch (-code) {
	case EPERM:
	case ENOSYS:
		return errbuf_set(
			err, code,
			"switch records are refused: perf_event_open is forbidden (%s), as "
			"container runtimes do by seccomp; allow the system call",
			code == -EPERM ? "EPERM" : "ENOSYS");
	case EACCES:
		return errbuf_set(err, code,
				  "switch records are refused: kernel.perf_event_paranoid is above "
				  "2, or the program is another user's or not dumpable; root may");
	case EDQUOT:
		return errbuf_set(err, code,
				  "switch records have no buffers: the user's budget of locked "
				  "memory is used up; raise ulimit -l or "
				  "kernel.perf_event_mlock_kb");
	case EMFILE:
		return errbuf_set(err, code,
				  "switch records need a file descriptor a CPU; raise the hard "
				  "limit (ulimit -Hn)");
	default:
		return errbuf_set(err, code, "switch records cannot be had: %s", strerror(-code));
	}
}

static int open_rings(struct switches *switches, pid_t pid)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int code = 0;

	switches->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*switches->rings));
	if (!switches->rings)
		return -ENOMEM;
	for (int cpu = 0; cpu < cpus && !code; cpu++) {
		struct ring *ring = &switches->rings[switches->nr_rings];

		ring->control = NULL;
		code = open_event(pid, cpu, &ring->fd);
		if (code == -ENODEV || code == -ENXIO) { /* offline */
			code = 0;
			continue;
		}
		if (code)
			break;
		switches->nr_rings++;
		code = map_ring(ring);
		if (!code)
			ring->seen = head_of(ring);
	}
	return code ? code : switches->nr_rings ? 0 : -ENODEV;
}

/* One thread that is there already, on all CPUs. What fails leaves it unseen. */
static void add_thread(struct switches *switches, pid_t tid)
{
	for (size_t i = 0; i < switches->nr_rings; i++) {
		int fd;

		if (open_event(tid, (int)i, &fd))
			return;
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, switches->rings[i].fd)) {
			close(fd);
			return;
		}
		switches->more_fds[switches->nr_more_fds++] = fd;
	}
}

/* Threads that a library's constructor made before the agent came. */
static int add_threads(struct switches *switches, pid_t pid)
{
	unsigned int number = 0;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	switches->more_fds = calloc(THREADS_MOST * switches->nr_rings, sizeof(*switches->more_fds));
	if (!switches->more_fds)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && number < THREADS_MOST && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtoul(entry->d_name, NULL, 10);

		if (!tid || tid == pid)
			continue;
		add_thread(switches, tid);
		number++;
	}
	if (tasks)
		closedir(tasks);
	return 0;
}

int switches_open(pid_t pid, struct switches **ret_switches, struct errbuf *err)
{
	struct switches *switches = calloc(1, sizeof(*switches));
	int code;

	if (!switches)
		return errbuf_set(err, -ENOMEM, "out of memory");
	code = open_rings(switches, pid);
	if (!code)
		code = add_threads(switches, pid);
	if (!code) {
		switches->copy = malloc(PAGES_MOST * PAGE_BYTES);
		code = switches->copy ? 0 : -ENOMEM;
	}
	if (code) {
		switches_free(switches);
		return explain(code, err);
	}
	*ret_switches = switches;
	return 0;
}

void switches_free(struct switches *switches)
{
	if (!switches)
		return;
	for (size_t i = 0; i < switches->nr_rings; i++) {
		struct ring *ring = &switches->rings[i];

		if (ring->control)
			munmap((void *)(uintptr_t)ring->control, ring->bytes + PAGE_BYTES);
		close(ring->fd);
	}
	for (size_t i = 0; i < switches->nr_more_fds; i++)
		close(switches->more_fds[i]);
	free(switches->rings);
	free(switches->more_fds);
	free(switches->copy);
	free(switches->records);
	free(switches);
}

/* From @head on, as far as there are records that were not seen; in the order of the ring. */
static size_t copy_ring(const struct ring *ring, uint64_t head, uint8_t *to, bool *ret_lapped)
{
	uint64_t length = ring->seen - head, start = head & (ring->bytes - 1), now, part;

	*ret_lapped = length > ring->bytes;
	if (*ret_lapped)
		length = ring->bytes;
	part = ring->bytes - start < length ? ring->bytes - start : length;
	memcpy(to, ring->data + start, part);
	memcpy(to + part, ring->data, length - part);
	atomic_thread_fence(memory_order_acquire);
	now = head_of(ring);
	/* Written meanwhile, over the oldest ones. */
	if (head - now + length > ring->bytes) {
		*ret_lapped = true;
		length = head - now < ring->bytes ? ring->bytes - (head - now) : 0;
	}
	return length;
}

/* The record at @at, or false: it is of no interest. */
static bool read_record(const struct perf_event_header *header, struct switch_record *ret_record)
{
	const uint8_t *body = (const uint8_t *)(header + 1);
	uint32_t words[4]; /* of a fork or exit: pid, ppid, tid, ptid, then the time */

	if (header->type == PERF_RECORD_SWITCH) {
		bool out = header->misc & PERF_RECORD_MISC_SWITCH_OUT;

		ret_record->kind = !out ? SWITCH_IN
				   : header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
					   ? SWITCH_PREEMPTED
					   : SWITCH_OUT;
		memcpy(&ret_record->tid, body + 4, 4);
		memcpy(&ret_record->time_ns, body + 8, 8);
		return true;
	}
	if (header->type != PERF_RECORD_FORK && header->type != PERF_RECORD_EXIT)
		return false;
	memcpy(words, body, sizeof(words));
	ret_record->kind = header->type == PERF_RECORD_FORK ? SWITCH_FORK : SWITCH_EXIT;
	ret_record->tid = words[2];
	memcpy(&ret_record->time_ns, body + sizeof(words), 8);
	return header->type == PERF_RECORD_EXIT || words[0] == words[1]; /* a thread, no process */
}

/* Go over a copy; @each returns false to end it. A record that is cut, the oldest, ends it. */
static void for_records(const uint8_t *copy, size_t length,
			bool (*each)(void *user, const struct switch_record *record), void *user)
{
	struct perf_event_header header;
	struct switch_record record;

	/* Each turn takes a header or more. */
	for (size_t at = 0; length - at >= sizeof(header); at += header.size) {
		memcpy(&header, copy + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > length - at)
			return;
		if (read_record((const struct perf_event_header *)(copy + at), &record) &&
		    !each(user, &record))
			return;
	}
}

static bool keep(void *user, const struct switch_record *record)
{
	struct switches *switches = user;

	if (switches->nr_records == switches->room) {
		size_t room = switches->room ? 2 * switches->room : 1024;
		struct switch_record *records =
			reallocarray(switches->records, room, sizeof(*records));

		if (!records)
			return false;
		switches->records = records;
		switches->room = room;
	}
	switches->records[switches->nr_records++] = *record;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct switch_record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

size_t switches_take(struct switches *switches, const struct switch_record **ret_records,
		     bool *ret_lapped)
{
	switches->nr_records = 0;
	*ret_lapped = false;
	for (size_t i = 0; i < switches->nr_rings; i++) {
		struct ring *ring = &switches->rings[i];
		uint64_t head = head_of(ring);
		bool lapped = false;

		if (head == ring->seen)
			continue;
		for_records(switches->copy, copy_ring(ring, head, switches->copy, &lapped), keep,
			    switches);
		ring->seen = head;
		*ret_lapped |= lapped;
	}
	if (switches->nr_records)
		qsort(switches->records, switches->nr_records, sizeof(*switches->records), compare);
	*ret_records = switches->records;
	return switches->nr_records;
}

struct search {
	uint32_t tid;
	bool found;
};

static bool is_other(void *user, const struct switch_record *record)
{
	struct search *search = user;

	search->found = record->tid == search->tid;
	return !search->found;
}

bool switches_moved(struct switches *switches, uint32_t tid)
{
	struct search search = {.tid = tid};

	atomic_thread_fence(memory_order_acquire); /* what was read before is read */
	for (size_t i = 0; i < switches->nr_rings && !search.found; i++) {
		const struct ring *ring = &switches->rings[i];
		uint64_t head = head_of(ring);
		bool lapped = false;

		if (head == ring->seen)
			continue;
		for_records(switches->copy, copy_ring(ring, head, switches->copy, &lapped),
			    is_other, &search);
		if (lapped)
			return true;
	}
	return search.found;
}
