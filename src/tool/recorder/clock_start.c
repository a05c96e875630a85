/* SPDX-License-Identifier: MIT */
/*
 * What a software clock counts of a thread before the thread itself goes on.
 *
 * A thread waits while we open its events (arming.c). A clock starts when the kernel switches to
 * the thread; setting the clock's timer comes after that, which in a virtual machine is an exit to
 * the hypervisor (5 us), and then the way out of the wait. None of it is the program's, and beside
 * a thread of 50 us it is much: first periods begin behind it.
 *
 * Measured on a thread of our own in the same position, with an event that signals nobody.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/perf/perf.h"

#define ROUNDS 9 /* the median counts */

/* A thread that waits as one that is being armed does. */
struct waiting {
	pid_t tid;
	int fd;		 /* the event, while the thread is let go */
	sem_t go, there; /* it may go on; it is about to wait */
	uint64_t counts[ROUNDS];
};

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) && errno == EINTR)
		;
}

static void *wait_and_read(void *argument)
{
	struct waiting *waiting = argument;
	uint64_t first, second;

	waiting->tid = gettid();
	sem_post(&waiting->there);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		wait_for(&waiting->go);
		/* What a reading takes itself is in the second one, but not in the first alone. */
		if (!perf_count(waiting->fd, &first) && !perf_count(waiting->fd, &second) &&
		    first > second - first)
			waiting->counts[i] = first - (second - first);
		sem_post(&waiting->there);
	}
	return NULL;
}

static int open_silent(const struct event_choice *event, pid_t tid)
{
	const struct perf_sampling sampling = {.delivery = PERF_BY_SIGTRAP,
					       .kind = event->perf,
					       .period = event->period,
					       .first_period = event->period};
	struct perf_event_attr attr;

	perf_attr_sampling(&sampling, &attr);
	attr.sigtrap = 0;
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t measure(const struct event_choice *event)
{
	struct waiting waiting = {.fd = -1};
	pthread_t thread;

	if (sem_init(&waiting.go, 0, 0) || sem_init(&waiting.there, 0, 0) ||
	    pthread_create(&thread, NULL, wait_and_read, &waiting))
		return 0;
	wait_for(&waiting.there);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		waiting.fd = open_silent(event, waiting.tid);
		if (waiting.fd >= 0)
			(void)perf_enable(waiting.fd);
		sem_post(&waiting.go);
		wait_for(&waiting.there);
		if (waiting.fd >= 0)
			close(waiting.fd);
	}
	pthread_join(thread, NULL);
	qsort(waiting.counts, ROUNDS, sizeof(waiting.counts[0]), compare);
	return waiting.counts[ROUNDS / 2];
}

void clock_start_measure(struct recorder *recorder)
{
	const struct record_request *request = recorder->request;

	for (size_t i = 0; i < request->nr_events && !recorder->clock_start_ns; i++) {
		const struct event_choice *event = &request->events[i];

		if (event->trigger == TRIGGER_PERF_SIGTRAP && !event->inherited &&
		    perf_is_clock(&event->perf))
			recorder->clock_start_ns = measure(event);
	}
}
