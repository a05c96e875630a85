/* SPDX-License-Identifier: MIT */
/*
 * The trigger that works everywhere: a CPU-time timer per thread, delivered to it by signal 33
 * (signal_33.c).
 *
 * A timer expires on the scheduler's tick, so its interval is never below the tick, and its first
 * expiry is 1 ns: the tick is the draw, and short threads get their share. A count is one interval;
 * what the kernel merged (overrun) is kept apart, being right as a total and wrong as a place.
 *
 * Timers do not survive fork (children) nor exec, but do survive their thread: thread_stop()
 * deletes. Where the recorder is gone each thread disarms its own timer at a tick.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/guard/agent.h"
#include "agent/sources/signal_33.h"
#include "agent/sources/source.h"

static void disarm(const struct slot *slot)
{
	const struct itimerspec never = {0};

	syscall(SYS_timer_settime, slot->timer, 0, &never, NULL);
}

void cpu_timer_expired(struct slot *slot, const siginfo_t *info, struct tick *tick)
{
	if (agent_recorder_left(slot, tick->time_ns)) {
		disarm(slot);
		return;
	}
	tick->event = agent.cpu_timer.event;
	tick->overrun = info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0;
	tick->count = agent.cpu_timer.interval_ns;
	capture_tick(&agent.capture, slot, tick);
}

static int process_start(struct capture *capture)
{
	const struct memory_header *header = capture->memory.header;
	struct agent_cpu_timer *state = &agent.cpu_timer;

	for (uint32_t i = 0; i < header->nr_events && i < EVENTS_MAX; i++) {
		if (header->events[i].trigger != TRIGGER_CPU_TIMER)
			continue;
		state->event = i;
		state->interval_ns = header->events[i].period;
		if (state->interval_ns < header->tick_ns)
			state->interval_ns = header->tick_ns;
		return state->interval_ns != 0 ? signal_33_take() : -EINVAL;
	}
	return -ENOENT;
}

static int thread_start(struct capture *capture, struct slot *slot)
{
	struct sigevent event = {0};
	struct itimerspec when = {0};
	int timer;

	(void)capture;
	signal_33_retake(); /* the creator may not have come to it yet */
	slot->timer = -1;
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGNAL_33;
	event.sigev_value.sival_ptr = &agent.cpu_timer;
	event._sigev_un._tid = (pid_t)slot->tid;
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0)
		return -errno; /* EAGAIN: the user's limit of pending signals */
	slot->timer = timer;

	when.it_value.tv_nsec = 1;
	when.it_interval.tv_sec = (time_t)(agent.cpu_timer.interval_ns / 1000000000u);
	when.it_interval.tv_nsec = (long)(agent.cpu_timer.interval_ns % 1000000000u);
	return syscall(SYS_timer_settime, timer, 0, &when, NULL) < 0 ? -errno : 0;
}

static void thread_stop(struct capture *capture, struct slot *slot)
{
	(void)capture;
	if (slot->timer >= 0)
		syscall(SYS_timer_delete, slot->timer);
	slot->timer = -1;
}

const struct source source_cpu_timer = {
	.name = "cpu-timer",
	.trigger = TRIGGER_CPU_TIMER,
	.process_start = process_start,
	.thread_created = signal_33_retake,
	.thread_start = thread_start,
	.thread_stop = thread_stop,
};
