/* SPDX-License-Identifier: MIT */
/*
 * What events by SIGTRAP missed while the kernel had stopped them for their rate
 * (core/perf/throttle.c): LOSS_KERNEL_THROTTLED.
 *
 * Beside a counter that could be stopped, a second one counts the same: opened once the first is
 * armed, on the service thread, while the recorded thread runs already. Below a hundredth the two
 * differ for other reasons (what each was started and stopped by), and where they were not in a
 * counter for the same time (more events than counters) they cannot be compared.
 *
 * A software clock has its own time on a CPU to be compared with. A throttled cpu-clock counts
 * less, and in a program of short bursts more (by 4 % where it sleeps each 10 us): so only a tenth
 * less tells. A task-clock counts that time exactly, and once throttled anything, on Linux 6.18
 * more. Of both the overflows that are due follow from the time.
 *
 * What was missed is added to the event's count: samples and losses make it up.
 */
#include "tool/recorder/recorder_types.h"

#include <string.h>
#include <unistd.h>

#define SHARE	    100 /* one part in so many tells of throttling */
#define CLOCK_SHARE 10

/* What one event counted, and what of it could have overflowed. */
struct pair {
	uint64_t counted;
	int64_t missed;
};

static bool is_throttled_by_kernel(const struct recorder *recorder, uint32_t e)
{
	const struct event_choice *event = &recorder->request->events[e];

	return event->trigger == TRIGGER_PERF_SIGTRAP &&
	       perf_may_throttle(&event->perf, event->period, recorder->sample_rate);
}

static bool is_clock(const struct recorder *recorder, uint32_t e)
{
	return perf_is_clock(&recorder->request->events[e].perf);
}

void throttle_init(struct recorder *recorder)
{
	recorder->sample_rate = perf_max_sample_rate();
	for (uint32_t e = 0; e < recorder->request->nr_events; e++)
		if (is_throttled_by_kernel(recorder, e))
			recorder->throttled |= 1u << e;
}

static bool differ(uint64_t one, uint64_t other)
{
	uint64_t more = one > other ? one - other : other - one;

	return more > (one > other ? one : other) / SHARE;
}

/* Returns false: nothing can be said. */
static bool read_pair(const struct recorder *recorder, const struct event_set *set, uint32_t e,
		      struct pair *ret_pair)
{
	const struct throttle *throttle = &set->throttle;
	struct perf_reading event, all;

	if (!set->armed || set->fds[e] < 0 || perf_reading(set->fds[e], &event))
		return false;
	ret_pair->counted = event.count;
	if (is_clock(recorder, e)) {
		ret_pair->missed = (int64_t)(event.running_ns - event.count);
		return true;
	}
	if (!throttle->watches || throttle->fds[e] < 0 || perf_reading(throttle->fds[e], &all) ||
	    differ(event.running_ns - throttle->ran_ns[e], all.running_ns))
		return false;
	ret_pair->missed = (int64_t)(all.count - event.count);
	return true;
}

static void watch(const struct recorder *recorder, struct event_set *set, uint32_t e, pid_t tid)
{
	const struct event_choice *event = &recorder->request->events[e];
	const struct perf_sampling sampling = {
		.inherit = event->inherited, .kind = event->perf, .period = event->period};
	struct throttle *throttle = &set->throttle;
	struct perf_reading begin = {0};

	throttle->fds[e] = -1;
	if (set->fds[e] < 0 || !(recorder->throttled & 1u << e) || is_clock(recorder, e) ||
	    perf_open_counting(&sampling, tid, &throttle->fds[e]))
		return;
	(void)perf_reading(set->fds[e], &begin);
	(void)perf_enable(throttle->fds[e]);
	throttle->ran_ns[e] = begin.running_ns;
	throttle->begin[e] = -(int64_t)begin.count;
}

static void watch_set(const struct recorder *recorder, struct event_set *set, pid_t tid)
{
	memset(&set->throttle, 0, sizeof(set->throttle));
	for (uint32_t e = 0; e < EVENTS_MAX; e++) {
		set->throttle.fds[e] = -1;
		if (e < recorder->request->nr_events)
			watch(recorder, set, e, tid);
	}
	set->throttle.watches = true;
}

static void unwatch(struct event_set *set)
{
	for (uint32_t e = 0; set->throttle.watches && e < EVENTS_MAX; e++)
		if (set->throttle.fds[e] >= 0)
			close(set->throttle.fds[e]);
	set->throttle.watches = false;
}

/* Around an exec the events stand still, and so do these. */
static void follow(struct event_set *set, bool stopped)
{
	if (!set->throttle.watches || set->throttle.stopped == stopped)
		return;
	set->throttle.stopped = stopped;
	for (uint32_t e = 0; e < EVENTS_MAX; e++)
		if (set->throttle.fds[e] >= 0)
			(void)(stopped ? perf_disable : perf_enable)(set->throttle.fds[e]);
}

void throttle_serve(struct recorder *recorder)
{
	uint32_t slots = drain_slots_in_use(recorder);

	if (!recorder->throttled)
		return;
	if (recorder->shared.set.armed && !recorder->shared.set.throttle.watches)
		watch_set(recorder, &recorder->shared.set, recorder->root_pid);
	follow(&recorder->shared.set, recorder->events_off);
	for (uint32_t i = 0; i < slots; i++) {
		struct event_set *set = &recorder->shadows[i].events;
		struct slot *slot = &recorder->memory.slots[i];

		if (set->armed && !set->throttle.watches)
			watch_set(recorder, set, (pid_t)slot->tid);
		follow(set, recorder->events_off);
	}
}

/* Does it tell of throttling that of @counted + @missed events so many are not counted? */
static bool tells(const struct event_choice *event, uint64_t counted, int64_t missed)
{
	uint64_t all = counted + (uint64_t)missed;

	if (perf_is_task_clock(&event->perf))
		return missed > -(int64_t)counted && differ(counted, all);
	return missed > 0 && (uint64_t)missed >= event->period &&
	       (uint64_t)missed > all / (perf_is_clock(&event->perf) ? CLOCK_SHARE : SHARE);
}

/* Overflows that the kernel kept from an event between the edges of the window. */
static uint64_t missed_overflows(const struct recorder *recorder, const struct event_set *set,
				 uint32_t e, uint64_t came, int64_t *ret_missed)
{
	const struct event_choice *event = &recorder->request->events[e];
	struct pair now = {set->end[e], set->throttle.end[e]};
	uint64_t counted, due;
	int64_t missed;

	if (!(recorder->throttled & 1u << e) || !recorder->window.begun ||
	    !(recorder->window.ended ? set->throttle.end_known & 1u << e
				     : read_pair(recorder, set, e, &now)) ||
	    now.counted < set->begin[e])
		return 0;
	counted = now.counted - set->begin[e];
	missed = now.missed - set->throttle.begin[e];
	if (!tells(event, counted, missed))
		return 0;
	*ret_missed = missed;
	if (!perf_is_clock(&event->perf) ||
	    (event->perf.exclude_kernel && !perf_is_task_clock(&event->perf)))
		return (uint64_t)missed / event->period;
	due = (counted + (uint64_t)missed) / event->period;
	return due > came ? due - came : 0;
}

static uint64_t came(const struct slot *slot, uint32_t e)
{
	return atomic_load_explicit(&slot->samples[e], memory_order_relaxed) +
	       atomic_load_explicit(&slot->refused[e], memory_order_relaxed);
}

static uint64_t settle(struct recorder *recorder, const struct event_set *set, uint32_t e,
		       uint64_t came)
{
	int64_t missed = 0;
	uint64_t lost = missed_overflows(recorder, set, e, came, &missed);

	if (lost)
		recorder->totals.event_count[e] += (uint64_t)missed;
	return lost;
}

void throttle_settle_slot(struct recorder *recorder, struct slot *slot)
{
	struct event_set *set = &recorder->shadows[slot_index(&recorder->memory, slot)].events;

	for (uint32_t e = 0; e < recorder->request->nr_events; e++)
		atomic_fetch_add(&slot->lost[LOSS_KERNEL_THROTTLED],
				 settle(recorder, set, e, came(slot, e)));
	unwatch(set);
}

void throttle_settle_shared(struct recorder *recorder)
{
	struct event_set *set = &recorder->shared.set;

	for (uint32_t e = 0; e < recorder->request->nr_events; e++)
		recorder->totals.lost[LOSS_KERNEL_THROTTLED] +=
			settle(recorder, set, e, recorder->shared.seen[e]);
	unwatch(set);
}

static void read_edge(const struct recorder *recorder, struct event_set *set, bool end)
{
	struct pair pair;

	for (uint32_t e = 0; e < recorder->request->nr_events; e++) {
		if (!(recorder->throttled & 1u << e) || !read_pair(recorder, set, e, &pair))
			continue;
		if (end) {
			set->throttle.end[e] = pair.missed;
			set->throttle.end_known |= 1u << e;
		} else {
			set->throttle.begin[e] = pair.missed;
		}
	}
}

void throttle_window(struct recorder *recorder, bool end)
{
	read_edge(recorder, &recorder->shared.set, end);
	for (uint32_t i = 0; i < recorder->slots_seen; i++)
		read_edge(recorder, &recorder->shadows[i].events, end);
}

void throttle_count_living(struct recorder *recorder)
{
	for (uint32_t e = 0; e < recorder->request->nr_events; e++) {
		uint64_t seen = recorder->shared.seen[e];

		for (uint32_t i = 0; i < recorder->slots_seen; i++) {
			const struct slot *slot = &recorder->memory.slots[i];
			const struct event_set *set = &recorder->shadows[i].events;

			seen += set->armed ? came(slot, e) : 0;
			recorder->totals.lost[LOSS_KERNEL_THROTTLED] +=
				settle(recorder, set, e, came(slot, e));
		}
		recorder->totals.lost[LOSS_KERNEL_THROTTLED] +=
			settle(recorder, &recorder->shared.set, e, seen);
	}
}

void throttle_note(struct recorder *recorder)
{
	uint64_t rate = perf_max_sample_rate();

	if (recorder->throttled && rate && rate < recorder->sample_rate)
		note(recorder,
		     "The kernel lowered kernel.perf_event_max_sample_rate from %llu to %llu "
		     "meanwhile: samples took more of the time than "
		     "kernel.perf_cpu_time_max_percent allows",
		     (unsigned long long)recorder->sample_rate, (unsigned long long)rate);
}
