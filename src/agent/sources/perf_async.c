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
 * The duplicate: own_descriptor.c. Where the recorder has no turn while the thread starts, it arms
 * the event itself when it has one, and the thread takes its duplicate at the first overflow.
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
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/guard/agent.h"
#include "agent/sources/ask_recorder.h"
#include "agent/sources/own_descriptor.h"
#include "agent/sources/signal_33.h"
#include "agent/sources/source.h"
#include "core/base/draw.h"

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
	int fd, r;

	if (!jitter && !has_first_period(slot, event))
		return 0;
	fd = own_descriptor(slot, event);
	if (fd < 0)
		return fd;
	if (jitter)
		period += draw_below(&slot->random, 2 * jitter + 1) - jitter;
	r = control(fd, PERF_EVENT_IOC_PERIOD, &period);
	if (r < 0)
		return r;
	slot->first[event] = period;
	atomic_fetch_or_explicit(&slot->first_seen, 1u << event, memory_order_relaxed);
	atomic_fetch_and_explicit(&slot->first_period, ~(1u << event), memory_order_release);
	return 0;
}

/* With jitter: what the sample stands for. Right behind set_next_period(), whose descriptor it
 * reads. */
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

/* Without a descriptor: no more of this event in this thread. */
static void rearm_or_end(struct slot *slot, uint32_t event)
{
	int fd = own_descriptor(slot, event);

	if (fd >= 0 && rearm(fd) == 0)
		return;
	own_descriptor_drop(slot, event);
	slot_lose(slot, LOSS_DESCRIPTOR, 1);
}

static uint32_t event_of(const struct slot *slot, int recorders_fd)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		if (slot->event_fds[i] >= 0 && slot->event_fds[i] == recorders_fd)
			return i;
	return EVENTS_MAX;
}

/* With jitter: an overflow that on_sigio() took for lost, and whose signal came behind it. */
static bool is_stale(struct slot *slot, uint32_t event)
{
	uint64_t count;
	int fd;

	if (!described(event)->jitter || slot->doubted_at[event] == 0)
		return false;
	slot->doubted_at[event] = 0;
	fd = own_descriptor(slot, event);
	return fd >= 0 && read_count(fd, &count) && !has_overflowed(slot, event, count);
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
	int fd = own_descriptor(slot, event);
	uint64_t count;

	if (fd < 0 || !read_count(fd, &count))
		return true; /* arming says so */
	if (described(event)->jitter)
		return has_lost_one(slot, event, count);
	if (slot->doubted_at[event] != 0 &&
	    count - slot->doubted_at[event] < described(event)->period)
		return false;
	slot->doubted_at[event] = count;
	return true;
}

/* Returns false where the thread has no events. */
static bool arm_on_suspicion(struct slot *slot)
{
	bool any = false;

	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		if (slot->event_fds[i] < 0)
			continue;
		any = true;
		if (may_have_overflowed(slot, i))
			rearm_or_end(slot, i);
	}
	return any;
}

/* SIGIO in the kernel is dispositions.c's; errno is kept there. */
static bool on_sigio(const siginfo_t *info, void *context)
{
	struct slot *slot = agent_slot;

	(void)context;
	return info->si_code == SI_KERNEL && slot != NULL && arm_on_suspicion(slot) &&
	       !dispositions_has_handler(SIGIO);
}

/*
 * libc comes for signal 33 with the first thread: what came between that and our taking it back
 * libc's handler has swallowed, and its event stands still. It was this thread's: there was none
 * beside it.
 */
static void thread_created(void)
{
	int saved_errno = errno;

	signal_33_retake();
	if (agent_slot != NULL &&
	    atomic_load_explicit(&agent.signal_33.taken_from_libc, memory_order_acquire) &&
	    !atomic_exchange(&agent.perf_async.looked_after_libc, 1))
		arm_on_suspicion(agent_slot);
	errno = saved_errno;
}

static int process_start(struct capture *capture)
{
	int r;

	(void)capture;
	own_descriptor_begin();
	r = signal_33_take();
	return r < 0 ? r : dispositions_take(SIGIO, on_sigio);
}

static int take_event(struct slot *slot, uint32_t event)
{
	int fd = own_descriptor_take(slot, event);

	return fd < 0 ? fd : rearm(fd);
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

static void thread_stop(struct capture *capture, struct slot *slot)
{
	(void)capture;
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		own_descriptor_drop(slot, i);
}

const struct source source_perf_async = {
	.name = "perf-async",
	.trigger = TRIGGER_PERF_ASYNC,
	.process_start = process_start,
	.thread_created = thread_created,
	.thread_start = thread_start,
	.thread_stop = thread_stop,
	.forked = own_descriptors_forked,
};
