/* SPDX-License-Identifier: MIT */
/*
 * Perf events for threads, opened here so that the target holds no descriptor of ours (but for
 * those by signal: agent/sources/perf_async.c).
 *
 * A thread sets its slot's `arming` to REQUESTED, rings, and waits a bounded time. We open its
 * events, which count at once (to start them by a call of its own would disturb the thread's
 * processor once more), and answer. The descriptors live in the slot's shadow until the slot ends;
 * then the exact counts are read (counts.c).
 *
 * First periods are drawn at random, so that threads shorter than a period have their share of
 * samples. The whole period cannot be set before the first overflow, nor while the event counts
 * (core/perf/open.c): the thread asks for it in the handler of that overflow, and stands still.
 * A first period has a floor: where we come late the event goes on with it, and a thread that does
 * nothing but overflow would not run.
 *
 * An inherited event is opened once for an image, with its main thread's, and lives until the image
 * is gone, whatever becomes of that thread.
 *
 * DISABLE and ENABLE come around an exec and concern every event of the process.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/draw.h"
#include "core/memory/perf_cookie.h"
#include "core/perf/perf.h"

#define SIGNAL_ASYNC	   33 /* agent/sources/signal_33.c */
#define FILES_KEPT	   16 /* descriptors that events leave to streams and definitions */
#define FIRST_PERIOD_SHARE 32 /* threads of less than this part of a period miss some samples */

static uint64_t first_period(struct recorder *recorder, const struct event_choice *event)
{
	uint64_t first = 1 + draw_below(&recorder->random, event->period);
	uint64_t floor = event->period / FIRST_PERIOD_SHARE;

	if (perf_is_clock(&event->perf)) {
		first += recorder->clock_start_ns; /* what comes before is not the program's */
		floor = floor < EVENT_CLOCK_MIN_NS ? EVENT_CLOCK_MIN_NS : floor;
	}
	if (event->inherited || floor > event->period)
		return event->period;
	return first > floor ? first : floor;
}

static void wake(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void answer(struct slot *slot, enum arm_state state)
{
	wake(&slot->arming, state);
}

static bool is_async(const struct event_choice *event)
{
	return event->trigger == TRIGGER_PERF_ASYNC;
}

static int open_event(struct recorder *recorder, struct slot *slot, uint32_t e,
		      struct event_set *set)
{
	const struct event_choice *event = &recorder->request->events[e];
	uint32_t index = slot_index(&recorder->memory, slot);
	struct perf_sampling sampling = {
		.delivery = is_async(event) ? PERF_BY_SIGNAL : PERF_BY_SIGTRAP,
		.starts = !is_async(event), /* by the thread, when it has its own descriptor */
		.inherit = event->inherited,
		.kind = event->perf,
		.period = event->period,
		.first_period = first_period(recorder, event),
		.sig_data = event->inherited ? perf_cookie_inherited(e)
					     : perf_cookie(index, e, slot->generation),
		.signo = SIGNAL_ASYNC};
	int code;

	counts_start(e, sampling.first_period, set);
	slot->first[e] = sampling.first_period;
	slot->early[e] = draw_below(&recorder->random, sampling.first_period);
	if (sampling.first_period != event->period)
		atomic_fetch_or_explicit(&slot->first_period, 1u << e, memory_order_relaxed);
	code = perf_open_sampling(&sampling, (pid_t)slot->tid, &set->fds[e]);
	if (code || (uint64_t)set->fds[e] + FILES_KEPT < recorder->files_max)
		return code;
	close(set->fds[e]);
	set->fds[e] = -1;
	return -EMFILE;
}

static void close_events(struct event_set *set)
{
	for (uint32_t i = 0; set->armed && i < EVENTS_MAX; i++) {
		if (set->fds[i] >= 0)
			close(set->fds[i]);
	}
	set->armed = false;
}

static void start_empty(struct event_set *set)
{
	close_events(set); /* asked again: the former events are of no use to it */
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		set->fds[i] = -1;
	set->over = 0;
	set->armed = true;
}

/* The thread may take a duplicate (where YAMA is, that needs our permission). */
static void offer(const struct recorder *recorder, struct slot *slot, uint32_t e, int fd)
{
	if (slot->tid == (uint32_t)recorder->root_pid)
		(void)prctl(PR_SET_PTRACER, (unsigned long)recorder->root_pid, 0, 0, 0);
	slot->event_fds[e] = fd;
}

/* The thread's own events into @own, inherited ones with the main thread's into recorder->shared.
 * On failure *@ret_refused is the event that could not be opened.
 */
static int open_events(struct recorder *recorder, struct slot *slot, struct event_set *own,
		       const struct event_choice **ret_refused)
{
	const struct record_request *request = recorder->request;
	struct event_set *shared = &recorder->shared.set;
	bool leader = slot->tid == (uint32_t)recorder->root_pid;
	int code = 0;

	start_empty(own);
	if (leader)
		start_empty(shared);
	atomic_store_explicit(&slot->first_period, 0, memory_order_relaxed);
	recorder->events_off = false; /* whoever execs is alone, and asks as a new image */
	for (uint32_t e = 0; e < request->nr_events && !code; e++) {
		const struct event_choice *event = &request->events[e];
		struct event_set *set = event->inherited ? shared : own;

		slot->event_fds[e] = -1;
		if ((event->trigger != TRIGGER_PERF_SIGTRAP && !is_async(event)) ||
		    (event->inherited && !leader))
			continue;
		code = open_event(recorder, slot, e, set);
		*ret_refused = event;
		if (!code && is_async(event))
			offer(recorder, slot, e, set->fds[e]);
	}
	if (code) {
		close_events(own);
		if (leader)
			close_events(shared);
	}
	return code;
}

/* By signal the thread arms its events as soon as it has the answer; of one that went on, we do. */
static void answer_armed(const struct recorder *recorder, struct slot *slot,
			 const struct event_set *set)
{
	uint32_t asked = ARM_REQUESTED;

	if (atomic_compare_exchange_strong(&slot->arming, &asked, ARM_ARMED)) {
		syscall(SYS_futex, &slot->arming, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		return;
	}
	for (uint32_t e = 0; e < recorder->request->nr_events; e++)
		if (set->fds[e] >= 0 && is_async(&recorder->request->events[e]))
			(void)perf_rearm(set->fds[e]);
	answer(slot, ARM_ARMED);
}

static void arm(struct recorder *recorder, struct slot *slot, struct event_set *set)
{
	struct errbuf err = {0};
	const struct event_choice *refused = NULL;
	int code = open_events(recorder, slot, set, &refused);

	if (!code) {
		answer_armed(recorder, slot, set);
		return;
	}
	slot->arm_error = code;
	answer(slot, ARM_REFUSED);
	if (code == -ESRCH || recorder->totals.arm_refused++)
		return; /* it ended meanwhile; or the user has been told */
	perf_explain(code, refused->name, &err);
	note(recorder, "Not every thread is sampled: %s", err.text);
}

/* What is left of the period that the thread is in: a whole one, or once more a part of it. */
static void set_rest_of_period(struct recorder *recorder, struct slot *slot, uint32_t e,
			       struct event_set *set)
{
	uint64_t period = recorder->request->events[e].period;
	int64_t since = slot->since_sample[e];
	uint64_t rest = period;

	if (since < (int64_t)period && since > -(int64_t)period)
		rest = (uint64_t)((int64_t)period - since);
	if (perf_set_period(set->fds[e], rest))
		return;
	counts_period_set(recorder, e, rest, set);
	slot->first[e] = rest;
	slot->early[e] = draw_below(&recorder->random, rest);
	if (rest == period)
		atomic_fetch_and_explicit(&slot->first_period, ~(1u << e), memory_order_release);
}

/* The thread waits in its handler: all that it counts until then is behind an overflow. */
static void end_first_period(struct recorder *recorder, struct slot *slot, struct event_set *set)
{
	uint32_t asked = atomic_load_explicit(&slot->whole_asked, memory_order_acquire);
	uint32_t e = asked - 1;

	if (asked == WHOLE_NONE || e >= recorder->request->nr_events || !set->armed ||
	    set->fds[e] < 0 ||
	    !atomic_compare_exchange_strong(&slot->whole_asked, &asked, WHOLE_AT_WORK))
		return;
	(void)perf_disable(set->fds[e]);
	set_rest_of_period(recorder, slot, e, set);
	if (!recorder->events_off)
		(void)perf_enable(set->fds[e]);
	wake(&slot->whole_asked, WHOLE_NONE);
}

/* Its handler sets it off. Of an inherited event, in all threads. */
static void end_event(struct recorder *recorder, struct slot *slot, struct event_set *own)
{
	uint32_t asked = atomic_load_explicit(&slot->whole_asked, memory_order_acquire);
	uint32_t e = (asked & ~(uint32_t)WHOLE_END) - 1;
	const struct event_choice *event = &recorder->request->events[e % EVENTS_MAX];
	struct event_set *set;

	if (!(asked & WHOLE_END) || e >= recorder->request->nr_events ||
	    !atomic_compare_exchange_strong(&slot->whole_asked, &asked, WHOLE_AT_WORK))
		return;
	set = event->inherited ? &recorder->shared.set : own;
	if (set->armed && set->fds[e] >= 0) {
		(void)perf_disable(set->fds[e]);
		set->over |= 1u << e;
	}
	wake(&slot->whole_asked, WHOLE_NONE);
	if (recorder->totals.ended_events++ == 0)
		note(recorder,
		     "%s was ended in thread %u, and wherever else it is so: what it watches is "
		     "used by the handler of its samples, which sets it off without end",
		     event->name, slot->tid);
}

static void switch_set(const struct recorder *recorder, const struct event_set *set, bool on)
{
	for (uint32_t e = 0; set->armed && e < recorder->request->nr_events; e++) {
		if (set->fds[e] < 0 || set->over & 1u << e)
			continue;
		if (!on)
			(void)perf_disable(set->fds[e]);
		else if (is_async(&recorder->request->events[e]))
			(void)perf_rearm(set->fds[e]); /* enabled alone it would run freely */
		else
			(void)perf_enable(set->fds[e]);
	}
}

static void switch_events(struct recorder *recorder, bool on)
{
	recorder->events_off = !on;
	switch_set(recorder, &recorder->shared.set, on);
	for (uint32_t i = 0; i < recorder->slots_seen; i++)
		switch_set(recorder, &recorder->shadows[i].events, on);
}

void arming_serve(struct recorder *recorder)
{
	uint32_t slots = drain_slots_in_use(recorder);

	for (uint32_t i = 0; i < slots; i++) {
		struct slot *slot = &recorder->memory.slots[i];
		struct event_set *set = &recorder->shadows[i].events;
		uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);

		if (state != SLOT_CLAIMED && state != SLOT_ACTIVE)
			continue;
		switch (atomic_load_explicit(&slot->arming, memory_order_acquire)) {
		case ARM_REQUESTED:
		case ARM_LATE:
			arm(recorder, slot, set);
			break;
		case ARM_ARMED:
			end_first_period(recorder, slot, set);
			end_event(recorder, slot, set);
			break;
		case ARM_DISABLE:
			switch_events(recorder, false);
			answer(slot, ARM_DISABLED);
			break;
		case ARM_ENABLE:
			switch_events(recorder, true);
			answer(slot, ARM_ARMED);
			break;
		default:
			break;
		}
	}
}

void arming_release(struct recorder *recorder, struct slot *slot)
{
	counts_settle_slot(recorder, slot);
	close_events(&recorder->shadows[slot_index(&recorder->memory, slot)].events);
}

void arming_end_image(struct recorder *recorder)
{
	counts_settle_shared(recorder);
	close_events(&recorder->shared.set);
}
