/* SPDX-License-Identifier: MIT */
/*
 * Perf events with attr.sigtrap: synchronous, to the thread that caused the overflow.
 *
 * The recorder opens them for the thread's id while the thread waits, so the target holds no
 * descriptor. A thread asks through its slot's `arming` word (core/memory/memory_types.h) and goes
 * on after ARM_WAIT_NS in any case, counted as late; its events may still come.
 *
 * An event's SIGTRAP has si_code TRAP_PERF and our cookie (core/memory/perf_cookie.h). The events
 * of a thread live until the kernel has it exit, which is after its slot ended: those hits carry a
 * cookie of no present thread and are dropped. Everything else is the program's.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "agent/guard/agent.h"
#include "agent/sources/interrupted_call.h"
#include "agent/sources/source.h"
#include "core/memory/perf_cookie.h"

#define ARM_WAIT_NS 100000000ull /* opened by the recorder in 23 us, 3.6 ms on a busy machine */

/*
 * The part of siginfo that glibc 2.36 does not name (asm-generic/siginfo.h, _sigfault._perf):
 * behind si_addr, unsigned long data, u32 type, u32 flags.
 */
#define SI_PERF_DATA_AT	 (offsetof(siginfo_t, si_addr) + 8)
#define SI_PERF_FLAGS_AT (SI_PERF_DATA_AT + 12)
#define PERF_FLAG_ASYNC	 1u /* TRAP_PERF_FLAG_ASYNC: was blocked when it happened */

_Static_assert(offsetof(siginfo_t, si_addr) == 16, "64-bit siginfo");

static uint64_t perf_data(const siginfo_t *info)
{
	uint64_t data;

	memcpy(&data, (const char *)info + SI_PERF_DATA_AT, sizeof(data));
	return data;
}

static uint32_t perf_flags(const siginfo_t *info)
{
	uint32_t flags;

	memcpy(&flags, (const char *)info + SI_PERF_FLAGS_AT, sizeof(flags));
	return flags;
}

/* Is it an event of this recording, of whatever thread, living or ended? */
static bool is_ours(const siginfo_t *info, const struct memory_header *header)
{
	uint64_t cookie = perf_data(info);
	uint32_t event = perf_cookie_event(cookie);

	return info->si_code == TRAP_PERF && perf_cookie_generation(cookie) != 0 &&
	       perf_cookie_slot(cookie) < header->sizes.nr_slots && event < header->nr_events &&
	       event < EVENTS_MAX && header->events[event].trigger == TRIGGER_PERF_SIGTRAP;
}

static bool is_of_slot(uint64_t cookie, const struct slot *slot)
{
	uint32_t index = slot_index(&agent.capture.memory, slot);

	return cookie == perf_cookie(index, perf_cookie_event(cookie), slot->generation);
}

static void sample(struct slot *slot, const siginfo_t *info, const ucontext_t *interrupted,
		   uint64_t now_ns)
{
	const struct memory_header *header = agent.capture.memory.header;
	struct tick tick = {.time_ns = now_ns, .context = interrupted};

	if (!atomic_load_explicit(&header->recording, memory_order_relaxed))
		return;
	if (perf_flags(info) & PERF_FLAG_ASYNC) {
		slot_lose(slot, LOSS_DELAYED, 1);
		return;
	}
	tick.event = perf_cookie_event(perf_data(info));
	tick.count = header->events[tick.event].period;
	tick.faults_blocked = sigismember(&interrupted->uc_sigmask, SIGSEGV) == 1 ||
			      sigismember(&interrupted->uc_sigmask, SIGBUS) == 1;
	capture_tick(&agent.capture, slot, &tick);
}

/* SIGTRAP in the kernel is dispositions.c's; errno is kept there. */
static bool on_trap(const siginfo_t *info, void *context)
{
	uint64_t now_ns = agent_now_ns();
	struct slot *slot = agent_slot;

	if (!is_ours(info, agent.capture.memory.header))
		return false;
	interrupted_call_settle(context);
	if (slot != NULL && is_of_slot(perf_data(info), slot))
		sample(slot, info, context, now_ns);
	interrupted_call_settle(context);
	return true;
}

static int process_start(struct capture *capture)
{
	(void)capture;
	return dispositions_take(SIGTRAP, on_trap);
}

static void thread_created(void)
{
}

static int thread_start(struct capture *capture, struct slot *slot)
{
	if (agent_recorder_gone(agent_now_ns()))
		return -EPIPE;
	atomic_store_explicit(&slot->arming, ARM_REQUESTED, memory_order_release);
	memory_ring(&capture->memory);
	switch (agent_futex_wait(&slot->arming, ARM_REQUESTED, ARM_WAIT_NS)) {
	case ARM_REQUESTED:
		return -ETIMEDOUT;
	case ARM_REFUSED:
		return slot->arm_error < 0 ? slot->arm_error : -EACCES;
	default:
		return 0;
	}
}

static void thread_stop(struct capture *capture, struct slot *slot)
{
	(void)capture;
	(void)slot; /* the events end with the thread; what still comes finds no slot */
}

const struct source source_perf_sigtrap = {
	.name = "perf-sigtrap",
	.trigger = TRIGGER_PERF_SIGTRAP,
	.process_start = process_start,
	.thread_created = thread_created,
	.thread_start = thread_start,
	.thread_stop = thread_stop,
};
