/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/render/example_trace_test.h"
#include "tool/render/notices.h"

static void assert_notices(const struct trace *trace, const char *const *expected)
{
	struct notices notices;

	assert_int_equal(notices_collect(trace, &notices), 0);
	for (size_t i = 0; i < notices.nr; i++) {
		assert_non_null(expected[i]);
		assert_string_equal(notices.sentences[i], expected[i]);
	}
	assert_null(expected[notices.nr]);
	notices_release(&notices);
}

/* The example without what it lost. */
static struct trace *clean_trace(void)
{
	struct trace *trace = example_trace();

	trace->nr_lost = trace->nr_degraded = trace->nr_processes = trace->nr_notes = 0;
	trace->unseen_cpu_ns = 0;
	trace->threads[0].samples = trace->threads[1].samples = 0; /* too few to be in step */
	return trace;
}

static void test_notices__a_whole_recording_has_none(void **state)
{
	(void)state;
	assert_notices(clean_trace(), (const char *const[]){NULL});
}

static void test_notices__damage_comes_first(void **state)
{
	static const char *const problems[] = {"A packet is cut off", "Two samples are odd."};
	struct trace *trace = clean_trace();
	const char *const expected[] = {
		"The recording is not complete: the recorder did not finish, so what came last may "
		"be "
		"missing.",
		"A packet is cut off.",
		"Two samples are odd.",
		"1 of 11 overflows (9.1%) left no sample.",
		"1 lost: a_new_reason (a_new_reason).",
		NULL,
	};

	(void)state;
	trace->complete = false;
	trace->problems = problems;
	trace->nr_problems = 2;
	trace->nr_lost = 1;
	trace->lost[0] = (struct trace_count){"a_new_reason", 1};
	assert_notices(trace, expected);
}

static void test_notices__interpreters_that_are_not_read(void **state)
{
	struct trace *trace = clean_trace();
	const char *const expected[] = {
		"Python frames of process 100 (CPython 3.9, /usr/bin/python3.9) are not seen: the "
		"layout of 3.9 is not known.",
		NULL,
	};

	(void)state;
	trace->interpreters[0] = (struct trace_interpreter){
		100, "CPython 3.9", "/usr/bin/python3.9", "the layout of 3.9 is not known"};
	assert_notices(trace, expected);
}

static void test_notices__many_processes_are_one_sentence_a_reason(void **state)
{
	struct trace *trace = clean_trace();
	struct trace_process processes[1000];
	const char *const expected[] = {
		"500 processes were not recorded (0 sh, 2 sh, 4 sh, ..): forked.",
		"499 processes were not recorded (1, 3, 5, ..).",
		NULL,
	};

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		processes[i] = i % 2 ? (struct trace_process){i, 1, "", i == 999, NULL}
				     : (struct trace_process){i, 1, "sh", false, "forked"};
	trace->processes = processes;
	trace->nr_processes = 1000;
	assert_notices(trace, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notices__a_whole_recording_has_none),
		cmocka_unit_test(test_notices__damage_comes_first),
		cmocka_unit_test(test_notices__interpreters_that_are_not_read),
		cmocka_unit_test(test_notices__many_processes_are_one_sentence_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
