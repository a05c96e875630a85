/* SPDX-License-Identifier: MIT */
/*
 * The thread's half of the arming protocol of core/memory/memory_types.h.
 */
#include "agent/sources/ask_recorder.h"

#include <errno.h>
#include <time.h>

#include "agent/guard/agent.h"

#define ARM_WAIT_NS 100000000ull /* opened by the recorder in 23 us, 3.6 ms on a busy machine */
/* By signal what comes later has the thread take its own descriptors in a handler. */
#define ARM_WAIT_SIGNAL_NS 1000000000ull

/* Of a recorder that has no turn a thread loses at most a hundredth of its time. */
#define WHOLE_WAIT_NS  10000000ull
#define WHOLE_RETRY_NS 1000000000ull

static uint64_t longest_wait_ns(const struct memory_header *header)
{
	for (uint32_t i = 0; i < header->nr_events && i < EVENTS_MAX; i++)
		if (header->events[i].trigger == TRIGGER_PERF_ASYNC)
			return ARM_WAIT_SIGNAL_NS;
	return ARM_WAIT_NS;
}

static bool has_events_of_its_own(const struct memory_header *header, const struct slot *slot)
{
	for (uint32_t i = 0; i < header->nr_events && i < EVENTS_MAX; i++) {
		const struct memory_event *event = &header->events[i];

		if (event->trigger != TRIGGER_PERF_SIGTRAP && event->trigger != TRIGGER_PERF_ASYNC)
			continue;
		/* Inherited ones come with the main thread's. */
		if (!event->inherited || slot->tid == agent.pid)
			return true;
	}
	return false;
}

static int answer_of(const struct slot *slot, uint32_t state)
{
	switch (state) {
	case ARM_LATE:
		return -ETIMEDOUT;
	case ARM_REFUSED:
		return slot->arm_error < 0 ? slot->arm_error : -EACCES;
	default:
		return 0;
	}
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Told to users: what the thread waited, and ran without an event. */
static void account(struct memory_arming *arming, uint64_t waited_ns)
{
	uint64_t longest = atomic_load_explicit(&arming->longest_ns, memory_order_relaxed);

	atomic_fetch_add_explicit(&arming->threads, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&arming->waited_ns, waited_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&arming->uncovered_ns, thread_cpu_ns(), memory_order_relaxed);
	while (longest < waited_ns &&
	       !atomic_compare_exchange_weak_explicit(&arming->longest_ns, &longest, waited_ns,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

int ask_recorder_to_arm(struct capture *capture, struct slot *slot)
{
	uint32_t state = atomic_load_explicit(&slot->arming, memory_order_acquire);
	uint64_t asked_ns = agent_now_ns();

	if (state != ARM_NONE)
		return answer_of(slot, state);
	if (!has_events_of_its_own(capture->memory.header, slot)) {
		/* An exec may ask through this slot to have the inherited events disabled. */
		atomic_store_explicit(&slot->arming, ARM_ARMED, memory_order_release);
		return 0;
	}
	if (agent_recorder_gone(asked_ns))
		return -EPIPE;
	atomic_store_explicit(&slot->arming, ARM_REQUESTED, memory_order_release);
	memory_ring(&capture->memory);
	state = agent_futex_wait(&slot->arming, ARM_REQUESTED,
				 longest_wait_ns(capture->memory.header));
	/* Nobody waits from here on: what the recorder opens it has to start as well. */
	if (state == ARM_REQUESTED &&
	    atomic_compare_exchange_strong(&slot->arming, &state, ARM_LATE))
		state = ARM_LATE;
	account(&capture->memory.header->arming, agent_now_ns() - asked_ns);
	return answer_of(slot, state);
}

/*
 * Has the recorder serve slot->whole_asked while the thread stands still. Returns WHOLE_NONE: it
 * did; @asked: it had no turn in time, and will not; WHOLE_AT_WORK: it is stuck in between.
 */
static uint32_t ask_in_handler(struct slot *slot, uint32_t asked)
{
	uint32_t state = asked;

	atomic_store_explicit(&slot->whole_asked, asked, memory_order_release);
	memory_ring(&agent.capture.memory);
	if (agent_futex_wait(&slot->whole_asked, asked, WHOLE_WAIT_NS) == asked &&
	    atomic_compare_exchange_strong(&slot->whole_asked, &state, WHOLE_NONE))
		return asked;
	/* It is between disabling and enabling. */
	return agent_futex_wait(&slot->whole_asked, WHOLE_AT_WORK, ARM_WAIT_NS);
}

void ask_recorder_for_whole_period(struct slot *slot, uint32_t event, uint64_t now_ns)
{
	if (now_ns < slot->whole_again_ns || agent_recorder_gone(now_ns))
		return;
	slot->whole_again_ns = now_ns + WHOLE_RETRY_NS;
	switch (ask_in_handler(slot, event + 1)) {
	case WHOLE_NONE:
		slot->whole_again_ns = now_ns; /* it has a turn */
		break;
	case WHOLE_AT_WORK:
		slot_lose(slot, LOSS_LATE_ARMING, 1);
		break;
	default:
		break;
	}
}

void ask_recorder_to_end(struct slot *slot, uint32_t event, uint64_t now_ns)
{
	if (!agent_recorder_gone(now_ns))
		ask_in_handler(slot, (event + 1) | WHOLE_END);
}
