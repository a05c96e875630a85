/* SPDX-License-Identifier: MIT */
/* Recordings made by hand: read, cut off at every byte, and with every byte changed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "make_recording.h"
#include "read_made.h"
#include "tool/trace/trace_priv.h"

#define T0 1000000000ull

static bool has_problem(const struct trace *trace, const char *part)
{
	for (size_t i = 0; i < trace->nr_problems; i++)
		if (strstr(trace->problems[i], part))
			return true;
	return false;
}

/* main (line 3) calls work (line 12), which calls itself (line 13). Nodes 1, 2, 3. */
static struct maker *small_maker(void)
{
	struct maker *maker = maker_new();
	struct maker_thread main_thread = {
		.pid = 100,
		.tid = 100,
		.start_ns = T0,
		.end_ns = T0 + 4000000000ull,
		.cpu_ns = 16000000,
		.samples = 4,
		.voluntary_switches = 7,
		.name = "python3",
	};

	maker_manifest(maker, true, 2, 4000000);
	maker_code(maker, 1, "<module>", "program.py", 1, 8);
	maker_code(maker, 2, "Worker.work", "program.py", 10, 8);
	maker_node(maker, 1, 0, NODE_PYTHON, 1, 3);
	maker_node(maker, 2, 1, NODE_PYTHON, 2, 3);
	maker_node(maker, 3, 2, NODE_PYTHON, 2, 4);
	maker_begin(maker, 0, 100, 100, T0 + 1);
	maker_sample(maker, 0, 0, T0 + 4000000, 0, 2, 4000000);
	maker_sample(maker, 0, 1, T0 + 4000100, 0, 3, 1);
	maker_sample(maker, 0, 0, T0 + 3000000000ull, 0, 3, 1ull << 40); /* long header, wide */
	maker_end(maker, 0);
	maker_begin(maker, 0, 100, 100, T0 + 3100000000ull);
	maker_sample(maker, 0, 0, T0 + 3100000005ull, 0, 0, 4000000);
	maker_thread(maker, &main_thread);
	maker_process(maker, 100, 1, "python3 program.py", "");
	maker_process(maker, 101, 100, "ls", "children are not recorded");
	maker_finish(maker);
	return maker;
}

static void test_trace__reads_what_was_written(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);

	(void)state;
	assert_int_equal(trace->nr_problems, 0);
	assert_true(trace->complete && trace->ended);
	assert_string_equal(trace->command[1], "program.py");
	assert_string_equal(trace->trigger, "cpu-timer");
	assert_string_equal(trace->events[1].name, "page-faults");
	assert_string_equal(trace->interpreters[0].name, "CPython 3.11.2");
	assert_null(trace->interpreters[0].problem);
	assert_int_equal(trace->nr_samples, 4);
	assert_int_equal(trace->samples[0].time_ns, T0 + 4000000);
	assert_int_equal(trace->samples[1].event, 1);
	assert_int_equal(trace->samples[1].time_ns, T0 + 4000100);
	assert_int_equal(trace->samples[2].time_ns, T0 + 3000000000ull);
	assert_true(trace->samples[2].count == 1ull << 40);
	assert_int_equal(trace->samples[3].time_ns, T0 + 3100000005ull);
	assert_int_equal(trace->nr_threads, 1);
	assert_string_equal(trace->threads[0].name, "python3");
	assert_int_equal(trace->threads[0].samples, 4);
	assert_int_equal(trace->threads[0].voluntary_switches, 7);
	assert_int_equal(trace->nr_processes, 2);
	assert_true(trace->processes[0].recorded);
	assert_string_equal(trace->processes[1].reason, "children are not recorded");
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__frames_have_function_file_and_line(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);
	struct frame frame = trace_frame(trace, 3);

	(void)state;
	assert_string_equal(frame.function, "Worker.work");
	assert_string_equal(frame.file, "program.py");
	assert_int_equal(frame.line, 13);
	assert_int_equal(frame.function_line, 10);
	assert_int_equal(frame.kind, FRAME_PYTHON);
	assert_int_equal(trace_frame(trace, 2).line, 12);
	assert_string_equal(trace_frame(trace, 0).function, "[no Python frame]");
	assert_string_equal(trace_frame(trace, 4000000000u).function, "[unknown]");
	assert_int_equal(trace_frame(trace, 4000000000u).kind, FRAME_MARKER);
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__directory_and_progress(void **state)
{
	char directory[] = "/tmp/trace-test-XXXXXX", command[64];
	struct maker *maker = small_maker();
	struct errbuf err = {{0}};
	struct trace *trace;

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(maker_write(maker, directory), 0);
	assert_int_equal(trace_open(directory, NULL, NULL, &trace, &err), 0);
	assert_int_equal(trace->nr_samples, 4);
	assert_int_equal(trace->nr_problems, 0);
	trace_free(trace);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
	assert_int_equal(trace_open(directory, NULL, NULL, &trace, &err), -ENOENT);
	assert_non_null(strstr(err.text, directory));
	assert_int_equal(trace_open("/dev/null", NULL, NULL, &trace, &err), -EINVAL);
	assert_int_equal(trace_open("/proc/self/exe", NULL, NULL, &trace, &err), -EBADMSG);
	maker_free(maker);
}

static void test_trace__manifest_that_cannot_be_used_is_an_error(void **state)
{
	static const char *const manifests[] = {
		"",
		"{",
		"[]",
		"{\"version\": 1}",
		"{\"version\": 1, \"events\": []}",
		"{\"version\": 2, \"events\": [{}]}",
	};
	struct errbuf err = {{0}};

	(void)state;
	for (size_t i = 0; i < sizeof(manifests) / sizeof(*manifests); i++) {
		struct maker *maker = small_maker();

		maker_manifest_text(maker, manifests[i]);
		assert_null(read_made_or_not(maker, &err));
		maker_free(maker);
	}
	assert_non_null(strstr(err.text, "newer pathprof"));
}

static void test_trace__sparse_manifest_is_read(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;

	(void)state;
	maker_manifest_text(maker, "{\"version\": 1, \"events\": [{}, {\"name\": 5}],"
				   " \"lost\": {\"buffer_full\": 3, \"merged\": 0}}");
	trace = read_made(maker);
	assert_int_equal(trace->nr_samples, 4);
	assert_string_equal(trace->host, "");
	assert_int_equal(trace->nr_lost, 1);
	assert_string_equal(trace->lost[0].key, "buffer_full");
	assert_int_equal(trace->end_ns, T0 + 3100000005ull);
	assert_false(trace->complete || trace->ended);
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__thread_ids_that_come_back_are_told_apart_by_time(void **state)
{
	struct maker *maker = maker_new();
	struct maker_thread first = {.pid = 1,
				     .tid = 7,
				     .start_ns = T0,
				     .end_ns = T0 + 100,
				     .name = "first",
				     .samples = 1};
	struct maker_thread second = {.pid = 1,
				      .tid = 7,
				      .start_ns = T0 + 5000000000ull,
				      .end_ns = T0 + 6000000000ull,
				      .name = "second",
				      .samples = 1};
	struct trace *trace;

	(void)state;
	maker_begin(maker, 0, 1, 7, T0 + 50);
	maker_sample(maker, 0, 0, T0 + 60, 0, 0, 1);
	maker_begin(maker, 0, 1, 7, T0 + 5000000001ull);
	maker_sample(maker, 0, 0, T0 + 5000000002ull, 0, 0, 1);
	maker_begin(maker, 1, 1, 7, T0 + 2000000000ull); /* of neither: its record is not there */
	maker_sample(maker, 1, 0, T0 + 2000000000ull, 0, 0, 1);
	maker_thread(maker, &second);
	maker_thread(maker, &first);
	trace = read_made(maker);
	assert_int_equal(trace->nr_threads, 3);
	assert_string_equal(trace->threads[trace->samples[0].thread].name, "first");
	assert_string_equal(trace->threads[trace->samples[1].thread].name, "second");
	assert_string_equal(trace->threads[trace->samples[2].thread].name, "maker");
	trace_free(trace);
	maker_free(maker);
}

static void add_image(struct maker *maker, uint32_t tid, uint64_t start_ns, const char *name)
{
	struct maker_thread record = {
		.pid = 100,
		.tid = tid,
		.start_ns = start_ns,
		.end_ns = start_ns + 1000000000,
		.cpu_ns = 8000000,
		.samples = 1,
		.lost = 2,
		.overrun = 3,
		.voluntary_switches = 4,
		.name = name,
	};

	maker_begin(maker, 0, 100, tid, start_ns + 1);
	maker_sample(maker, 0, 0, start_ns + 4000000, 0, 0, 1);
	maker_end(maker, 0);
	maker_thread(maker, &record);
}

static void test_trace__images_of_the_leader_are_one_thread(void **state)
{
	struct maker *maker = maker_new();
	struct trace *trace;

	(void)state;
	maker_manifest(maker, true, 1, 4000000);
	add_image(maker, 100, T0 + 3000000000ull, ""); /* before it has named itself */
	add_image(maker, 100, T0, "sh");
	add_image(maker, 101, T0, "worker");
	add_image(maker, 101, T0 + 2000000000ull, "worker again");
	add_image(maker, 100, T0 + 2000000000ull, "python3");
	/* An image that left no record, as where the recorder was killed. */
	maker_begin(maker, 1, 100, 100, T0 + 5000000000ull);
	maker_sample(maker, 1, 0, T0 + 5000000001ull, 0, 0, 1);
	maker_finish(maker);
	trace = read_made(maker);
	assert_int_equal(trace->nr_threads, 3);
	assert_int_equal(trace->threads[0].tid, 100);
	assert_true(trace->threads[0].start_ns == T0);
	assert_true(trace->threads[0].end_ns >= T0 + 5000000000ull);
	assert_int_equal(trace->threads[0].cpu_ns, 3 * 8000000);
	assert_int_equal(trace->threads[0].samples, 4);
	assert_int_equal(trace->threads[0].lost, 3 * 2);
	assert_int_equal(trace->threads[0].overrun, 3 * 3);
	assert_int_equal(trace->threads[0].voluntary_switches, 3 * 4);
	assert_string_equal(trace->threads[1].name, "worker");
	assert_string_equal(trace->threads[2].name, "worker again");
	for (size_t i = 0; i < trace->nr_samples; i++)
		assert_true(trace->samples[i].thread < trace->nr_threads);
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__a_leader_has_the_name_of_its_last_image(void **state)
{
	struct maker *maker = maker_new();
	struct trace *trace;

	(void)state;
	maker_manifest(maker, true, 1, 4000000);
	add_image(maker, 100, T0 + 2000000000ull, "python3");
	add_image(maker, 100, T0, "sh");
	maker_finish(maker);
	trace = read_made(maker);
	assert_int_equal(trace->nr_threads, 1);
	assert_string_equal(trace->threads[0].name, "python3");
	assert_true(trace->threads[0].end_ns == T0 + 3000000000ull);
	trace_free(trace);
	maker_free(maker);
}

/* As in a recording under way: the first image has ended, the second one's thread has not. */
static void test_trace__a_packet_without_a_name_leaves_the_leaders(void **state)
{
	struct trace_thread first = {
		.pid = 100, .tid = 100, .start_ns = T0, .end_ns = T0 + 1, .name = "sh"};
	struct trace trace = {.threads = &first, .nr_threads = 1};
	struct reading reading = {.trace = &trace};
	struct ctf_packet_prefix prefix = {.vpid = 100,
					   .vtid = 100,
					   .timestamp_begin = T0 + 2000000000,
					   .timestamp_end = T0 + 3000000000};
	uint32_t thread = 7;

	(void)state;
	assert_int_equal(threads_sort(&reading), 0);
	assert_int_equal(threads_of_packet(&reading, &prefix, &thread), 0);
	assert_int_equal(thread, 0);
	assert_string_equal(first.name, "sh");
	assert_true(first.end_ns == T0 + 3000000000);
}

static void test_trace__threads_without_a_record_come_from_packets(void **state)
{
	struct maker *maker = maker_new();
	struct trace *trace;

	(void)state;
	maker_manifest(maker, false, 1, 4000000);
	for (uint32_t i = 0; i < 40; i++) {
		maker_begin(maker, i % 8, 1, 10 + i % 4, T0 + i);
		maker_sample(maker, i % 8, 0, T0 + i, 0, 0, 1);
	}
	trace = read_made(maker);
	assert_int_equal(trace->nr_threads, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_string_equal(trace->threads[i].name, "maker");
		assert_int_equal(trace->threads[i].samples, 10);
		assert_true(trace->threads[i].start_ns < T0 + 8);
		assert_true(trace->threads[i].end_ns >= T0 + 36);
	}
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__functions_that_are_equal_are_one(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;

	(void)state;
	maker_code(maker, 3, "Worker.work", "program.py", 10, 4); /* another table, same function */
	maker_code(maker, 4, "Worker.work", "program.py", 11, 4);
	maker_code(maker, 5, "Worker.work", "other.py", 10, 4);
	maker_node(maker, 4, 0, NODE_PYTHON, 3, 1);
	maker_node(maker, 5, 0, NODE_PYTHON, 4, 1);
	maker_node(maker, 6, 0, NODE_PYTHON, 5, 1);
	trace = read_made(maker);
	assert_int_equal(trace->nodes[4].function, trace->nodes[2].function);
	assert_int_not_equal(trace->nodes[5].function, trace->nodes[2].function);
	assert_int_not_equal(trace->nodes[6].function, trace->nodes[2].function);
	assert_int_not_equal(trace->nodes[6].function, trace->nodes[5].function);
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__markers_and_undefined_frames(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;

	(void)state;
	maker_module(maker, 1, "/usr/lib/libm.so.6");
	maker_node(maker, 4, 0, NODE_TRUNCATED, 0, 0);
	maker_node(maker, 5, 0, NODE_UNREADABLE, 0, 0);
	maker_node(maker, 6, 0, NODE_NATIVE, 1, 0x1234);
	maker_node(maker, 7, 0, NODE_KERNEL, 0, 0x1234);
	maker_node(maker, 8, 2, NODE_PYTHON, 77, 1); /* no such code */
	maker_node(maker, 10, 9, NODE_PYTHON, 1, 1); /* node 9 is nowhere */
	maker_node(maker, 11, 0, 99, 1, 1);	     /* no such kind */
	maker_begin(maker, 1, 100, 100, T0 + 1);
	maker_sample(maker, 1, 0, T0 + 2, 0, 9, 1);
	maker_sample(maker, 1, 0, T0 + 3, 3000000000u, 0, 1);
	trace = read_made(maker);
	assert_string_equal(trace_frame(trace, 4).function, "[truncated]");
	assert_string_equal(trace_frame(trace, 5).function, "[unreadable]");
	assert_string_equal(trace_frame(trace, 6).function, "[libm.so.6]");
	assert_string_equal(trace_frame(trace, 6).file, "/usr/lib/libm.so.6");
	assert_int_equal(trace_frame(trace, 6).kind, FRAME_NATIVE);
	assert_int_equal(trace_frame(trace, 7).kind, FRAME_KERNEL);
	assert_string_equal(trace_frame(trace, 8).function, "[unknown]");
	assert_int_equal(trace->nodes[8].parent, 2);
	assert_string_equal(trace_frame(trace, 9).function, "[unknown]");
	assert_false(trace->nodes[9].defined);
	assert_string_equal(trace_frame(trace, 11).function, "[unknown]");
	assert_true(has_problem(trace, "2 samples have a stack without a definition"));
	assert_true(has_problem(trace, "2 frames are of code without a definition"));
	for (size_t i = 0; i < trace->nr_samples; i++) {
		assert_true(trace->samples[i].native < trace->nr_nodes);
		assert_true(trace->samples[i].python < trace->nr_nodes);
	}
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__definitions_that_cannot_be_are_counted(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;

	(void)state;
	maker_node(maker, 3, 1, NODE_PYTHON, 1, 1);	      /* again */
	maker_node(maker, 5, 5, NODE_PYTHON, 1, 1);	      /* its own parent */
	maker_node(maker, 6, 7, NODE_PYTHON, 1, 1);	      /* parent after child */
	maker_node(maker, 4000000000u, 1, NODE_PYTHON, 1, 1); /* nobody has that many */
	maker_code(maker, 0, "zero", "zero.py", 1, 1);
	maker_node(maker, 4, 3, NODE_PYTHON, 1, 1); /* what follows is read */
	trace = read_made(maker);
	assert_true(has_problem(trace, "5 definitions are damaged"));
	assert_int_equal(trace->nodes[3].parent, 2);
	assert_int_equal(trace->nodes[4].parent, 3);
	assert_true(trace->nr_nodes < 10);
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__chains_have_a_bound(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;
	uint32_t depth = 0;

	(void)state;
	for (uint32_t i = 4; i < 5004; i++)
		maker_node(maker, i, i - 1, NODE_PYTHON, 2, 1);
	trace = read_made(maker);
	for (uint32_t node = TRACE_DEPTH_MAX; node; node = trace->nodes[node].parent)
		depth++;
	assert_int_equal(depth, TRACE_DEPTH_MAX);
	assert_true(has_problem(trace, "deeper than"));
	for (uint32_t i = 1; i < trace->nr_nodes; i++)
		assert_true(trace->nodes[i].parent < i);
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__texts_are_made_fit_for_terminals(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;

	(void)state;
	maker_code(maker, 3, "a\033[2Jb\xff\xc2\x85", "h\xc3\xa9\xf0\x9f\x90\x8d\xed\xa0\x80", 1,
		   1);
	maker_node(maker, 4, 0, NODE_PYTHON, 3, 1);
	trace = read_made(maker);
	assert_string_equal(trace_frame(trace, 4).function, "a?[2Jb???");
	assert_string_equal(trace_frame(trace, 4).file, "h\xc3\xa9\xf0\x9f\x90\x8d???");
	trace_free(trace);
	maker_free(maker);
}

static void test_trace__missing_packets_are_said(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace;

	(void)state;
	maker->streams[0].packet_seq_num += 5;
	maker_begin(maker, 0, 100, 100, T0 + 3200000000ull);
	maker_sample(maker, 0, 0, T0 + 3200000000ull, 0, 3, 1);
	trace = read_made(maker);
	assert_true(has_problem(trace, "ust/slot_0000: 5 packets are missing"));
	trace_free(trace);
	maker_free(maker);
}

/* What the door promises to those inside. */
static void check_promises(const struct trace *trace)
{
	assert_true(trace->nr_functions > 0 && trace->nr_nodes > 0);
	for (size_t i = 0; i < trace->nr_nodes; i++) {
		assert_true(trace->nodes[i].parent < i || (!i && !trace->nodes[i].parent));
		assert_true(trace->nodes[i].function < trace->nr_functions);
	}
	for (size_t i = 0; i < trace->nr_samples; i++) {
		assert_true(trace->samples[i].thread < trace->nr_threads);
		assert_true(trace->samples[i].event < trace->nr_events);
		assert_true(trace->samples[i].native < trace->nr_nodes);
		assert_true(trace->samples[i].python < trace->nr_nodes);
	}
	for (size_t i = 0; i < trace->nr_threads; i++)
		assert_non_null(trace->threads[i].name);
}

static void test_trace__cut_at_every_byte_is_partial_and_says_so(void **state)
{
	struct maker *maker = small_maker();
	struct maker_bytes *files[] = {&maker->definitions.bytes, &maker->streams[0].bytes};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t whole = files[i]->length;

		while (files[i]->length--) {
			struct trace *trace = read_made(maker);

			assert_true(trace->nr_problems > 0);
			if (!i)
				assert_int_equal(trace->nr_samples, 4);
			check_promises(trace);
			trace_free(trace);
		}
		files[i]->length = whole;
	}
	maker_free(maker);
}

static void test_trace__every_byte_changed_never_harms(void **state)
{
	static const uint8_t changes[] = {0x01, 0x80, 0xff};
	struct maker *maker = small_maker();
	struct maker_bytes manifest = {(uint8_t *)maker->manifest, strlen(maker->manifest), 0};
	struct maker_bytes *files[] = {&maker->definitions.bytes, &maker->streams[0].bytes,
				       &manifest};
	struct errbuf err = {{0}};
	size_t readable = 0;

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(changes); i++) {
		struct maker_bytes *file = files[i / sizeof(changes)];

		for (size_t at = 0; at < file->length; at++) {
			struct trace *trace;

			file->at[at] ^= changes[i % sizeof(changes)];
			trace = read_made_or_not(maker, &err);
			if (trace) {
				check_promises(trace);
				readable++;
			}
			trace_free(trace);
			file->at[at] ^= changes[i % sizeof(changes)];
		}
	}
	assert_true(readable > maker->definitions.bytes.length);
	maker_free(maker);
}

static void test_trace__many_problems_are_counted_not_listed(void **state)
{
	struct maker *maker = maker_new();
	struct trace *trace;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		maker_begin(maker, i, 1, 1, T0);
		maker_sample(maker, i, 7, T0, 0, 0, 1); /* event 7 is not in the manifest */
	}
	trace = read_made(maker);
	assert_int_equal(trace->nr_problems, TRACE_PROBLEMS_MAX - 1);
	assert_string_equal(trace->problems[trace->nr_problems - 1], "and 202 more problems");
	assert_int_equal(trace->nr_samples, 0);
	trace_free(trace);
	maker_free(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace__reads_what_was_written),
		cmocka_unit_test(test_trace__frames_have_function_file_and_line),
		cmocka_unit_test(test_trace__directory_and_progress),
		cmocka_unit_test(test_trace__manifest_that_cannot_be_used_is_an_error),
		cmocka_unit_test(test_trace__sparse_manifest_is_read),
		cmocka_unit_test(test_trace__thread_ids_that_come_back_are_told_apart_by_time),
		cmocka_unit_test(test_trace__images_of_the_leader_are_one_thread),
		cmocka_unit_test(test_trace__a_leader_has_the_name_of_its_last_image),
		cmocka_unit_test(test_trace__a_packet_without_a_name_leaves_the_leaders),
		cmocka_unit_test(test_trace__threads_without_a_record_come_from_packets),
		cmocka_unit_test(test_trace__functions_that_are_equal_are_one),
		cmocka_unit_test(test_trace__markers_and_undefined_frames),
		cmocka_unit_test(test_trace__definitions_that_cannot_be_are_counted),
		cmocka_unit_test(test_trace__chains_have_a_bound),
		cmocka_unit_test(test_trace__texts_are_made_fit_for_terminals),
		cmocka_unit_test(test_trace__missing_packets_are_said),
		cmocka_unit_test(test_trace__cut_at_every_byte_is_partial_and_says_so),
		cmocka_unit_test(test_trace__every_byte_changed_never_harms),
		cmocka_unit_test(test_trace__many_problems_are_counted_not_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
