/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "tool/events/events.h"

#define TICK_NS 4000000

static struct event_choice choice;
static struct errbuf err;

/* A machine as a test wants it: what opening says by kind of event and by delivery. */
static struct {
	int pmu[2], software[2], tracepoint; /* by enum perf_delivery */
	int timer, calls, duplicate;
	bool no_kernel; /* the kernel's side is refused */
	enum perf_sigtrap sigtrap;
	unsigned int probes;
	size_t most; /* events at once */
} world;

static int world_allowed(struct perf_kind *kind, enum perf_delivery delivery)
{
	int code = kind->type == PERF_TYPE_SOFTWARE	? world.software[delivery]
		   : kind->type == PERF_TYPE_TRACEPOINT ? world.tracepoint
							: world.pmu[delivery];

	if (!code && world.no_kernel)
		kind->exclude_kernel = true;
	return code;
}

static enum perf_sigtrap world_sigtrap(void)
{
	world.probes++;
	return world.sigtrap;
}

static int world_calls(struct errbuf *ret_cause)
{
	return world.calls ? errbuf_set(ret_cause, world.calls, "calls are broken off") : 0;
}

static int world_together(const struct event_choices *all, size_t *ret_index)
{
	if (all->nr <= world.most)
		return 0;
	*ret_index = world.most;
	return -ENOSPC;
}

static int world_timer(void)
{
	return world.timer;
}

static int world_duplicate(void)
{
	return world.duplicate;
}

static struct event_machine world_machine(void)
{
	return (struct event_machine){.tick_ns = TICK_NS,
				      .allowed = world_allowed,
				      .sigtrap = world_sigtrap,
				      .calls = world_calls,
				      .cpu_timer = world_timer,
				      .duplicate = world_duplicate,
				      .together = world_together};
}

/* Everything works. */
static int world_reset(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.sigtrap = PERF_SIGTRAP_WORKS;
	world.most = EVENTS_MAX;
	return 0;
}

/* A virtual machine: no PMU. */
static void world_without_pmu(void)
{
	world_reset(NULL);
	world.pmu[PERF_BY_SIGTRAP] = world.pmu[PERF_BY_SIGNAL] = -ENOENT;
}

/* A container: perf_event_open is forbidden. */
static void world_without_perf(int code)
{
	world_reset(NULL);
	for (int delivery = 0; delivery < 2; delivery++)
		world.pmu[delivery] = world.software[delivery] = code;
}

static int choose_request(struct event_request request)
{
	struct event_machine machine = world_machine();

	memset(&choice, 0, sizeof(choice));
	memset(&err, 0, sizeof(err));
	return event_choose(&request, &machine, &choice, &err);
}

static int choose(const char *name, uint64_t period, uint64_t frequency)
{
	return choose_request(
		(struct event_request){.name = name, .period = period, .frequency = frequency});
}

static int choose_by(const char *name, const char *how)
{
	struct event_request request = {.name = name};

	assert_int_equal(event_trigger_parse(how, &request, &err), 0);
	return choose_request(request);
}

static bool headed(const char *word)
{
	for (unsigned int i = 0; i < choice.nr_headlines; i++) {
		if (strstr(choice.headlines[i], word))
			return true;
	}
	return false;
}

static bool noted(const char *word)
{
	for (unsigned int i = 0; i < choice.nr_notes; i++) {
		if (strstr(choice.notes[i], word))
			return true;
	}
	return false;
}

static void test_choose__cpu_time_never_goes_below_the_tick(void **state)
{
	(void)state;
	assert_int_equal(choose("cpu-time", 0, 0), 0);
	assert_int_equal(choice.period, TICK_NS);
	assert_int_equal(choice.trigger, TRIGGER_CPU_TIMER);
	assert_false(noted("tick"));
	assert_true(noted("Waiting is not seen"));
	assert_int_equal(choose("cpu-time", 0, 1000), 0);
	assert_int_equal(choice.period, TICK_NS);
	assert_true(noted("every 4 ms, not every 1 ms"));
	assert_true(noted("250 times a second"));
	assert_int_equal(choose("cpu-time", 1, 0), 0);
	assert_true(noted("every 4 ms, not every 1 ns"));
	assert_int_equal(choose("cpu-time", 0, 100), 0);
	assert_int_equal(choice.period, 10000000);
	assert_int_equal(choose("cpu-time", 7000000, 0), 0);
	assert_int_equal(choice.period, 7000000);
}

static void test_choose__period_and_frequency_together_are_usage(void **state)
{
	(void)state;
	assert_int_equal(choose("cpu-time", 5, 5), -EINVAL);
	assert_int_equal(choose("bogus", 0, 0), -EINVAL);
	assert_int_equal(choose("cs", 0, 0), -EINVAL);
	assert_int_equal(choose("page-faults", 0, 100), -EINVAL);
	assert_non_null(strstr(err.text, "-c PERIOD"));
}

static void test_choose__cpu_time_takes_no_modifier_and_no_terms(void **state)
{
	static const char *const names[] = {"cpu-time:u", "cpu-time:k", "cpu-time:q",
					    "cpu-time:", "cpu-time//u"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(choose(names[i], 0, 0), -EINVAL);
		assert_non_null(strstr(err.text, "takes no modifier"));
		assert_non_null(strstr(err.text, "cpu-clock:u"));
	}
	assert_int_equal(choose("cpu-time/foo=10/", 0, 0), -EINVAL);
	assert_non_null(strstr(err.text, "period=N and freq=N"));
	assert_int_equal(choose("cpu-timer", 0, 0), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'cpu-time'"));
}

static void test_choose__software_events(void **state)
{
	(void)state;
	assert_int_equal(choose("page-faults", 0, 0), 0);
	assert_string_equal(choice.unit, "events");
	assert_int_equal(choice.trigger, TRIGGER_PERF_SIGTRAP);
	assert_int_equal(choice.period, 101);
	assert_int_equal(world.probes, 1);
	assert_int_equal(choose("cpu-clock:u", 0, 2000), 0);
	assert_string_equal(choice.unit, "ns");
	assert_int_equal(choice.period, 499979); /* the prime below */
	assert_true(choice.perf.exclude_kernel);
	assert_false(choice.user_only);
	assert_false(headed("Kernel time"));
	assert_int_equal(choose("cpu-clock", 0, 0), 0);
	assert_int_equal(choice.period, 999983);
	assert_int_equal(choose("cpu-clock", 1000000, 0), 0);
	assert_int_equal(choice.period, 1000000); /* -c is taken at its word */
	assert_int_equal(choose("cpu-clock", 1, 0), 0);
	assert_int_equal(choice.period, EVENT_CLOCK_MIN_NS);
	assert_true(noted("starve"));
}

static void test_choose__kernel_time_that_is_refused_is_a_headline(void **state)
{
	(void)state;
	world.no_kernel = true;
	assert_int_equal(choose("page-faults", 0, 0), 0);
	assert_true(choice.user_only && choice.perf.exclude_kernel);
	assert_true(headed("Kernel time is not included: page-faults"));
	assert_true(headed("perf_event_paranoid"));
	assert_int_equal(choose("page-faults:u", 0, 0), 0);
	assert_false(choice.user_only);
	assert_int_equal(choice.nr_headlines, 0);
}

static void test_ladder__from_the_highest_rung_down(void **state)
{
	(void)state;
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_string_equal(choice.name, "cycles");
	assert_int_equal(choice.trigger, TRIGGER_PERF_SIGTRAP);
	assert_string_equal(choice.descent, "");

	world.pmu[PERF_BY_SIGTRAP] = -EINVAL; /* a kernel before 5.13 */
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_string_equal(choice.name, "cycles");
	assert_int_equal(choice.trigger, TRIGGER_PERF_ASYNC);
	assert_true(noted("5.13"));
	assert_true(choice.perf.exclude_kernel && choice.user_only);
	assert_true(headed("Kernel time is not included"));

	world_without_pmu();
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choice.trigger, TRIGGER_CPU_TIMER);
	assert_non_null(strstr(choice.descent, "no PMU"));
	assert_int_equal(choice.nr_headlines, 0);

	world.timer = -EAGAIN;
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_string_equal(choice.name, "cpu-clock");
	assert_int_equal(choice.trigger, TRIGGER_PERF_SIGTRAP);

	world_without_perf(-EPERM);
	world.timer = -EAGAIN;
	assert_int_equal(choose(NULL, 0, 0), -EAGAIN);
	assert_non_null(strstr(err.text, "ulimit -i"));
}

static void choose_jittered(const char *name, uint64_t period, enum event_jitter jitter)
{
	struct event_request request = {
		.name = name, .period = period, .trigger = TRIGGER_PERF_ASYNC, .jitter = jitter};

	assert_int_equal(choose_request(request), 0);
}

static void test_jitter__is_half_a_period_where_nobody_asked_for_one(void **state)
{
	(void)state;
	choose_jittered("cycles", 0, EVENT_JITTER_AUTO);
	assert_int_equal(choice.jitter, 1000001);
	choose_jittered("cycles", 0, EVENT_JITTER_NO);
	assert_int_equal(choice.jitter, 0);
	choose_jittered("cycles", 100000, EVENT_JITTER_AUTO);
	assert_int_equal(choice.jitter, 0); /* -c is taken at its word */
	choose_jittered("cycles", 100000, EVENT_JITTER_YES);
	assert_int_equal(choice.jitter, 50000);
	assert_false(noted("one period"));
	/* The shortest period is that at which the handler does not overflow. */
	choose_jittered("cycles", 30000, EVENT_JITTER_YES);
	assert_int_equal(choice.jitter, 10000);
	choose_jittered("cycles", 5000, EVENT_JITTER_YES);
	assert_int_equal(choice.period, 20000);
	assert_int_equal(choice.jitter, 0);
	assert_true(noted("one period"));
	choose_jittered("page-faults", 1, EVENT_JITTER_YES);
	assert_int_equal(choice.jitter, 0);
	assert_int_equal(choose("cycles", 0, 0), 0); /* by SIGTRAP */
	assert_int_equal(choice.jitter, 0);
}

static void test_ladder__a_rate_in_time_is_served_by_a_clock(void **state)
{
	(void)state;
	assert_int_equal(choose(NULL, 0, 100), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choice.period, 10000000);
	world.timer = -EAGAIN;
	assert_int_equal(choose(NULL, 0, 100), 0);
	assert_string_equal(choice.name, "cpu-clock");
	assert_int_equal(choice.period, 9999991);
}

static void test_ladder__a_kernel_that_kills_is_not_asked_for_sigtrap(void **state)
{
	(void)state;
	world.sigtrap = PERF_SIGTRAP_KILLS_BLOCKED;
	assert_int_equal(choose("cycles", 0, 0), 0);
	assert_int_equal(choice.trigger, TRIGGER_PERF_ASYNC);
	assert_true(noted("kills a thread that blocks SIGTRAP"));
	world.pmu[PERF_BY_SIGNAL] = -EOPNOTSUPP;
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_non_null(strstr(choice.descent, "kills"));
	assert_int_equal(choose("cpu-clock", 5000000, 0), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choice.period, 5000000);
	assert_true(headed("cpu-clock is not sampled"));
	assert_int_equal(choose_by("cycles", "perf-sigtrap"), -ENOTSUP);
	assert_non_null(strstr(err.text, "kills"));
	world.sigtrap = PERF_SIGTRAP_SILENT;
	assert_int_equal(choose_by("cpu-clock", "cpu-clock"), -ENOTSUP);
	assert_non_null(strstr(err.text, "doctor"));
}

static void test_ladder__an_event_that_stands_for_time_goes_on_with_a_headline(void **state)
{
	(void)state;
	world_without_pmu();
	assert_int_equal(choose("cycles", 1000, 0), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choice.period, TICK_NS); /* 1000 cycles are no time */
	assert_true(headed("cycles is not sampled"));
	assert_true(headed("no PMU") && headed("cpu-time is, by cpu-timer"));
	assert_true(headed("--trigger=perf-sigtrap"));
	assert_int_equal(choose("cycles:u", 0, 0), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choose("cycles:k", 0, 0), -ENOENT); /* no other measure of that */
	assert_int_equal(choose("cache-misses", 0, 0), -ENOENT);
	assert_non_null(strstr(err.text, "no PMU"));
	assert_int_equal(choose("instructions", 0, 0), -ENOENT);
	world_without_perf(-EPERM);
	assert_int_equal(choose("cpu-clock", 0, 100), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choice.period, 10000000);
	assert_true(headed("seccomp"));
	assert_int_equal(choose("page-faults", 0, 0), -EPERM);
	assert_non_null(strstr(err.text, "seccomp"));
}

static void test_ladder__a_trigger_that_was_asked_for_is_the_only_one(void **state)
{
	(void)state;
	world_without_pmu();
	assert_int_equal(choose_by("cycles", "perf-sigtrap"), -ENOENT);
	assert_int_equal(choose_by(NULL, "perf-sigtrap"), -ENOENT);
	assert_int_equal(choose_by("cycles", "perf-async"), -ENOENT);
	assert_int_equal(choose_by(NULL, "perf-async"), -ENOENT);
	assert_int_equal(choose_by(NULL, "cpu-timer"), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_int_equal(choose_by(NULL, "cpu-clock"), 0);
	assert_string_equal(choice.name, "cpu-clock");
	assert_int_equal(choice.trigger, TRIGGER_PERF_SIGTRAP);
	world.timer = -EAGAIN;
	assert_int_equal(choose_by(NULL, "cpu-timer"), -EAGAIN);
	world_reset(NULL);
	assert_int_equal(choose_by(NULL, "perf-async"), 0);
	assert_string_equal(choice.name, "cycles");
	assert_int_equal(choice.trigger, TRIGGER_PERF_ASYNC);
	world.pmu[PERF_BY_SIGTRAP] = -EINVAL; /* what the kernel says so is no wrong usage */
	assert_int_equal(choose_by("cycles", "perf-sigtrap"), -ENOTSUP);
}

/* IOC_REFRESH on a software clock freezes whole machines; a signal in a call breaks it off. */
static void test_ladder__what_never_comes_by_an_asynchronous_signal(void **state)
{
	static const char *const names[] = {"cpu-clock", "task-clock", "cpu-clock:u", "cycles:k",
					    "mem:0x1000:w"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(choose_by(names[i], "perf-async"), -EINVAL);
		assert_non_null(strstr(err.text, "perf-async"));
		world.software[PERF_BY_SIGTRAP] = world.pmu[PERF_BY_SIGTRAP] = -EINVAL;
		if (!choose(names[i], 0, 0))
			assert_int_not_equal(choice.trigger, TRIGGER_PERF_ASYNC);
		world_reset(NULL);
	}
}

/* Threads re-arm through a duplicate of the recorder's descriptor: without one there is no rung. */
static void test_ladder__no_duplicate_no_asynchronous_signal(void **state)
{
	(void)state;
	world.duplicate = -ENOSYS; /* a kernel before 5.6 */
	assert_int_equal(choose_by("cycles", "perf-async"), -ENOSYS);
	assert_non_null(strstr(err.text, "pidfd_getfd, which is not there (ENOSYS); Linux has it "
					 "since 5.6"));
	world.pmu[PERF_BY_SIGTRAP] = -EINVAL;
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_int_equal(choice.trigger, TRIGGER_CPU_TIMER);
	assert_non_null(strstr(choice.descent, "Linux 5.13 or later; nor by perf-async: an "
					       "asynchronous signal needs pidfd_getfd"));
	assert_int_equal(choose("cycles", 0, 0), 0);
	assert_int_equal(choice.trigger, TRIGGER_CPU_TIMER);
	assert_true(headed("cycles is not sampled: ") && headed("since 5.6"));
	world.duplicate = -EPERM;
	assert_int_equal(choose_by("page-faults", "perf-async"), -EPERM);
	assert_non_null(strstr(err.text, "forbidden"));
	world.duplicate = 0;
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_int_equal(choice.trigger, TRIGGER_PERF_ASYNC);
}

/* YAMA: a process may open an event for itself, but not for a child. */
static void test_ladder__events_for_others_that_are_refused_are_none(void **state)
{
	(void)state;
	world.sigtrap = PERF_SIGTRAP_OWN_ALONE;
	world.duplicate = -EPERM;
	assert_int_equal(choose("cpu-clock", 0, 0), 0);
	assert_string_equal(choice.name, "cpu-time");
	assert_true(headed("not permitted for this thread"));
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_int_equal(choice.trigger, TRIGGER_CPU_TIMER);
	assert_int_equal(choose("page-faults", 0, 0), -EACCES);
	assert_int_equal(choose_by("cpu-clock", "cpu-clock"), -EACCES);
}

static void test_ladder__triggers_that_do_not_fit_are_usage(void **state)
{
	static const char *const pairs[][2] = {{"cpu-time", "perf-sigtrap"},
					       {"cpu-time", "perf-async"},
					       {"cpu-time", "cpu-clock"},
					       {"cycles", "cpu-timer"},
					       {"page-faults", "cpu-clock"}};
	struct event_request request = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_int_equal(choose_by(pairs[i][0], pairs[i][1]), -EINVAL);
	assert_int_equal(event_trigger_parse("pmu", &request, &err), -EINVAL);
	assert_non_null(strstr(err.text, "perf-sigtrap"));
}

static struct event_choices choices;

static int choose_all(const char *list, struct event_request common)
{
	struct event_machine machine = world_machine();
	struct event_wish wish = {.common = common};

	choices.nr = 0;
	assert_int_equal(event_parse(list, &wish, &err), 0);
	return event_choose_all(&wish, &machine, &choices, &err);
}

static void test_several__each_its_own_period_else_the_common_one(void **state)
{
	(void)state;
	assert_int_equal(choose_all("cpu-time,page-faults/period=7/,cycles",
				    (struct event_request){.frequency = 100}),
			 0);
	assert_int_equal(choices.nr, 3);
	assert_int_equal(choices.events[0].period, 10000000);
	assert_int_equal(choices.events[1].period, 7);
	assert_int_equal(choices.events[2].period, 2000003); /* -F is for time */
	assert_int_equal(
		choose_all("page-faults,cycles/period=9/", (struct event_request){.period = 5}), 0);
	assert_int_equal(choices.events[0].period, 5);
	assert_int_equal(choices.events[1].period, 9);
	assert_int_equal(world.probes, 2); /* one a recording */
	assert_int_equal(choose_all("page-faults,cycles", (struct event_request){.frequency = 5}),
			 -EINVAL);
	assert_non_null(strstr(err.text, "-c PERIOD"));
	/* What is said is said of the words that were given. */
	assert_int_equal(choose_all("page-faults/freq=10/", (struct event_request){0}), -EINVAL);
	assert_non_null(strstr(err.text, "freq=N needs"));
	assert_non_null(strstr(err.text, "period=N"));
	assert_null(strstr(err.text, "-c"));
	assert_int_equal(choose_all("cpu-time/freq=2G/", (struct event_request){0}), -EINVAL);
	assert_non_null(strstr(err.text, "freq=N takes"));
}

static void test_several__an_event_goes_into_a_recording_once(void **state)
{
	(void)state;
	assert_int_equal(choose_all("cpu-time,cpu-time", (struct event_request){0}), -EINVAL);
	assert_int_equal(choose_all("page-faults,faults", (struct event_request){0}), -EINVAL);
	assert_non_null(strstr(err.text, "'page-faults' and 'faults'"));
	assert_int_equal(choose_all("page-faults,faults:u", (struct event_request){0}), 0);
	assert_int_equal(choices.nr, 2);
	world_without_pmu();
	assert_int_equal(choose_all("cycles,page-faults,cpu-time/period=9000000/",
				    (struct event_request){0}),
			 0);
	assert_int_equal(choices.nr, 2);
	assert_string_equal(choices.events[0].name, "cpu-time");
	assert_int_equal(choices.events[0].period, 9000000);
	assert_int_equal(choices.events[0].nr_headlines, 1);
	assert_int_equal(choose_all("cpu-time/period=9000000/,cycles", (struct event_request){0}),
			 0);
	assert_int_equal(choices.nr, 1);
	assert_int_equal(choices.events[0].period, 9000000);
	assert_int_equal(choices.events[0].nr_headlines, 1);
}

static void test_several__cpu_time_keeps_its_timer_beside_a_forced_trigger(void **state)
{
	static const char *const how[] = {"perf-sigtrap", "perf-async", "cpu-clock"};
	static const enum trigger trigger[] = {TRIGGER_PERF_SIGTRAP, TRIGGER_PERF_ASYNC,
					       TRIGGER_PERF_SIGTRAP};
	struct event_request common = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const char *list = i == 2 ? "cpu-clock,cpu-time" : "page-faults,cpu-time";

		assert_int_equal(event_trigger_parse(how[i], &common, &err), 0);
		assert_int_equal(choose_all(list, common), 0);
		assert_int_equal(choices.nr, 2);
		assert_int_equal(choices.events[0].trigger, trigger[i]);
		assert_int_equal(choices.events[1].trigger, TRIGGER_CPU_TIMER);
		assert_int_equal(choose_all("cpu-time", common), -EINVAL);
		/* Insisted on as well: no clock comes in its place. */
		world.timer = -EAGAIN;
		assert_int_equal(choose_all(list, common), -EAGAIN);
		world_reset(NULL);
	}
}

static void test_several__more_than_fit_at_once_are_refused(void **state)
{
	(void)state;
	world.most = 2;
	assert_int_equal(choose_all("mem:16:w,mem:32:w", (struct event_request){0}), 0);
	assert_int_equal(choose_all("mem:16:w,mem:32:w,mem:48:w", (struct event_request){0}),
			 -ENOSPC);
	assert_non_null(strstr(err.text, "mem:48:w"));
}

static void test_ladder__an_asynchronous_signal_has_a_shortest_period(void **state)
{
	struct event_request request = {
		.name = "cycles", .period = 100, .trigger = TRIGGER_PERF_ASYNC};

	(void)state;
	assert_int_equal(choose_request(request), 0);
	assert_true(choice.period >= perf_signal_period_min(&choice.perf));
	assert_true(noted("shorter period"));
}

static void test_inherit__is_said_and_goes_by_sigtrap_alone(void **state)
{
	struct event_request request = {.name = "cycles", .inherit = true};

	(void)state;
	assert_int_equal(choose_request(request), 0);
	assert_true(choice.inherited && noted("too rarely"));
	request.trigger = TRIGGER_PERF_ASYNC;
	assert_int_equal(choose_request(request), 0);
	assert_true(!choice.inherited && noted("not inherited"));
}

static void count_row(void *user, const struct event_row *row)
{
	unsigned int *rows = user;

	assert_int_equal(row->available, row->reason.text[0] == 0);
	(*rows)++;
}

static void test_list__every_row_is_available_or_says_why(void **state)
{
	unsigned int rows = 0;

	(void)state;
	event_list(count_row, &rows);
	assert_true(rows > 10);
}

static void count_check(void *user, const struct check *check)
{
	unsigned int *checks = user;

	assert_true(check->found[0]);
	if (check->result == CHECK_NO)
		assert_true(check->knob[0]);
	(*checks)++;
}

static void test_checks__every_no_names_a_knob(void **state)
{
	unsigned int checks = 0;

	(void)state;
	event_checks(count_check, &checks);
	assert_true(checks >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_choose__cpu_time_never_goes_below_the_tick,
				       world_reset),
		cmocka_unit_test_setup(test_choose__period_and_frequency_together_are_usage,
				       world_reset),
		cmocka_unit_test_setup(test_choose__cpu_time_takes_no_modifier_and_no_terms,
				       world_reset),
		cmocka_unit_test_setup(test_choose__software_events, world_reset),
		cmocka_unit_test_setup(test_choose__kernel_time_that_is_refused_is_a_headline,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__from_the_highest_rung_down, world_reset),
		cmocka_unit_test_setup(test_jitter__is_half_a_period_where_nobody_asked_for_one,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__a_rate_in_time_is_served_by_a_clock,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__a_kernel_that_kills_is_not_asked_for_sigtrap,
				       world_reset),
		cmocka_unit_test_setup(
			test_ladder__an_event_that_stands_for_time_goes_on_with_a_headline,
			world_reset),
		cmocka_unit_test_setup(test_ladder__a_trigger_that_was_asked_for_is_the_only_one,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__what_never_comes_by_an_asynchronous_signal,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__no_duplicate_no_asynchronous_signal,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__events_for_others_that_are_refused_are_none,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__triggers_that_do_not_fit_are_usage,
				       world_reset),
		cmocka_unit_test_setup(test_several__each_its_own_period_else_the_common_one,
				       world_reset),
		cmocka_unit_test_setup(test_several__an_event_goes_into_a_recording_once,
				       world_reset),
		cmocka_unit_test_setup(
			test_several__cpu_time_keeps_its_timer_beside_a_forced_trigger,
			world_reset),
		cmocka_unit_test_setup(test_several__more_than_fit_at_once_are_refused,
				       world_reset),
		cmocka_unit_test_setup(test_ladder__an_asynchronous_signal_has_a_shortest_period,
				       world_reset),
		cmocka_unit_test_setup(test_inherit__is_said_and_goes_by_sigtrap_alone,
				       world_reset),
		cmocka_unit_test_setup(test_list__every_row_is_available_or_says_why, world_reset),
		cmocka_unit_test_setup(test_checks__every_no_names_a_knob, world_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
