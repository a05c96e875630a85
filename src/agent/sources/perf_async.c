/* SPDX-License-Identifier: MIT */
/*
 * Perf events by signal, for kernels without attr.sigtrap: the way of the paper. One shot each
 * time: an overflow disables the event and sends signal 33 to the thread (signal_33.c); the handler
 * re-arms it as its last act, so that nothing queues, however short the period.
 *
 *   recorder   opens the event for the thread's id: F_SETSIG(33), F_SETOWN_EX to the thread,
 * O_ASYNC thread     takes a duplicate of its own (pidfd_getfd), which the handler re-arms through
 *   signal     si_code POLL_HUP: it is disabled now; POLL_IN: armed once more still
 *              si_fd: the recorder's number, since the recorder set O_ASYNC
 *
 * The one exception to the rule that the target holds no descriptor of ours. Numbers are given
 * from the lowest free one up, so the duplicate has a low one for a moment, about 1 us, before it
 * is a high one; a thread that opens a file in that moment gets a higher number than it would.
 *
 * With jitter (struct memory_event) each period is drawn: at an overflow the event stands still, so
 * that the next period can be set without an occurrence being lost, and its count says what the
 * sample stands for. PERF_EVENT_IOC_PERIOD forgets by how much the overflow came late (tens of
 * cycles): the counts keep it. The first sample stands for the mean, as without jitter: by the
 * first period, which is shorter, threads shorter than a period would show less than their share.
 *
 * Where the user's queue of signals is full the kernel sends a plain SIGIO instead, whose default
 * kills and which does not say from whom it is. So SIGIO is taken as well. One that may be ours
 * re-arms every event of the thread that may have overflowed, and is a sample of none: the final
 * count tells. The program's handler gets it too.
 *
 * A stack of a signal that a raw system call had blocked is not the event's; no flag tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/guard/agent.h"
#include "agent/sources/ask_recorder.h"
#include "agent/sources/signal_33.h"
#include "agent/sources/source.h"
#include "core/base/draw.h"

/* Where our numbers begin: above what programs use, but no table of descriptors of megabytes. */
#define HIGH_NUMBER	  2048
#define HIGH_NUMBER_LIMIT 4096 /* of RLIMIT_NOFILE, for that; below it the limit's last quarter */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#define SYS_pidfd_getfd 438
#endif

static int high_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= HIGH_NUMBER_LIMIT)
		return HIGH_NUMBER;
	return (int)(limit.rlim_cur - limit.rlim_cur / 4);
}

/* @fd under a high number, the low one closed. Raw calls: close() is a cancellation point. */
static int move_high(int fd)
{
	long high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, high_number());
	int error = errno;

	syscall(SYS_close, fd);
	return high < 0 ? -error : (int)high;
}

static int duplicate_of(int recorders_fd)
{
	long fd;

	if (agent.perf_async.recorder < 0)
		return agent.perf_async.recorder;
	fd = syscall(SYS_pidfd_getfd, agent.perf_async.recorder, recorders_fd, 0);
	return fd < 0 ? -errno : move_high((int)fd);
}

static int control(int fd, unsigned long request, const void *argument)
{
	return syscall(SYS_ioctl, fd, request, argument) < 0 ? -errno : 0;
}

static int rearm(int fd)
{
	return control(fd, PERF_EVENT_IOC_REFRESH, (const void *)1);
}

static bool has_first_period(const struct slot *slot, uint32_t event)
{
	return atomic_load_explicit(&slot->first_period, memory_order_relaxed) & 1u << event;
}

static const struct memory_event *described(uint32_t event)
{
	return &agent.capture.memory.header->events[event];
}

/* Is the number still ours? The program may have closed it and used it again. */
static bool is_ours(int fd)
{
	return syscall(SYS_fcntl, fd, F_GETSIG) == SIGNAL_33;
}

static bool read_count(int fd, uint64_t *ret_count)
{
	return syscall(SYS_read, fd, ret_count, sizeof(*ret_count)) == sizeof(*ret_count);
}

/*
 * The period from now on, of an event that stands still: the whole one where it had its first, a
 * drawn one with jitter. Fails where the descriptor is gone: re-arming will say so.
 */
static int set_next_period(struct slot *slot, uint32_t event)
{
	uint64_t period = described(event)->period, jitter = described(event)->jitter;
	int r;

	if (!jitter && !has_first_period(slot, event))
		return 0;
	if (jitter)
		period += draw_below(&slot->random, 2 * jitter + 1) - jitter;
	r = control(slot->own_fds[event], PERF_EVENT_IOC_PERIOD, &period);
	if (r < 0)
		return r;
	slot->first[event] = period;
	atomic_fetch_or_explicit(&slot->first_seen, 1u << event, memory_order_relaxed);
	atomic_fetch_and_explicit(&slot->first_period, ~(1u << event), memory_order_release);
	return 0;
}

/* With jitter: what the sample stands for. Of a descriptor that just proved to be ours. */
static uint64_t counted_since(struct slot *slot, uint32_t event)
{
	uint64_t before = slot->counted[event];

	if (!read_count(slot->own_fds[event], &slot->counted[event]) || before == 0)
		return described(event)->period;
	return slot->counted[event] - before;
}

/* With jitter: has it overflowed since its last sample? Its count tells. */
static bool has_overflowed(const struct slot *slot, uint32_t event, uint64_t count)
{
	return count - slot->counted[event] >= slot->first[event];
}

static void rearm_or_end(struct slot *slot, uint32_t event)
{
	/* The program closed it: no more of this event in this thread. */
	if (rearm(slot->own_fds[event]) < 0) {
		slot->own_fds[event] = -1;
		slot_lose(slot, LOSS_LATE_ARMING, 1);
	}
}

static uint32_t event_of(const struct slot *slot, int recorders_fd)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		if (slot->own_fds[i] >= 0 && slot->event_fds[i] == recorders_fd)
			return i;
	return EVENTS_MAX;
}

/* With jitter: an overflow that on_sigio() took for lost, and whose signal came behind it. */
static bool is_stale(struct slot *slot, uint32_t event)
{
	uint64_t count;

	if (!described(event)->jitter || slot->doubted_at[event] == 0)
		return false;
	slot->doubted_at[event] = 0;
	return is_ours(slot->own_fds[event]) && read_count(slot->own_fds[event], &count) &&
	       !has_overflowed(slot, event, count);
}

void perf_async_overflowed(struct slot *slot, const siginfo_t *info, struct tick *tick)
{
	tick->event = event_of(slot, info->si_fd);
	if (tick->event == EVENTS_MAX || agent_recorder_left(slot, tick->time_ns))
		return; /* of an event that is no more; or for nobody, and so not re-armed */
	if (is_stale(slot, tick->event))
		return;
	tick->count = described(tick->event)->period;
	if (info->si_code == POLL_HUP && !set_next_period(slot, tick->event) &&
	    described(tick->event)->jitter)
		tick->count = counted_since(slot, tick->event);
	capture_tick(&agent.capture, slot, tick);
	if (info->si_code == POLL_HUP)
		rearm_or_end(slot, tick->event);
}

/* With jitter the count says whether it overflowed: then that is lost, and it goes on from there.
 */
static bool has_lost_one(struct slot *slot, uint32_t event, uint64_t count)
{
	if (!has_overflowed(slot, event, count))
		return false;
	slot->counted[event] = slot->doubted_at[event] = count;
	slot_refuse(slot, event, LOSS_MERGED);
	(void)set_next_period(slot, event);
	return true;
}

/*
 * Since it was last armed on suspicion. So at most one period's worth is armed too much, however
 * many signals of its own the program gets.
 */
static bool may_have_overflowed(struct slot *slot, uint32_t event)
{
	uint64_t count;

	if (!is_ours(slot->own_fds[event]) || !read_count(slot->own_fds[event], &count))
		return true; /* arming says so */
	if (described(event)->jitter)
		return has_lost_one(slot, event, count);
	if (slot->doubted_at[event] != 0 &&
	    count - slot->doubted_at[event] < described(event)->period)
		return false;
	slot->doubted_at[event] = count;
	return true;
}

/* SIGIO in the kernel is dispositions.c's; errno is kept there. */
static bool on_sigio(const siginfo_t *info, void *context)
{
	struct slot *slot = agent_slot;
	bool any = false;

	(void)context;
	if (info->si_code != SI_KERNEL || slot == NULL)
		return false;
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		if (slot->own_fds[i] < 0)
			continue;
		any = true;
		if (may_have_overflowed(slot, i))
			rearm_or_end(slot, i);
	}
	return any && !dispositions_has_handler(SIGIO);
}

static int process_start(struct capture *capture)
{
	long fd = syscall(SYS_pidfd_open, agent.parent, 0);
	int r;

	(void)capture;
	agent.perf_async.recorder = fd < 0 ? -errno : move_high((int)fd);
	syscall(SYS_fcntl, agent.perf_async.recorder, F_SETSIG, SIGNAL_33); /* for is_ours() */
	r = signal_33_take();
	return r < 0 ? r : dispositions_take(SIGIO, on_sigio);
}

static int take_event(struct slot *slot, uint32_t event)
{
	int fd = duplicate_of(slot->event_fds[event]);

	if (fd < 0)
		return fd;
	slot->own_fds[event] = fd;
	return rearm(fd);
}

static int thread_start(struct capture *capture, struct slot *slot)
{
	const struct memory_header *header = capture->memory.header;
	int r = ask_recorder_to_arm(capture, slot);

	slot->random = draw_seed(header->seed, 1 + slot_index(&capture->memory, slot) +
						       ((uint64_t)slot->generation << 32));
	signal_33_retake(); /* the creator may not have come to it yet */
	for (uint32_t i = 0; r == 0 && i < header->nr_events && i < EVENTS_MAX; i++)
		if (header->events[i].trigger == TRIGGER_PERF_ASYNC && slot->event_fds[i] >= 0)
			r = take_event(slot, i);
	return r;
}

static void close_own(const struct slot *slot)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		if (slot->own_fds[i] >= 0 && is_ours(slot->own_fds[i]))
			syscall(SYS_close, slot->own_fds[i]);
}

static void thread_stop(struct capture *capture, struct slot *slot)
{
	(void)capture;
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		if (slot->own_fds[i] >= 0)
			control(slot->own_fds[i], PERF_EVENT_IOC_DISABLE, NULL);
	close_own(slot);
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		slot->own_fds[i] = -1;
}

/* The child has copies of the descriptors of all threads; slots are its parent's, only read. */
static void forked(void)
{
	const struct memory *memory = &agent.capture.memory;

	for (uint32_t i = 0; i < memory->header->sizes.nr_slots; i++)
		if (atomic_load_explicit(&memory->slots[i].state, memory_order_acquire) ==
		    SLOT_ACTIVE)
			close_own(&memory->slots[i]);
	if (agent.perf_async.recorder >= 0 && is_ours(agent.perf_async.recorder))
		syscall(SYS_close, agent.perf_async.recorder);
	agent.perf_async.recorder = -EBADF;
}

const struct source source_perf_async = {
	.name = "perf-async",
	.trigger = TRIGGER_PERF_ASYNC,
	.process_start = process_start,
	.thread_created = signal_33_retake,
	.thread_start = thread_start,
	.thread_stop = thread_stop,
	.forked = forked,
};
