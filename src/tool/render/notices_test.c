/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/render/example_trace_test.h"
#include "tool/render/notices.h"

#define UNFINISHED                                                                    \
	"The recording is not complete: it is still being recorded, or its recorder " \
	"was killed. What came last, and what was lost, may be missing."

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
		UNFINISHED,
		"A packet is cut off.",
		"Two samples are odd.",
		"1 of 11 overflows (9.1%) left no sample.",
		"1 lost: a_new_reason (a_new_reason).",
		NULL,
	};

	(void)state;
	trace->complete = trace->ended = false;
	trace->problems = problems;
	trace->nr_problems = 2;
	trace->nr_lost = 1;
	trace->lost[0] = (struct trace_count){"a_new_reason", 1};
	assert_notices(trace, expected);
}

static void test_notices__a_full_disk_is_no_killed_recorder(void **state)
{
	struct trace *trace = clean_trace();
	const char *const expected[] = {
		"The recording is not complete: part of it could not be written.",
		"2 of 12 overflows (16.7%) left no sample.",
		"2 lost: could not be written to the recording's directory (disk).",
		NULL,
	};

	(void)state;
	trace->complete = false;
	trace->nr_lost = 1;
	trace->lost[0] = (struct trace_count){"disk", 2};
	assert_notices(trace, expected);
}

#define MERGED "lost: overflows that piled up before one delivery (merged)."

static void test_notices__many_merged_say_what_helps(void **state)
{
	struct trace *trace = clean_trace();
	const char *const many[] = {
		"2 of 12 overflows (16.7%) left no sample.",
		"2 " MERGED " CPU timers are looked at by the scheduler's tick only, so short "
		"bursts of work merge; -e cpu-clock sees them, where perf events are allowed: "
		"pathprof doctor.",
		NULL,
	};
	const char *const few[] = {
		"1 of 11 overflows (9.1%) left no sample.",
		"1 " MERGED,
		NULL,
	};
	const char *const others[] = {many[0], "2 " MERGED, NULL};

	(void)state;
	trace->nr_lost = 1;
	trace->lost[0] = (struct trace_count){"merged", 2};
	assert_notices(trace, many);
	trace->trigger = "perf-sigtrap";
	assert_notices(trace, others);
	trace->trigger = "cpu-timer";
	trace->lost[0].count = 1;
	assert_notices(trace, few);
}

#define PYTHON39 "/usr/bin/python3.9"

static void test_notices__an_interpreter_that_is_not_read_is_one_sentence(void **state)
{
	static const struct trace_interpreter unread = {100, "CPython 3.9", PYTHON39,
							"the layout of 3.9 is not known"};
	static const char *const notes[] = {
		"The stacks of the interpreter " PYTHON39
		" are not recorded: the layout of 3.9 is not known",
		"Another note about " PYTHON39,
	};
	struct trace_interpreter interpreters[] = {unread, unread};
	struct trace *trace = clean_trace();
	const char *const expected[] = {
		"Python frames of process 100 (CPython 3.9, " PYTHON39
		") are not seen, in 7 samples (no_interpreter): the layout of 3.9 is not known.",
		"Another note about " PYTHON39 ".",
		NULL,
	};

	(void)state;
	trace->interpreters = interpreters; /* twice: it replaced itself */
	trace->nr_interpreters = 2;
	trace->nr_degraded = 1;
	trace->degraded[0] = (struct trace_count){"no_interpreter", 7};
	trace->notes = notes;
	trace->nr_notes = 2;
	assert_notices(trace, expected);
}

static void test_notices__two_interpreters_share_their_count(void **state)
{
	struct trace_interpreter interpreters[] = {
		{100, "CPython 3.9", PYTHON39, "the layout of 3.9 is not known"},
		{100, NULL, NULL, "it is too old."},
	};
	struct trace *trace = clean_trace();
	const char *const expected[] = {
		"7 samples show only part of the stack: the interpreter's layout is not known "
		"(no_interpreter).",
		"Python frames of process 100 (CPython 3.9, " PYTHON39
		") are not seen: the layout of 3.9 is not known.",
		"Python frames of process 100 (unknown interpreter, path not known) are not seen: "
		"it is too old.",
		NULL,
	};

	(void)state;
	trace->interpreters = interpreters;
	trace->nr_interpreters = 2;
	trace->nr_degraded = 1;
	trace->degraded[0] = (struct trace_count){"no_interpreter", 7};
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

static void test_notices__gil_of_a_free_threaded_build(void **state)
{
	struct trace *trace = example_trace();
	struct notices notices;

	(void)state;
	trace->only_locked = trace->has_no_lock = true;
	trace->left_out = 1;
	assert_int_equal(notices_collect(trace, &notices), 0);
	assert_string_equal(
		notices.sentences[3],
		"--gil found no interpreter lock, since this is a free-threaded build: "
		"samples of threads that ran the interpreter were kept, and 1 of others "
		"was left out.");
	for (size_t i = 0; i < notices.nr; i++)
		assert_null(strstr(notices.sentences[i], "held the interpreter lock"));
	notices_release(&notices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notices__gil_of_a_free_threaded_build),
		cmocka_unit_test(test_notices__a_whole_recording_has_none),
		cmocka_unit_test(test_notices__damage_comes_first),
		cmocka_unit_test(test_notices__a_full_disk_is_no_killed_recorder),
		cmocka_unit_test(test_notices__many_merged_say_what_helps),
		cmocka_unit_test(test_notices__an_interpreter_that_is_not_read_is_one_sentence),
		cmocka_unit_test(test_notices__two_interpreters_share_their_count),
		cmocka_unit_test(test_notices__many_processes_are_one_sentence_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
