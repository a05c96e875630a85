/* SPDX-License-Identifier: MIT */
/*
 * Perf events for threads, opened here so that the target holds no descriptor of ours.
 *
 * A thread sets its slot's `arming` to REQUESTED, rings, and waits a bounded time. We open its
 * events, each with a first period drawn at random, so that threads shorter than a period have
 * their share of samples, start them and answer. The descriptors live in the slot's shadow until
 * the slot ends; then the exact counts are read, and what is missing between them and the samples
 * is the overflows that merged before one delivery.
 *
 * DISABLE and ENABLE come around an exec and concern every event of the process.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/memory/perf_cookie.h"

static void answer(struct slot *slot, enum arm_state state)
{
	atomic_store_explicit(&slot->arming, state, memory_order_release);
	syscall(SYS_futex, &slot->arming, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int open_events(struct recorder *recorder, struct slot *slot, struct shadow *shadow)
{
	const struct record_request *request = recorder->request;
	uint32_t index = slot_index(&recorder->memory, slot);
	int code = 0;

	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		shadow->fds[i] = -1;
	for (uint32_t i = 0; i < request->nr_events && !code; i++) {
		const struct event_choice *event = &request->events[i];
		struct perf_sampling sampling = {.kind = event->perf,
						 .period = event->period,
						 .first_period = event->period,
						 .sig_data =
							 perf_cookie(index, i, slot->generation)};

		if (event->trigger != TRIGGER_PERF_SIGTRAP)
			continue;
		shadow->first[i] = sampling.first_period;
		code = perf_open_sampling(&sampling, (pid_t)slot->tid, &shadow->fds[i]);
	}
	for (uint32_t i = 0; i < request->nr_events && !code; i++) {
		if (shadow->fds[i] >= 0)
			code = perf_enable(shadow->fds[i]);
	}
	return code;
}

static void close_events(struct shadow *shadow)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		if (shadow->fds[i] >= 0)
			close(shadow->fds[i]);
	}
	shadow->armed = false;
}

static void arm(struct recorder *recorder, struct slot *slot, struct shadow *shadow)
{
	struct errbuf err = {0};
	int code;

	if (shadow->armed)
		close_events(shadow); /* asked again: its former events are of no use to it */
	code = open_events(recorder, slot, shadow);
	shadow->armed = true;
	memset(shadow->begin, 0, sizeof(shadow->begin));
	memset(shadow->end, 0, sizeof(shadow->end));
	if (!code) {
		answer(slot, ARM_ARMED);
		return;
	}
	close_events(shadow);
	slot->arm_error = code;
	answer(slot, ARM_REFUSED);
	if (code == -ESRCH || recorder->totals.arm_refused++)
		return; /* it ended meanwhile; or the user has been told */
	perf_explain(code, recorder->request->events[0].name, &err);
	note(recorder, "Not every thread is sampled: %s", err.text);
}

static void for_all_events(struct recorder *recorder, int (*act)(int fd))
{
	for (uint32_t i = 0; i < recorder->slots_seen; i++) {
		struct shadow *shadow = &recorder->shadows[i];

		for (uint32_t e = 0; shadow->armed && e < EVENTS_MAX; e++) {
			if (shadow->fds[e] >= 0)
				act(shadow->fds[e]);
		}
	}
}

void arming_serve(struct recorder *recorder)
{
	uint32_t slots = drain_slots_in_use(recorder);

	for (uint32_t i = 0; i < slots; i++) {
		struct slot *slot = &recorder->memory.slots[i];
		uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);

		if (state != SLOT_CLAIMED && state != SLOT_ACTIVE)
			continue;
		switch (atomic_load_explicit(&slot->arming, memory_order_acquire)) {
		case ARM_REQUESTED:
			arm(recorder, slot, &recorder->shadows[i]);
			break;
		case ARM_DISABLE:
			for_all_events(recorder, perf_disable);
			answer(slot, ARM_DISABLED);
			break;
		case ARM_ENABLE:
			for_all_events(recorder, perf_enable);
			answer(slot, ARM_ARMED);
			break;
		default:
			break;
		}
	}
}

/*
 * Overflows that must have happened with that count. Page-fault and other counting software
 * events start at first - period, all others at -first (see core/perf/open.c).
 */
static uint64_t overflows(const struct event_choice *event, uint64_t count, uint64_t first)
{
	if (event->perf.type == 1 && !strcmp(event->unit, "events"))
		return (count + (first == event->period ? 0 : first)) / event->period;
	return count < first ? 0 : (count - first) / event->period + 1;
}

/* Everything of the slot that did not become a sample and has a reason already. */
static uint64_t accounted(const struct slot *slot)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		number += atomic_load_explicit(&slot->lost[i], memory_order_relaxed);
	return number;
}

static void settle(struct recorder *recorder, struct slot *slot, uint32_t index, uint64_t count)
{
	const struct event_choice *event = &recorder->request->events[index];
	const struct shadow *shadow = &recorder->shadows[slot_index(&recorder->memory, slot)];
	uint64_t seen = atomic_load_explicit(&slot->samples[index], memory_order_relaxed);
	uint64_t first = shadow->first[index], begin = shadow->begin[index], due;

	if (recorder->window.ended)
		count = shadow->end[index];
	if (!recorder->window.begun || count < begin)
		return;
	due = overflows(event, count, first) - overflows(event, begin, first);
	recorder->totals.event_count[index] += count - begin;
	/* With several events the slot's losses belong to nobody in particular. A clock's count is
	 * time while its overflows are a timer's, so it tells nothing exact. */
	if (recorder->request->nr_events > 1 || !strcmp(event->unit, "ns"))
		return;
	seen += accounted(slot);
	/* The event counts on until the kernel has the thread exit, after its slot ended: what one
	 * overflow can hold may have happened there. */
	if (due > seen + 1)
		atomic_fetch_add(&slot->lost[LOSS_MERGED], due - seen - 1);
}

void arming_release(struct recorder *recorder, struct slot *slot)
{
	struct shadow *shadow = &recorder->shadows[slot_index(&recorder->memory, slot)];
	uint64_t count;

	if (!shadow->armed)
		return;
	for (uint32_t i = 0; i < recorder->request->nr_events; i++) {
		if (shadow->fds[i] >= 0 && !perf_count(shadow->fds[i], &count))
			settle(recorder, slot, i, count);
	}
	close_events(shadow);
}

static void read_counts(struct recorder *recorder, bool end)
{
	for (uint32_t i = 0; i < recorder->slots_seen; i++) {
		struct shadow *shadow = &recorder->shadows[i];

		for (uint32_t e = 0; shadow->armed && e < recorder->request->nr_events; e++) {
			if (shadow->fds[e] >= 0)
				(void)perf_count(shadow->fds[e],
						 end ? &shadow->end[e] : &shadow->begin[e]);
		}
	}
}

void arming_window_begins(struct recorder *recorder)
{
	read_counts(recorder, false);
}

void arming_window_ends(struct recorder *recorder)
{
	read_counts(recorder, true);
}

void arming_count_living(struct recorder *recorder)
{
	for (uint32_t i = 0; i < recorder->slots_seen; i++) {
		const struct shadow *shadow = &recorder->shadows[i];

		for (uint32_t e = 0; shadow->armed && e < recorder->request->nr_events; e++) {
			if (shadow->end[e] > shadow->begin[e])
				recorder->totals.event_count[e] +=
					shadow->end[e] - shadow->begin[e];
		}
	}
}
