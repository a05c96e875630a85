/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "tool/events/events.h"
#include "tool/events/pmu.h"
#include "tool/events/tracepoint.h"

static struct errbuf err;

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
	static const char *const names[] = {"context-switches",	    "cs",
					    "cpu-migrations",	    "sched:sched_switch",
					    "sched:sched_waking:u", "syscalls:sys_exit_read",
					    "raw_syscalls:sys_exit"};
	struct perf_kind kind;
	bool clock;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(event_encode(names[i], &kind, &clock, &err), -ENOTSUP);
		assert_non_null(strstr(err.text, "wait"));
		assert_non_null(strstr(err.text, "--wall"));
	}
}

static void test_encode__raw_codes_are_the_processors(void **state)
{
	struct perf_kind kind;
	bool clock = true;

	(void)state;
	assert_int_equal(event_encode("r01c2", &kind, &clock, &err), 0);
	assert_int_equal(kind.type, PERF_TYPE_RAW);
	assert_int_equal(kind.config, 0x1c2);
	assert_false(kind.exclude_kernel || kind.exclude_user || clock);
	assert_int_equal(event_encode("rC2:u", &kind, &clock, &err), 0);
	assert_int_equal(kind.config, 0xc2);
	assert_true(kind.exclude_kernel);
	assert_int_equal(event_encode("r", &kind, &clock, &err), -ENOENT);
	assert_int_equal(event_encode("r11112222333344445", &kind, &clock, &err), -ENOENT);
}

static void test_encode__breakpoints_as_perf_writes_them(void **state)
{
	static const struct {
		const char *name;
		uint64_t address, length;
		uint32_t access;
		bool no_user, no_kernel;
	} cases[] = {
		{"mem:0x1000", 0x1000, 4, HW_BREAKPOINT_RW, 0, 0},
		{"mem:4096/8:w", 0x1000, 8, HW_BREAKPOINT_W, 0, 0},
		{"mem:0x1001/1:r:u", 0x1001, 1, HW_BREAKPOINT_R, 0, 1},
		{"mem:0x401003:x", 0x401003, sizeof(long), HW_BREAKPOINT_X, 0, 0},
		{"mem:0x1000:rw:k", 0x1000, 4, HW_BREAKPOINT_RW, 1, 0},
	};
	static const char *const wrong[] = {
		"mem:",		"mem:main",	  "mem:0x1000/3:w",	    "mem:0x1001/4",
		"mem:0x1000:q", "mem:0x1000:rwx", "mem:0x1000/4:x",	    "mem:-5",
		"mem:0x1000/",	"mem:0x1000:",	  "mem:0x11112222333344445"};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct perf_kind kind;
		bool clock;

		assert_int_equal(event_encode(cases[i].name, &kind, &clock, &err), 0);
		assert_int_equal(kind.type, PERF_TYPE_BREAKPOINT);
		assert_int_equal(kind.config1, cases[i].address);
		assert_int_equal(kind.config2, cases[i].length);
		assert_int_equal(kind.bp_type, cases[i].access);
		assert_int_equal(kind.exclude_user, cases[i].no_user);
		assert_int_equal(kind.exclude_kernel, cases[i].no_kernel);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct perf_kind kind = {.type = 77};
		bool clock;

		assert_int_equal(event_encode(wrong[i], &kind, &clock, &err), -ENOENT);
		assert_non_null(strstr(err.text, wrong[i]));
		assert_int_equal(kind.type, 77);
	}
}

static void put_file(const char *root, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A PMU's own words are no way around what its names refuse. */
static void test_pmu__numbers_are_no_way_around_a_refusal(void **state)
{
	static const struct {
		const char *name, *word;
	} refused[] = {{"software/config=3/", "record with --wall"},
		       {"software/config=4/u", "record with --wall"},
		       {"software/config=9/", "counts nothing"},
		       {"tracepoint/config=320/", "GROUP:NAME"},
		       {"uprobe/config=1/", "GROUP:NAME"},
		       {"breakpoint/config1=4096/", "mem:ADDRESS"}};
	struct perf_kind kind;
	bool clock = false;

	(void)state;
	if (event_encode("software/config=0/", &kind, &clock, &err) == -ENODEV)
		skip();
	assert_true(clock);
	assert_int_equal(event_encode("software/config=1/u", &kind, &clock, &err), 0);
	assert_true(clock && kind.exclude_kernel);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int code = event_encode(refused[i].name, &kind, &clock, &err);

		if (code == -ENODEV)
			continue; /* a kernel without probes */
		assert_int_equal(code, -ENOTSUP);
		assert_non_null(strstr(err.text, refused[i].word));
		assert_non_null(strstr(err.text, refused[i].name));
	}
}

static void test_pmu__words_of_sysfs(void **state)
{
	char root[] = "/tmp/pathprof-pmu-XXXXXX", command[128];
	struct perf_kind kind = {0};

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "mkdir -p %s/cpu/format %s/cpu/events", root, root);
	assert_int_equal(system(command), 0);
	put_file(root, "cpu/type", "4\n");
	put_file(root, "cpu/format/event", "config:0-7,32-35\n");
	put_file(root, "cpu/format/umask", "config:8-15\n");
	put_file(root, "cpu/format/edge", "config:18\n");
	put_file(root, "cpu/format/ldlat", "config1:0-15\n");
	put_file(root, "cpu/events/uops", "event=0xc2,umask=0x02\n");
	put_file(root, "cpu/events/loop", "loop\n");

	assert_int_equal(pmu_encode(root, "cpu/event=0x1c2,umask=1,edge/", &kind, &err), 0);
	assert_int_equal(kind.type, 4);
	assert_int_equal(kind.config, 0x1000401c2);
	assert_false(kind.exclude_kernel || kind.exclude_user);
	assert_int_equal(pmu_encode(root, "cpu/uops,ldlat=3/u", &kind, &err), 0);
	assert_int_equal(kind.config, 0x2c2);
	assert_int_equal(kind.config1, 3);
	assert_true(kind.exclude_kernel && !kind.exclude_user);
	assert_int_equal(pmu_encode(root, "cpu/config=0x1c2/", &kind, &err), 0);
	assert_int_equal(kind.config, 0x1c2);
	assert_int_equal(pmu_encode(root, "cpu/event=0x1000/", &kind, &err), -ENOENT);
	assert_non_null(strstr(err.text, "does not fit"));
	assert_int_equal(pmu_encode(root, "cpu/event=x/", &kind, &err), -ENOENT);
	assert_int_equal(pmu_encode(root, "cpu/bogus/", &kind, &err), -ENOENT);
	assert_int_equal(pmu_encode(root, "cpu/loop/", &kind, &err), -ENOENT);
	assert_int_equal(pmu_encode(root, "cpu/../type/", &kind, &err), -ENOENT);
	assert_int_equal(pmu_encode(root, "cpu/uops/q", &kind, &err), -ENOENT);
	assert_int_equal(pmu_encode(root, "cpu//", &kind, &err), -ENOENT);
	assert_int_equal(pmu_encode(root, "gpu/uops/", &kind, &err), -ENODEV);
	assert_non_null(strstr(err.text, "'gpu'"));
	assert_int_equal(kind.config, 0x1c2);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void test_parse__names_periods_and_lists(void **state)
{
	static const struct {
		const char *list, *name[3];
		uint64_t period[3], frequency[3];
	} cases[] = {
		{"cycles", {"cycles"}, {0}, {0}},
		{"cycles:u,page-faults", {"cycles:u", "page-faults"}, {0}, {0}},
		{"cycles/period=1000/", {"cycles"}, {1000}, {0}},
		{"cycles/period=1000/u", {"cycles:u"}, {1000}, {0}},
		{"cpu-time/freq=100/,cs", {"cpu-time", "cs"}, {0}, {100}},
		{"cpu/event=0xc2,umask=1/", {"cpu/event=0xc2,umask=1/"}, {0}, {0}},
		{"cpu/event=0xc2,period=7,umask=1/u,r1c2",
		 {"cpu/event=0xc2,umask=1/u", "r1c2"},
		 {7},
		 {0}},
		{"mem:0x10/8:w,mem:0x20,faults", {"mem:0x10/8:w", "mem:0x20", "faults"}, {0}, {0}},
		{"mem:0x10/8:w/period=3/", {"mem:0x10/8:w"}, {3}, {0}},
		{"mem:0x10/8", {"mem:0x10/8"}, {0}, {0}},
		{"cpu-time/period=20M/,cycles/freq=2k/,faults/period=3G/u",
		 {"cpu-time", "cycles", "faults:u"},
		 {20000000, 0, 3000000000},
		 {0, 2000}},
	};
	static const char *const wrong[] = {"",
					    ",cycles",
					    "cycles,",
					    "a,,b",
					    "cycles/period=0/",
					    "cycles/period=x/",
					    "cycles/period=M/",
					    "cycles/period=1Mx/",
					    "cycles/period=20000000000G/",
					    "cycles/period=5,freq=5/",
					    "cycles/period=99999999999999999999/",
					    "a,b,c,d,e,f,g,h,i"};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event_wish wish = {.nr = 0};

		assert_int_equal(event_parse(cases[i].list, &wish, &err), 0);
		for (size_t e = 0; e < wish.nr; e++) {
			assert_string_equal(wish.specs[e].name, cases[i].name[e]);
			assert_int_equal(wish.specs[e].period, cases[i].period[e]);
			assert_int_equal(wish.specs[e].frequency, cases[i].frequency[e]);
		}
		assert_true(wish.nr == 3 || !cases[i].name[wish.nr]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct event_wish wish = {.nr = 0};

		assert_int_equal(event_parse(wrong[i], &wish, &err), -EINVAL);
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

static int encode(const char *name)
{
	struct perf_kind kind;
	bool clock;

	memset(&err, 0, sizeof(err));
	return event_encode(name, &kind, &clock, &err);
}

static void test_encode__slips_are_answered_with_a_name(void **state)
{
	(void)state;
	assert_int_equal(encode("page-faultz"), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean 'page-faults'?"));
	assert_int_equal(encode("cpu-tme:u"), -ENOENT);
	assert_int_equal(encode("alignment-fault"), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean 'alignment-faults'?"));
	assert_int_equal(encode("bogus"), -ENOENT);
	assert_null(strstr(err.text, "did you mean"));
}

/* Also of events that libpfm4 does not know. */
static void test_encode__modifiers_are_u_and_k(void **state)
{
	static const char *const names[] = {"page-faults:q", "alignment-faults:q", "r01c2:x",
					    "page-faults:uq"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(encode(names[i]), -ENOENT);
		assert_non_null(strstr(err.text, "u and k may stand"));
	}
}

static void test_encode__terms_are_for_pmus(void **state)
{
	static const char *const names[] = {"page-faults/foo=10/", "alignment-faults/x/u",
					    "r01c2/x/"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(encode(names[i]), -ENOENT);
		assert_non_null(strstr(err.text, "period=N and freq=N"));
	}
	assert_int_equal(encode("gpu/foo=10/"), -ENODEV);
}

static void test_time_text__has_a_unit_that_fits(void **state)
{
	char text[EVENT_TIME_BYTES];

	(void)state;
	assert_string_equal(event_time_text(1, text), "1 ns");
	assert_string_equal(event_time_text(999, text), "999 ns");
	assert_string_equal(event_time_text(30000, text), "30 us");
	assert_string_equal(event_time_text(999983, text), "1 ms");
	assert_string_equal(event_time_text(1234567, text), "1.235 ms");
	assert_string_equal(event_time_text(4000000, text), "4 ms");
	assert_string_equal(event_time_text(1500000000, text), "1.5 s");
	assert_string_equal(event_time_text(5000000000000ull, text), "5000 s");
}

static void test_prime__the_largest_that_is_not_above(void **state)
{
	static const uint64_t cases[][2] = {{0, 0},
					    {1, 1},
					    {2, 2},
					    {3, 3},
					    {4, 3},
					    {9, 7},
					    {25, 23},
					    {101, 101},
					    {1000000, 999983},
					    {4000000, 3999971}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(event_prime_up_to(cases[i][0]), cases[i][1]);
}

static void test_tracepoints__none_on_the_way_into_a_wait(void **state)
{
	static const char *const refused[] = {"sched:sched_switch",
					      "raw_syscalls:sys_enter",
					      "timer:hrtimer_start",
					      "syscalls:sys_enter_poll",
					      "syscalls:sys_enter_ppoll_time32",
					      "syscalls:sys_enter_clock_nanosleep",
					      "syscalls:sys_enter_futex_wait",
					      "syscalls:sys_exit_openat",
					      "signal:signal_deliver"};
	static const char *const taken[] = {"syscalls:sys_enter_openat",  "syscalls:sys_enter_read",
					    "syscalls:sys_enter_pollute", "kmem:kmalloc",
					    "exceptions:page_fault_user", "scheduled:x"};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(tracepoint_refuse(refused[i], &err), -ENOTSUP);
		assert_non_null(strstr(err.text, "--wall"));
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		assert_int_equal(tracepoint_refuse(taken[i], &err), 0);
	assert_int_equal(tracepoint_period_min("syscalls:sys_enter_openat"), 1);
	assert_int_equal(tracepoint_period_min("syscalls:sys_enter_rt_sigreturn"), 101);
	assert_int_equal(tracepoint_period_min("kmem:kmalloc"), 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encode__knows_perf_names_and_modifiers),
		cmocka_unit_test(test_encode__refuses_what_waiting_threads_do),
		cmocka_unit_test(test_encode__raw_codes_are_the_processors),
		cmocka_unit_test(test_encode__breakpoints_as_perf_writes_them),
		cmocka_unit_test(test_pmu__numbers_are_no_way_around_a_refusal),
		cmocka_unit_test(test_pmu__words_of_sysfs),
		cmocka_unit_test(test_parse__names_periods_and_lists),
		cmocka_unit_test(test_encode__unknown_names_are_named),
		cmocka_unit_test(test_encode__slips_are_answered_with_a_name),
		cmocka_unit_test(test_encode__modifiers_are_u_and_k),
		cmocka_unit_test(test_encode__terms_are_for_pmus),
		cmocka_unit_test(test_time_text__has_a_unit_that_fits),
		cmocka_unit_test(test_prime__the_largest_that_is_not_above),
		cmocka_unit_test(test_tracepoints__none_on_the_way_into_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
