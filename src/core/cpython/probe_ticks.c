/* SPDX-License-Identifier: MIT */
/*
 * The other half of the probe: looks from a signal handler, at any instruction of the interpreter,
 * where frames are half pushed and half popped. For tests alone; one thread.
 */
#include <errno.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/cpython/world_for_tests.h"

#define PROBE	   __attribute__((visibility("default")))
#define FRAMES_MAX 1024

struct tick_counts {
	uint64_t ticks;
	uint64_t unreadable; /* walks that did not reach the root */
	uint64_t wrong_root; /* walks that reached another root than the first one did */
	uint64_t wrong_code; /* frames whose code object the walk took and the reading refused */
	uint64_t faults;     /* loads that faulted and went on */
};

PROBE int probe_ticks_start(int period_us);
PROBE void probe_ticks_stop(void);
PROBE uint64_t probe_ticks_count(int which);

static struct ticking {
	struct cpython cpython;
	struct cpython_frame frames[FRAMES_MAX];
	struct tick_counts counts;
	uint64_t root; /* identity of the outermost code object */
} ticking;

static void read_frames(size_t nr_frames, enum cpython_end end)
{
	struct cpython_file_memo memo = {0};
	uint64_t identity = 0;

	for (size_t i = 0; i < nr_frames; i++) {
		identity =
			cpython_identify(&ticking.cpython, ticking.frames[i].code_address, &memo);
		if (!identity)
			ticking.counts.wrong_code++;
	}
	if (end != CPYTHON_END_ROOT) {
		ticking.counts.unreadable++;
		return;
	}
	if (!ticking.root)
		ticking.root = identity;
	ticking.counts.wrong_root += ticking.root != identity;
}

static void on_tick(int signal_number, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	enum cpython_end end;
	uint64_t state;
	size_t nr_frames;
	bool holds_lock;

	(void)signal_number;
	(void)info;
	(void)context;
	state = cpython_thread_state(&ticking.cpython, (uint32_t)gettid(), &holds_lock);
	nr_frames = cpython_walk(&ticking.cpython, state, ticking.frames, FRAMES_MAX, &end);
	read_frames(nr_frames, end);
	ticking.counts.ticks++;
	errno = saved_errno;
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
	ticking.counts.faults++;
	world_on_fault(signal_number, info, context);
}

static int set_period(int period_us)
{
	const struct itimerval period = {.it_interval.tv_usec = period_us,
					 .it_value.tv_usec = period_us};

	return setitimer(ITIMER_REAL, &period, NULL);
}

PROBE int probe_ticks_start(int period_us)
{
	struct sigaction tick = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int rc = cpython_find(&ticking.cpython, NULL);

	if (rc)
		return rc;
	sigaction(SIGALRM, &tick, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	return set_period(period_us);
}

PROBE void probe_ticks_stop(void)
{
	set_period(0);
}

/* @which: the index of a word in struct tick_counts. */
PROBE uint64_t probe_ticks_count(int which)
{
	return ((const volatile uint64_t *)&ticking.counts)[which];
}
