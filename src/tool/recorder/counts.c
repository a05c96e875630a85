/* SPDX-License-Identifier: MIT */
/*
 * Final counts of perf events against the overflows that came.
 *
 * What an event counted says how many overflows there were that matter: the first one when its
 * first period was over; until the whole one was set each that made a whole period full
 * (memory_types.h); then one a whole period. What of them did not come, as a sample or as a loss
 * that the agent counted, merged with another before one delivery.
 *
 * An inherited event has one count for the process, and each of its threads began with a whole
 * period: up to one overflow a thread is due that nobody can have seen. That is no loss with a
 * place, but makes short threads look cheaper than they are, and is said.
 *
 * A clock's count is time while its overflows are a timer's, so it tells nothing exact.
 */
#include "tool/recorder/recorder_types.h"

#include <string.h>

#include "core/perf/perf.h"

#define SHARE_WORTH_NOTE 100 /* a hundredth of the count that no sample stands for */

static bool is_perf(const struct event_choice *event)
{
	return event->trigger == TRIGGER_PERF_SIGTRAP || event->trigger == TRIGGER_PERF_ASYNC;
}

void counts_start(uint32_t event, uint64_t each, struct event_set *set)
{
	set->begin[event] = set->end[event] = 0;
	set->from[event] = set->due_before[event] = 0;
	set->each[event] = each;
}

/* Overflows that must have been due at that count. */
static uint64_t overflows(const struct recorder *recorder, const struct event_set *set, uint32_t e,
			  uint64_t count)
{
	uint64_t period = recorder->request->events[e].period, each = set->each[e], since;

	if (count < set->from[e] + each)
		return set->due_before[e];
	since = count - set->from[e];
	return set->due_before[e] + 1 + (since - since % each - each) / period;
}

void counts_period_set(const struct recorder *recorder, uint32_t event, uint64_t each,
		       struct event_set *set)
{
	uint64_t count = set->from[event] + set->each[event];

	(void)perf_count(set->fds[event], &count);
	set->due_before[event] = overflows(recorder, set, event, count);
	set->from[event] = count;
	set->each[event] = each;
}

/* The count that matters: none before the window, what was read at its end, or the last. */
static bool count_in_window(const struct recorder *recorder, const struct event_set *set,
			    uint32_t e, uint64_t *ret_count)
{
	uint64_t count = set->end[e];

	if (set->fds[e] < 0 || !recorder->window.begun)
		return false;
	if (!recorder->window.ended && perf_count(set->fds[e], &count))
		return false;
	if (count < set->begin[e])
		return false;
	*ret_count = count;
	return true;
}

/* Overflows of the event that reached the thread's handler. */
static uint64_t came(const struct slot *slot, uint32_t e)
{
	return atomic_load_explicit(&slot->samples[e], memory_order_relaxed) +
	       atomic_load_explicit(&slot->refused[e], memory_order_relaxed);
}

/* By a signal the thread itself sets the whole period, at the first overflow. */
static void own_period(const struct slot *slot, const struct event_choice *event, uint32_t e,
		       struct event_set *set)
{
	if (set->from[e] || !(atomic_load(&slot->first_seen) & 1u << e))
		return;
	set->from[e] = set->each[e];
	set->due_before[e] = 1;
	set->each[e] = event->period;
}

void counts_settle_slot(struct recorder *recorder, struct slot *slot)
{
	const struct record_request *request = recorder->request;
	struct event_set *set = &recorder->shadows[slot_index(&recorder->memory, slot)].events;
	uint64_t count, due;

	recorder->shared.nr_threads++;
	for (uint32_t e = 0; e < request->nr_events; e++) {
		const struct event_choice *event = &request->events[e];

		if (!is_perf(event))
			continue;
		recorder->shared.seen[e] += event->inherited ? came(slot, e) : 0;
		if (!set->armed || !count_in_window(recorder, set, e, &count))
			continue;
		if (event->trigger == TRIGGER_PERF_ASYNC)
			own_period(slot, event, e, set);
		recorder->totals.event_count[e] += count - set->begin[e];
		due = overflows(recorder, set, e, count) -
		      overflows(recorder, set, e, set->begin[e]);
		if (event->jitter)
			continue; /* it overflows when the thread has re-armed it: none is missed */
		/* The event counts on until the kernel has the thread exit, after its slot ended:
		 * what one overflow can hold may have happened there. */
		if (!perf_is_clock(&event->perf) && due > came(slot, e) + 1)
			atomic_fetch_add(&slot->lost[LOSS_MERGED], due - came(slot, e) - 1);
	}
}

/* What the samples of an inherited event stand for, beside what it counted. */
static void settle_shared(struct recorder *recorder, uint32_t e, uint64_t count)
{
	const struct event_choice *event = &recorder->request->events[e];
	const struct shared_events *shared = &recorder->shared;
	uint64_t counted = count - shared->set.begin[e];
	uint64_t due = counted / event->period, rest;

	recorder->totals.event_count[e] += counted;
	if (!perf_is_clock(&event->perf) && due > shared->seen[e] + shared->nr_threads) {
		recorder->totals.lost[LOSS_MERGED] += due - shared->seen[e] - shared->nr_threads;
		due = shared->seen[e] + shared->nr_threads;
	}
	rest = due > shared->seen[e] ? due - shared->seen[e] : 0;
	if (recorder->totals.lost[LOSS_KERNEL_THROTTLED])
		return; /* that is why */
	if (shared->nr_threads > 1 && rest * event->period > counted / SHARE_WORTH_NOTE)
		note(recorder,
		     "%s: %llu %% of what was counted is in no sample: one event serves all "
		     "threads, and each of the %llu began with a whole period, so short threads "
		     "show less than their share; without --inherit they have it",
		     event->name, (unsigned long long)(rest * event->period * 100 / counted),
		     (unsigned long long)shared->nr_threads);
}

void counts_settle_shared(struct recorder *recorder)
{
	struct shared_events *shared = &recorder->shared;
	uint64_t count;

	for (uint32_t e = 0; shared->set.armed && e < recorder->request->nr_events; e++) {
		if (count_in_window(recorder, &shared->set, e, &count))
			settle_shared(recorder, e, count);
	}
	memset(shared->seen, 0, sizeof(shared->seen));
	shared->nr_threads = 0;
}

static void read_counts(struct event_set *set, bool end)
{
	for (uint32_t e = 0; set->armed && e < EVENTS_MAX; e++) {
		if (set->fds[e] >= 0)
			(void)perf_count(set->fds[e], end ? &set->end[e] : &set->begin[e]);
	}
}

static void read_all_counts(struct recorder *recorder, bool end)
{
	read_counts(&recorder->shared.set, end);
	for (uint32_t i = 0; i < recorder->slots_seen; i++)
		read_counts(&recorder->shadows[i].events, end);
}

void arming_window_begins(struct recorder *recorder)
{
	read_all_counts(recorder, false);
}

void arming_window_ends(struct recorder *recorder)
{
	read_all_counts(recorder, true);
}

static void count_living(struct recorder *recorder, const struct event_set *set)
{
	for (uint32_t e = 0; set->armed && e < recorder->request->nr_events; e++) {
		if (set->fds[e] >= 0 && set->end[e] > set->begin[e])
			recorder->totals.event_count[e] += set->end[e] - set->begin[e];
	}
}

void arming_count_living(struct recorder *recorder)
{
	count_living(recorder, &recorder->shared.set);
	for (uint32_t i = 0; i < recorder->slots_seen; i++)
		count_living(recorder, &recorder->shadows[i].events);
}
