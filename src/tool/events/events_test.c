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

static int choose(const char *name, uint64_t period, uint64_t frequency)
{
	struct event_request request = {.name = name, .period = period, .frequency = frequency};

	memset(&choice, 0, sizeof(choice));
	memset(&err, 0, sizeof(err));
	return event_choose(&request, TICK_NS, &choice, &err);
}

static bool noted(const char *word)
{
	for (unsigned int i = 0; i < choice.nr_notes; i++) {
		if (strstr(choice.notes[i], word))
			return true;
	}
	return false;
}

static void test_encode__knows_perf_names_and_modifiers(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
		bool no_user, no_kernel, clock;
	} cases[] = {
		{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0, 0},
		{"faults:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 1, 0},
		{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 0, 0, 0},
		{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 0, 0, 0},
		{"cpu-clock:k", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1, 0, 1},
		{"task-clock:uk", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 0, 1},
		{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0, 0},
		{"instructions:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, 1, 0},
		{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct perf_kind kind;
		bool clock;

		assert_int_equal(event_encode(cases[i].name, &kind, &clock, &err), 0);
		assert_int_equal(kind.type, cases[i].type);
		assert_int_equal(kind.config, cases[i].config);
		assert_int_equal(kind.exclude_user, cases[i].no_user);
		assert_int_equal(kind.exclude_kernel, cases[i].no_kernel);
		assert_int_equal(clock, cases[i].clock);
	}
}

static void test_encode__refuses_what_waiting_threads_do(void **state)
{
	static const char *const names[] = {"context-switches", "cs", "cpu-migrations",
					    "sched:sched_switch", "syscalls:sys_enter_read"};
	struct perf_kind kind;
	bool clock;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(event_encode(names[i], &kind, &clock, &err), -ENOTSUP);
		assert_non_null(strstr(err.text, "wait"));
	}
}

static void test_encode__unknown_names_are_named(void **state)
{
	static const char *const names[] = {"bogus", "", ":u", "cycles:q", "cycles:u:period=5x"};
	struct perf_kind kind = {.type = 77};
	bool clock;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(event_encode(names[i], &kind, &clock, &err), -ENOENT);
		assert_non_null(strstr(err.text, "pathprof list"));
		assert_int_equal(kind.type, 77);
	}
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

static void test_time_text__has_a_unit_that_fits(void **state)
{
	char text[EVENT_TIME_BYTES];

	(void)state;
	assert_string_equal(event_time_text(1, text), "1 ns");
	assert_string_equal(event_time_text(999, text), "999 ns");
	assert_string_equal(event_time_text(30000, text), "30 us");
	assert_string_equal(event_time_text(4000000, text), "4 ms");
	assert_string_equal(event_time_text(1500000000, text), "1.5 s");
	assert_string_equal(event_time_text(5000000000000ull, text), "5000 s");
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

static void test_choose__software_events_where_allowed(void **state)
{
	int code = choose("page-faults", 0, 0);

	(void)state;
	if (code == -EPERM || code == -EACCES || code == -ENOSYS)
		skip();
	assert_int_equal(code, 0);
	assert_string_equal(choice.unit, "events");
	assert_int_equal(choice.trigger, TRIGGER_PERF_SIGTRAP);
	assert_int_equal(choice.period, 101);
	assert_int_equal(choose("cpu-clock:u", 0, 2000), 0);
	assert_string_equal(choice.unit, "ns");
	assert_int_equal(choice.period, 500000);
	assert_true(choice.perf.exclude_kernel);
	assert_false(noted("Kernel time"));
	assert_int_equal(choose("cpu-clock", 1, 0), 0);
	assert_int_equal(choice.period, EVENT_CLOCK_MIN_NS);
	assert_true(noted("starve"));
}

static void test_choose__default_follows_the_pmu(void **state)
{
	struct perf_kind cycles = {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES};
	bool pmu = perf_allowed(&cycles) == 0;

	(void)state;
	assert_int_equal(choose(NULL, 0, 0), 0);
	assert_string_equal(choice.name, pmu ? "cycles" : "cpu-time");
	assert_int_equal(choose(NULL, 0, 100), 0);
	assert_string_equal(choice.name, "cpu-time");
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
		cmocka_unit_test(test_encode__knows_perf_names_and_modifiers),
		cmocka_unit_test(test_encode__refuses_what_waiting_threads_do),
		cmocka_unit_test(test_encode__unknown_names_are_named),
		cmocka_unit_test(test_choose__cpu_time_never_goes_below_the_tick),
		cmocka_unit_test(test_time_text__has_a_unit_that_fits),
		cmocka_unit_test(test_choose__period_and_frequency_together_are_usage),
		cmocka_unit_test(test_choose__software_events_where_allowed),
		cmocka_unit_test(test_choose__default_follows_the_pmu),
		cmocka_unit_test(test_list__every_row_is_available_or_says_why),
		cmocka_unit_test(test_checks__every_no_names_a_knob),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
