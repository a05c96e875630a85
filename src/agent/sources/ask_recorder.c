/* SPDX-License-Identifier: MIT */
/*
 * The thread's half of the arming protocol of core/memory/memory_types.h.
 */
#include "agent/sources/ask_recorder.h"

#include <errno.h>

#include "agent/guard/agent.h"

#define ARM_WAIT_NS 100000000ull /* opened by the recorder in 23 us, 3.6 ms on a busy machine */

/* Of a recorder that has no turn a thread loses at most a hundredth of its time. */
#define WHOLE_WAIT_NS  10000000ull
#define WHOLE_RETRY_NS 1000000000ull

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
	case ARM_REQUESTED:
		return -ETIMEDOUT;
	case ARM_REFUSED:
		return slot->arm_error < 0 ? slot->arm_error : -EACCES;
	default:
		return 0;
	}
}

int ask_recorder_to_arm(struct capture *capture, struct slot *slot)
{
	uint32_t state = atomic_load_explicit(&slot->arming, memory_order_acquire);

	if (state != ARM_NONE)
		return answer_of(slot, state);
	if (!has_events_of_its_own(capture->memory.header, slot)) {
		/* An exec may ask through this slot to have the inherited events disabled. */
		atomic_store_explicit(&slot->arming, ARM_ARMED, memory_order_release);
		return 0;
	}
	if (agent_recorder_gone(agent_now_ns()))
		return -EPIPE;
	atomic_store_explicit(&slot->arming, ARM_REQUESTED, memory_order_release);
	memory_ring(&capture->memory);
	return answer_of(slot, agent_futex_wait(&slot->arming, ARM_REQUESTED, ARM_WAIT_NS));
}

void ask_recorder_for_whole_period(struct slot *slot, uint32_t event, uint64_t now_ns)
{
	uint32_t asked = event + 1;

	if (now_ns < slot->whole_again_ns || agent_recorder_gone(now_ns))
		return;
	slot->whole_again_ns = now_ns + WHOLE_RETRY_NS;
	atomic_store_explicit(&slot->whole_asked, asked, memory_order_release);
	memory_ring(&agent.capture.memory);
	if (agent_futex_wait(&slot->whole_asked, asked, WHOLE_WAIT_NS) == asked &&
	    atomic_compare_exchange_strong(&slot->whole_asked, &asked, WHOLE_NONE))
		return;
	/* It is between disabling and enabling. */
	if (agent_futex_wait(&slot->whole_asked, WHOLE_AT_WORK, ARM_WAIT_NS) == WHOLE_AT_WORK)
		slot_lose(slot, LOSS_LATE_ARMING, 1);
	else
		slot->whole_again_ns = now_ns; /* it has a turn */
}
