/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "core/perf/perf.h"

static const struct perf_kind faults = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .exclude_kernel = true};

static void test_attr__asks_for_sigtrap_to_one_thread_and_dies_at_exec(void **state)
{
	struct perf_sampling sampling = {
		.kind = {.type = 4, .config = 0xc0, .config1 = 7, .exclude_kernel = true},
		.period = 100,
		.first_period = 17,
		.sig_data = 0x0000000100000002};
	struct perf_event_attr attr;

	(void)state;
	perf_attr_sampling(&sampling, &attr);
	assert_int_equal(attr.type, 4);
	assert_int_equal(attr.config, 0xc0);
	assert_int_equal(attr.config1, 7);
	assert_int_equal(attr.sample_period, 17);
	assert_int_equal(attr.sig_data, 0x0000000100000002);
	assert_true(attr.sigtrap && attr.remove_on_exec && attr.disabled && attr.exclude_hv);
	assert_true(attr.exclude_kernel && !attr.exclude_user && !attr.inherit && !attr.freq);
}

static void test_attr__inherits_to_threads_alone(void **state)
{
	struct perf_sampling sampling = {
		.kind = faults, .period = 5, .first_period = 5, .inherit = true};
	struct perf_event_attr attr;

	(void)state;
	perf_attr_sampling(&sampling, &attr);
	assert_true(attr.inherit && attr.inherit_thread && attr.sigtrap && attr.remove_on_exec);
}

static void test_attr__by_signal_never_counts_the_kernel(void **state)
{
	struct perf_sampling sampling = {.kind = {.type = PERF_TYPE_HARDWARE},
					 .delivery = PERF_BY_SIGNAL,
					 .period = 100000,
					 .first_period = 100000};
	struct perf_event_attr attr;

	(void)state;
	perf_attr_sampling(&sampling, &attr);
	assert_true(attr.exclude_kernel && attr.remove_on_exec && attr.disabled);
	assert_true(!attr.sigtrap && !attr.inherit && !attr.inherit_thread);
	assert_int_equal(attr.wakeup_events, 1);
}

static void test_open__by_signal_refuses_what_would_harm(void **state)
{
	static const struct {
		struct perf_sampling sampling;
		int code;
	} cases[] = {
		{{.kind = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK},
		  .period = 1000000},
		 -EOPNOTSUPP},
		{{.kind = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK},
		  .period = 1000000},
		 -EOPNOTSUPP},
		{{.kind = {.type = PERF_TYPE_HARDWARE}, .period = 1000000, .inherit = true},
		 -EOPNOTSUPP},
		{{.kind = {.type = PERF_TYPE_HARDWARE}, .period = 100}, -ERANGE},
		{{.kind = {.type = PERF_TYPE_RAW, .config = 0x11}, .period = 100}, -ERANGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct perf_sampling sampling = cases[i].sampling;
		int fd = -7;

		sampling.delivery = PERF_BY_SIGNAL;
		sampling.first_period = sampling.period;
		sampling.signo = SIGURG;
		assert_int_equal(perf_open_sampling(&sampling, 0, &fd), cases[i].code);
		assert_int_equal(fd, -7);
	}
}

static volatile int nr_signals, signal_fd;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	nr_signals++;
	signal_fd = info->si_fd;
}

/* One shot: of many overflows one signal, until it is armed again. */
static void test_open__by_signal_tells_the_thread_once_each_time(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length = 64 * page;
	struct perf_sampling sampling = {.kind = faults,
					 .delivery = PERF_BY_SIGNAL,
					 .period = 4,
					 .first_period = 4,
					 .signo = SIGURG};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	volatile char *pages;
	int fd, code;

	(void)state;
	code = perf_open_sampling(&sampling, 0, &fd);
	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		skip();
	assert_int_equal(code, 0);
	assert_int_equal(sigaction(SIGURG, &action, NULL), 0);
	pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise((void *)pages, length, MADV_NOHUGEPAGE);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(perf_rearm(fd), 0);
		for (size_t at = 0; at < 16; at++)
			pages[(size_t)round * 16 * page + at * page] = 1;
		assert_int_equal(nr_signals, round + 1);
		assert_int_equal(signal_fd, fd);
	}
	munmap((void *)pages, length);
	close(fd);
}

/* The first overflow after the first period, the next a whole period after it was set. */
static void test_set_period__holds_from_now_on(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length = 256 * page;
	struct perf_sampling sampling = {.kind = faults,
					 .delivery = PERF_BY_SIGNAL,
					 .period = 100,
					 .first_period = 10,
					 .signo = SIGURG};
	size_t seen[2] = {0};
	volatile char *pages;
	int fd, code;

	(void)state;
	code = perf_open_sampling(&sampling, 0, &fd);
	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		skip();
	assert_int_equal(code, 0);
	pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise((void *)pages, length, MADV_NOHUGEPAGE);
	nr_signals = 0;
	assert_int_equal(perf_rearm(fd), 0);
	for (size_t at = 0; at < 256 && nr_signals < 2; at++) {
		int before = nr_signals;

		pages[at * page] = 1;
		if (nr_signals == before)
			continue;
		seen[before] = at;
		if (!before) {
			assert_int_equal(perf_set_period(fd, sampling.period), 0);
			assert_int_equal(perf_rearm(fd), 0);
		}
	}
	assert_in_range(seen[0], 5, 10); /* some of the program's own come on top */
	/* Own faults come on top here as well, more under a sanitizer; far from the first 10. */
	assert_in_range(seen[1] - seen[0], 50, 100);
	munmap((void *)pages, length);
	close(fd);
}

static void test_explain__names_the_knob(void **state)
{
	static const struct {
		int code;
		const char *word;
	} cases[] = {
		{-EPERM, "seccomp"},	  {-ENOSYS, "seccomp"},
		{-ENOENT, "no PMU"},	  {-EOPNOTSUPP, "no PMU"},
		{-ENODEV, "no PMU"},	  {-EMFILE, "ulimit"},
		{-ENFILE, "fs.file-max"}, {-EACCES, "perf_event_paranoid"},
		{-EINVAL, "5.13"},	  {-ESRCH, "gone"},
		{-E2BIG, "5.13"},	  {-EAGAIN, "perf_event_mlock_kb"},
		{-ENOMEM, "ulimit"},	  {-EBUSY, "nmi_watchdog"},
		{-ENOSPC, "breakpoints"}, {-ENOTTY, "errno 25"},
	};
	struct errbuf err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(perf_explain(cases[i].code, "cycles", &err), cases[i].code);
		assert_non_null(strstr(err.text, cases[i].word));
		assert_non_null(strstr(err.text, "cycles"));
		assert_non_null(strchr(err.text, ';')); /* what changes it */
	}
}

/* Enough faults pass two first periods whatever they are drawn as; SIGTRAP stays blocked. */
static void test_open__counts_faults_from_the_enabling_on(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length = 64 * page;
	struct perf_sampling sampling = {
		.kind = faults, .period = 1u << 30, .first_period = 1u << 29};
	uint64_t count = 99;
	volatile char *pages;
	int fd, code;

	(void)state;
	code = perf_open_sampling(&sampling, 0, &fd);
	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		skip();
	assert_int_equal(code, 0);
	pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise((void *)pages, length, MADV_NOHUGEPAGE);
	pages[0] = 1;
	assert_int_equal(perf_count(fd, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(perf_enable(fd), 0);
	for (size_t at = page; at < length; at += page)
		pages[at] = 1;
	assert_int_equal(perf_disable(fd), 0);
	assert_int_equal(perf_count(fd, &count), 0);
	assert_in_range(count, 63, 63 + 32); /* some of the program's own come on top */
	munmap((void *)pages, length);
	close(fd);
}

static void test_probe__sigtrap_agrees_with_opening(void **state)
{
	struct perf_kind kind = faults;
	bool opens = perf_allowed(&kind) == 0;

	(void)state;
	assert_int_equal(perf_probe_sigtrap() != PERF_SIGTRAP_NONE, opens);
}

static void test_probe__a_child_may_take_what_it_may_take(void **state)
{
	int code = perf_probe_duplicate();

	(void)state;
	/* By YAMA, seccomp, or an old kernel. */
	assert_true(code == 0 || code == -EPERM || code == -ENOSYS);
}

static void test_tick__is_one_of_the_kernel(void **state)
{
	(void)state;
	assert_in_range(perf_tick_ns(), 100000, 10000000);
}

static void test_open__of_a_thread_that_is_not_there_is_no_such_thread(void **state)
{
	struct perf_sampling sampling = {.kind = faults, .period = 100, .first_period = 100};
	int fd = -7, code = perf_open_sampling(&sampling, 0x3fffffff, &fd);

	(void)state;
	if (code == -EPERM || code == -ENOSYS || code == -EACCES)
		skip();
	assert_int_equal(code, -ESRCH);
	assert_int_equal(fd, -7);
}

static void test_throttle__is_for_what_could_overflow_so_often(void **state)
{
	static const struct {
		struct perf_kind kind;
		uint64_t period, rate;
		bool may;
	} cases[] = {
		{{.type = PERF_TYPE_HARDWARE}, 2000003, 100000, false},
		{{.type = PERF_TYPE_HARDWARE}, 2000003, 20000, true}, /* as a kernel lowers it */
		{{.type = PERF_TYPE_HARDWARE}, 20011, 100000, true},
		{{.type = PERF_TYPE_RAW}, 20011, 100000, true},
		{{.type = PERF_TYPE_HARDWARE}, 20011, 0, false}, /* the limit is not known */
		{{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK},
		 1000000,
		 100000,
		 false},
		{{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK},
		 1000000,
		 1000,
		 true},
		{{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS}, 1, 1, false},
		{{.type = PERF_TYPE_TRACEPOINT}, 1, 1, false},
		{{.type = PERF_TYPE_BREAKPOINT}, 1, 1, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(perf_may_throttle(&cases[i].kind, cases[i].period, cases[i].rate),
				 cases[i].may);
}

/* Beside an event that samples: SIGTRAP stays blocked, the same is counted. */
static void test_open_counting__counts_what_is_sampled(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length = 64 * page;
	struct perf_sampling sampling = {
		.kind = faults, .period = 1u << 30, .first_period = 1u << 30};
	struct perf_reading sampled, counted;
	volatile char *pages;
	int fd, other, code;

	(void)state;
	code = perf_open_sampling(&sampling, 0, &fd);
	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		skip();
	assert_int_equal(code, 0);
	assert_int_equal(perf_open_counting(&sampling, 0, &other), 0);
	pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise((void *)pages, length, MADV_NOHUGEPAGE);
	assert_int_equal(perf_enable(fd), 0);
	assert_int_equal(perf_enable(other), 0);
	for (size_t at = 0; at < length; at += page)
		pages[at] = 1;
	assert_int_equal(perf_disable(fd), 0);
	assert_int_equal(perf_disable(other), 0);
	assert_int_equal(perf_reading(fd, &sampled), 0);
	assert_int_equal(perf_reading(other, &counted), 0);
	assert_in_range(counted.count, 64, 64 + 32);
	assert_in_range(sampled.count, 64, 64 + 32);
	assert_true(sampled.running_ns > 0 && counted.running_ns > 0);
	munmap((void *)pages, length);
	close(other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attr__asks_for_sigtrap_to_one_thread_and_dies_at_exec),
		cmocka_unit_test(test_attr__inherits_to_threads_alone),
		cmocka_unit_test(test_attr__by_signal_never_counts_the_kernel),
		cmocka_unit_test(test_open__by_signal_refuses_what_would_harm),
		cmocka_unit_test(test_open__by_signal_tells_the_thread_once_each_time),
		cmocka_unit_test(test_set_period__holds_from_now_on),
		cmocka_unit_test(test_explain__names_the_knob),
		cmocka_unit_test(test_open__counts_faults_from_the_enabling_on),
		cmocka_unit_test(test_open__of_a_thread_that_is_not_there_is_no_such_thread),
		cmocka_unit_test(test_probe__sigtrap_agrees_with_opening),
		cmocka_unit_test(test_probe__a_child_may_take_what_it_may_take),
		cmocka_unit_test(test_tick__is_one_of_the_kernel),
		cmocka_unit_test(test_throttle__is_for_what_could_overflow_so_often),
		cmocka_unit_test(test_open_counting__counts_what_is_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
