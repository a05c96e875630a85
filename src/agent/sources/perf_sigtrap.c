/* SPDX-License-Identifier: MIT */
/*
 * Perf events with attr.sigtrap: synchronous, to the thread that caused the overflow.
 *
 * The recorder opens them for the thread's id while the thread waits (ask_recorder.c), so the
 * target holds no descriptor. An inherited event is opened once, with the main thread's, and comes
 * to every thread that is made later without anything being done for it.
 *
 * An event begins with a first period drawn at random, so that short threads have their share. The
 * recorder alone can set the whole one, and nothing may be counted meanwhile: the handler of the
 * first overflow waits for it. Where it does not come in time, the thread goes on with the first
 * period and samples at the overflow that makes a whole one full; nothing is lost by that.
 *
 * A breakpoint may be where our own frames come, or on what the handler writes or runs. Then each
 * handler sets off the next, and the program does not come to take a step: the recorder is asked to
 * end the event.
 *
 * An event's SIGTRAP has si_code TRAP_PERF and our cookie (core/memory/perf_cookie.h). The events
 * of a thread live until the kernel has it exit, which is after its slot ended: those hits carry a
 * cookie of no present thread and are dropped. Everything else is the program's.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "agent/guard/agent.h"
#include "agent/sources/ask_recorder.h"
#include "agent/sources/interrupted_call.h"
#include "agent/sources/source.h"
#include "core/memory/perf_cookie.h"

/*
 * The part of siginfo that glibc 2.36 does not name (asm-generic/siginfo.h, _sigfault._perf):
 * behind si_addr, unsigned long data, u32 type, u32 flags.
 */
#define SI_PERF_DATA_AT	 (offsetof(siginfo_t, si_addr) + 8)
#define SI_PERF_FLAGS_AT (SI_PERF_DATA_AT + 12)
#define SI_PERF_TYPE_AT	 (SI_PERF_DATA_AT + 8)
#define PERF_FLAG_ASYNC	 1u /* TRAP_PERF_FLAG_ASYNC: was blocked when it happened */

#define STUCK_MAX 64 /* handlers in a row that return to the very same registers */

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

static bool is_breakpoint(const siginfo_t *info)
{
	uint32_t type;

	memcpy(&type, (const char *)info + SI_PERF_TYPE_AT, sizeof(type));
	return type == PERF_TYPE_BREAKPOINT;
}

/* Is it an event of this recording, of whatever thread, living or ended? */
static bool is_ours(const siginfo_t *info, const struct memory_header *header)
{
	uint64_t cookie = perf_data(info);
	uint32_t event = perf_cookie_event(cookie);

	if (info->si_code != TRAP_PERF || event >= header->nr_events || event >= EVENTS_MAX ||
	    header->events[event].trigger != TRIGGER_PERF_SIGTRAP)
		return false;
	if (header->events[event].inherited)
		return cookie == perf_cookie_inherited(event);
	return perf_cookie_generation(cookie) != 0 &&
	       perf_cookie_slot(cookie) < header->sizes.nr_slots;
}

static bool is_of_slot(uint64_t cookie, const struct slot *slot)
{
	uint32_t index = slot_index(&agent.capture.memory, slot);

	return perf_cookie_slot(cookie) == PERF_COOKIE_ANY_SLOT ||
	       cookie == perf_cookie(index, perf_cookie_event(cookie), slot->generation);
}

static bool has_first_period(const struct slot *slot, uint32_t event)
{
	return atomic_load_explicit(&slot->first_period, memory_order_acquire) & 1u << event;
}

/*
 * Is a whole period full with this overflow, or is it the first one? Where it would be full between
 * this overflow and the next, one of the two is taken by chance: always the later one, and threads
 * that end before it would have less than their share.
 */
static bool first_period_is_due(struct slot *slot, uint32_t event)
{
	int64_t period = (int64_t)agent.capture.memory.header->events[event].period;
	uint32_t bit = 1u << event;

	if (!(atomic_fetch_or_explicit(&slot->first_seen, bit, memory_order_relaxed) & bit))
		return true;
	slot->since_sample[event] += (int64_t)slot->first[event];
	if (slot->since_sample[event] + (int64_t)slot->early[event] < period)
		return false;
	slot->since_sample[event] -= period;
	return true;
}

static void take(struct slot *slot, const siginfo_t *info, const ucontext_t *interrupted,
		 uint64_t now_ns)
{
	const struct memory_header *header = agent.capture.memory.header;
	struct tick tick = {.time_ns = now_ns,
			    .context = interrupted,
			    .event = perf_cookie_event(perf_data(info))};

	if (!atomic_load_explicit(&header->recording, memory_order_relaxed))
		return;
	if (perf_flags(info) & PERF_FLAG_ASYNC) {
		slot_refuse(slot, tick.event, LOSS_DELAYED);
		return;
	}
	tick.count = header->events[tick.event].period;
	tick.faults_blocked = sigismember(&interrupted->uc_sigmask, SIGSEGV) == 1 ||
			      sigismember(&interrupted->uc_sigmask, SIGBUS) == 1;
	capture_tick(&agent.capture, slot, &tick);
}

static void on_overflow(struct slot *slot, const siginfo_t *info, const ucontext_t *interrupted,
			uint64_t now_ns)
{
	uint32_t event = perf_cookie_event(perf_data(info));

	if (has_first_period(slot, event) && !first_period_is_due(slot, event))
		return;
	take(slot, info, interrupted, now_ns);
	if (has_first_period(slot, event))
		ask_recorder_for_whole_period(slot, event, now_ns);
}

static uint64_t hash_of_registers(const ucontext_t *interrupted)
{
#if defined(__x86_64__)
	const uint64_t *words = (const uint64_t *)interrupted->uc_mcontext.gregs;
	const size_t nr_words = REG_RIP + 1;
#else
	const uint64_t *words = (const uint64_t *)interrupted->uc_mcontext.regs;
	const size_t nr_words = 31 + 2; /* with sp and pc */
#endif
	uint64_t hash = 1;

	for (size_t i = 0; i < nr_words; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
	return hash;
}

/* Did the handler itself set it off, and the one before, without the program's doing anything? */
static bool is_stuck(struct slot *slot, const siginfo_t *info, const ucontext_t *interrupted)
{
	uint64_t registers;

	if (!(perf_flags(info) & PERF_FLAG_ASYNC) || !is_breakpoint(info))
		return false;
	registers = hash_of_registers(interrupted);
	if (registers != slot->stuck_at)
		slot->stuck = 0;
	slot->stuck_at = registers;
	return ++slot->stuck % STUCK_MAX == 0;
}

/* SIGTRAP in the kernel is dispositions.c's; errno is kept there. */
static bool on_trap(const siginfo_t *info, void *context)
{
	uint64_t now_ns = agent_now_ns();
	struct slot *slot = agent_slot;

	if (!is_ours(info, agent.capture.memory.header))
		return false;
	interrupted_call_settle(context);
	if (slot != NULL && is_of_slot(perf_data(info), slot)) {
		on_overflow(slot, info, context, now_ns);
		if (is_stuck(slot, info, context))
			ask_recorder_to_end(slot, perf_cookie_event(perf_data(info)), now_ns);
	}
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
	.thread_start = ask_recorder_to_arm,
	.thread_stop = thread_stop,
};
