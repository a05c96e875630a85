/* SPDX-License-Identifier: MIT */
/* Whole documents of the example trace. JSON is compared as text and must parse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tool/render/example_trace_test.h"
#include "tool/render/json_stream.h"
#include "tool/render/pair_map.h"
#include "tool/render/render.h"

/* clang-format off */
static const char expected_json[] =
	"{\n"
	" \"version\": 1,\n"
	" \"recording\": {\n"
	"  \"command\": [\"python3\", \"main.py\", \"--all\"],\n"
	"  \"host\": \"box\",\n"
	"  \"start_ns\": 1000000000000,\n"
	"  \"end_ns\": 1000200000000,\n"
	"  \"clock\": \"monotonic\",\n"
	"  \"trigger\": \"cpu-timer\",\n"
	"  \"interpreter\": [\"CPython 3.11.2\"],\n"
	"  \"complete\": true,\n"
	"  \"live\": false\n"
	" },\n"
	" \"samples\": 10,\n"
	" \"lost\": {\n"
	"  \"total\": 2,\n"
	"  \"buffer_full\": 2\n"
	" },\n"
	" \"degraded\": {\n"
	"  \"truncated\": 1\n"
	" },\n"
	" \"overhead\": {\n"
	"  \"handler_ns\": 110000,\n"
	"  \"recorder_ns\": 5000000,\n"
	"  \"share\": 0.001\n"
	" },\n"
	" \"unseen_cpu_ns\": 30000000,\n"
	" \"notices\": [\n"
	"  \"2 of 12 overflows (16.7%) left no sample.\",\n"
	"  \"2 lost: no free packet: the recorder did not keep up (buffer_full).\",\n"
	"  \"1 sample shows only part of the stack: deeper than the frames that one sample keeps (truncated).\",\n"
	"  \"30.0 ms of CPU time went to threads that were not sampled, or to the ends of many short ones.\",\n"
	"  \"1 process was not recorded (102 /bin/true): it is linked statically.\",\n"
	"  \"Native frames were not recorded.\"\n"
	" ],\n"
	" \"interpreters\": [\n"
	"  {\"pid\": 100, \"name\": \"CPython 3.11.2\", \"path\": \"/usr/bin/python3.11\", \"problem\": null}\n"
	" ],\n"
	" \"events\": [\n"
	"  {\"name\": \"cpu-time\", \"unit\": \"ns\", \"period\": 10000000, \"samples\": 9, \"count\": 90000000, \"count_is_exact\": false, \"trigger\": \"cpu-timer\", \"user_only\": false, \"jitter\": 0},\n"
	"  {\"name\": \"page-faults\", \"unit\": \"events\", \"period\": 100, \"samples\": 1, \"count\": 12345, \"count_is_exact\": true, \"trigger\": \"perf-sigtrap\", \"user_only\": false, \"jitter\": 0}\n"
	" ],\n"
	" \"processes\": [\n"
	"  {\"pid\": 100, \"ppid\": 1, \"command\": \"python3 main.py --all\", \"samples\": 10, \"recorded\": true, \"reason\": null},\n"
	"  {\"pid\": 102, \"ppid\": 100, \"command\": \"/bin/true\", \"samples\": 0, \"recorded\": false, \"reason\": \"it is linked statically\"}\n"
	" ],\n"
	" \"threads\": [\n"
	"  {\"pid\": 100, \"tid\": 100, \"name\": \"main\", \"samples\": 8},\n"
	"  {\"pid\": 100, \"tid\": 101, \"name\": \"工作 worker\", \"samples\": 2}\n"
	" ],\n"
	" \"functions\": [\n"
	"  {\"event\": \"cpu-time\", \"name\": \"decode\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"line\": 10, \"kind\": \"python\", \"self\": 4, \"total\": 4, \"self_count\": 40000000, \"total_count\": 40000000},\n"
	"  {\"event\": \"cpu-time\", \"name\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"line\": 40, \"kind\": \"python\", \"self\": 2, \"total\": 7, \"self_count\": 20000000, \"total_count\": 70000000},\n"
	"  {\"event\": \"cpu-time\", \"name\": \"</script>\\u001b[31m;\\\"\\\\\\n\xe2\x80\xae&�\", \"file\": \"a;b\\n.py\", \"line\": 3, \"kind\": \"python\", \"self\": 1, \"total\": 1, \"self_count\": 10000000, \"total_count\": 10000000},\n"
	"  {\"event\": \"cpu-time\", \"name\": \"[no Python frame]\", \"file\": null, \"line\": null, \"kind\": \"marker\", \"self\": 1, \"total\": 1, \"self_count\": 10000000, \"total_count\": 10000000},\n"
	"  {\"event\": \"cpu-time\", \"name\": \"read\", \"file\": \"/lib/libc.so.6\", \"line\": null, \"kind\": \"native\", \"self\": 1, \"total\": 1, \"self_count\": 10000000, \"total_count\": 10000000},\n"
	"  {\"event\": \"cpu-time\", \"name\": \"<module>\", \"file\": \"/srv/app/main.py\", \"line\": 1, \"kind\": \"python\", \"self\": 0, \"total\": 8, \"self_count\": 0, \"total_count\": 80000000},\n"
	"  {\"event\": \"page-faults\", \"name\": \"decode\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"line\": 10, \"kind\": \"python\", \"self\": 1, \"total\": 1, \"self_count\": 100, \"total_count\": 100},\n"
	"  {\"event\": \"page-faults\", \"name\": \"<module>\", \"file\": \"/srv/app/main.py\", \"line\": 1, \"kind\": \"python\", \"self\": 0, \"total\": 1, \"self_count\": 0, \"total_count\": 100},\n"
	"  {\"event\": \"page-faults\", \"name\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"line\": 40, \"kind\": \"python\", \"self\": 0, \"total\": 1, \"self_count\": 0, \"total_count\": 100}\n"
	" ],\n"
	" \"lines\": [\n"
	"  {\"event\": \"cpu-time\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"line\": 12, \"function\": \"decode\", \"kind\": \"python\", \"self\": 4, \"total\": 4, \"self_count\": 40000000, \"total_count\": 40000000},\n"
	"  {\"event\": \"cpu-time\", \"file\": \"/srv/app/parser.py\", \"line\": 47, \"function\": \"Parser.parse\", \"kind\": \"python\", \"self\": 2, \"total\": 2, \"self_count\": 20000000, \"total_count\": 20000000},\n"
	"  {\"event\": \"cpu-time\", \"file\": \"a;b\\n.py\", \"line\": 3, \"function\": \"</script>\\u001b[31m;\\\"\\\\\\n\xe2\x80\xae&�\", \"kind\": \"python\", \"self\": 1, \"total\": 1, \"self_count\": 10000000, \"total_count\": 10000000},\n"
	"  {\"event\": \"cpu-time\", \"file\": null, \"line\": null, \"function\": \"[no Python frame]\", \"kind\": \"marker\", \"self\": 1, \"total\": 1, \"self_count\": 10000000, \"total_count\": 10000000},\n"
	"  {\"event\": \"cpu-time\", \"file\": \"/lib/libc.so.6\", \"line\": null, \"function\": \"read\", \"kind\": \"native\", \"self\": 1, \"total\": 1, \"self_count\": 10000000, \"total_count\": 10000000},\n"
	"  {\"event\": \"cpu-time\", \"file\": \"/srv/app/main.py\", \"line\": 5, \"function\": \"<module>\", \"kind\": \"python\", \"self\": 0, \"total\": 8, \"self_count\": 0, \"total_count\": 80000000},\n"
	"  {\"event\": \"cpu-time\", \"file\": \"/srv/app/parser.py\", \"line\": 44, \"function\": \"Parser.parse\", \"kind\": \"python\", \"self\": 0, \"total\": 7, \"self_count\": 0, \"total_count\": 70000000},\n"
	"  {\"event\": \"page-faults\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"line\": 12, \"function\": \"decode\", \"kind\": \"python\", \"self\": 1, \"total\": 1, \"self_count\": 100, \"total_count\": 100},\n"
	"  {\"event\": \"page-faults\", \"file\": \"/srv/app/main.py\", \"line\": 5, \"function\": \"<module>\", \"kind\": \"python\", \"self\": 0, \"total\": 1, \"self_count\": 0, \"total_count\": 100},\n"
	"  {\"event\": \"page-faults\", \"file\": \"/srv/app/parser.py\", \"line\": 44, \"function\": \"Parser.parse\", \"kind\": \"python\", \"self\": 0, \"total\": 1, \"self_count\": 0, \"total_count\": 100}\n"
	" ]\n"
	"}\n";

static const char expected_collapsed[] =
	"cpu-time;<module> (/srv/app/main.py:1);Parser.parse (/srv/app/parser.py:40);decode (/usr/lib/python3.11/json/decoder.py:10) 4\n"
	"cpu-time;<module> (/srv/app/main.py:1);Parser.parse (/srv/app/parser.py:40);Parser.parse (/srv/app/parser.py:40) 2\n"
	"cpu-time;<module> (/srv/app/main.py:1);</script>\\x1b[31m:\"\\\\n\\u202e&\\xff (a:b\\n.py:3) 1\n"
	"cpu-time;<module> (/srv/app/main.py:1);Parser.parse (/srv/app/parser.py:40);read (/lib/libc.so.6) 1\n"
	"cpu-time;[no Python frame] 1\n"
	"page-faults;<module> (/srv/app/main.py:1);Parser.parse (/srv/app/parser.py:40);decode (/usr/lib/python3.11/json/decoder.py:10) 1\n";

static const char expected_speedscope[] =
	"{\n"
	" \"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n"
	" \"exporter\": \"pathprof 0.1.0\",\n"
	" \"name\": \"python3 main.py --all\",\n"
	" \"activeProfileIndex\": 0,\n"
	" \"shared\": {\n"
	"  \"frames\": [{\"name\": \"[unknown]\"}, {\"name\": \"[no Python frame]\"}, {\"name\": \"<module>\", \"file\": \"/srv/app/main.py\", \"line\": 1}, {\"name\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"line\": 40}, {\"name\": \"decode\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"line\": 10}, {\"name\": \"read\", \"file\": \"/lib/libc.so.6\"}, {\"name\": \"</script>\\u001b[31m;\\\"\\\\\\n\xe2\x80\xae&�\", \"file\": \"a;b\\n.py\", \"line\": 3}]\n"
	" },\n"
	" \"profiles\": [\n"
	"  {\"type\": \"sampled\", \"name\": \"cpu-time: main (100)\", \"unit\": \"nanoseconds\", \"startValue\": 0, \"endValue\": 70000000, \"samples\": [[2, 3, 4], [2, 3, 3], [2, 6], [2, 3, 4]], \"weights\": [30000000, 20000000, 10000000, 10000000]},\n"
	"  {\"type\": \"sampled\", \"name\": \"cpu-time: 工作 worker (101)\", \"unit\": \"nanoseconds\", \"startValue\": 0, \"endValue\": 20000000, \"samples\": [[2, 3, 5], [1]], \"weights\": [10000000, 10000000]},\n"
	"  {\"type\": \"sampled\", \"name\": \"page-faults: main (100)\", \"unit\": \"none\", \"startValue\": 0, \"endValue\": 100, \"samples\": [[2, 3, 4]], \"weights\": [100]}\n"
	" ]\n"
	"}\n";

static const char expected_jsonl[] =
	"{\"event\": \"cpu-time\", \"pid\": 100, \"tid\": 100, \"frames\": [{\"function\": \"<module>\", \"file\": \"/srv/app/main.py\", \"kind\": \"python\", \"line\": 5}, {\"function\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"kind\": \"python\", \"line\": 44}, {\"function\": \"decode\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"kind\": \"python\", \"line\": 12}], \"samples\": 4, \"count\": 40000000}\n"
	"{\"event\": \"cpu-time\", \"pid\": 100, \"tid\": 100, \"frames\": [{\"function\": \"<module>\", \"file\": \"/srv/app/main.py\", \"kind\": \"python\", \"line\": 5}, {\"function\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"kind\": \"python\", \"line\": 44}, {\"function\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"kind\": \"python\", \"line\": 47}], \"samples\": 2, \"count\": 20000000}\n"
	"{\"event\": \"cpu-time\", \"pid\": 100, \"tid\": 100, \"frames\": [{\"function\": \"<module>\", \"file\": \"/srv/app/main.py\", \"kind\": \"python\", \"line\": 5}, {\"function\": \"</script>\\u001b[31m;\\\"\\\\\\n\xe2\x80\xae&�\", \"file\": \"a;b\\n.py\", \"kind\": \"python\", \"line\": 3}], \"samples\": 1, \"count\": 10000000}\n"
	"{\"event\": \"cpu-time\", \"pid\": 100, \"tid\": 101, \"frames\": [{\"function\": \"<module>\", \"file\": \"/srv/app/main.py\", \"kind\": \"python\", \"line\": 5}, {\"function\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"kind\": \"python\", \"line\": 44}, {\"function\": \"read\", \"file\": \"/lib/libc.so.6\", \"kind\": \"native\", \"line\": null}], \"samples\": 1, \"count\": 10000000}\n"
	"{\"event\": \"cpu-time\", \"pid\": 100, \"tid\": 101, \"frames\": [{\"function\": \"[no Python frame]\", \"file\": null, \"kind\": \"marker\", \"line\": null}], \"samples\": 1, \"count\": 10000000}\n"
	"{\"event\": \"page-faults\", \"pid\": 100, \"tid\": 100, \"frames\": [{\"function\": \"<module>\", \"file\": \"/srv/app/main.py\", \"kind\": \"python\", \"line\": 5}, {\"function\": \"Parser.parse\", \"file\": \"/srv/app/parser.py\", \"kind\": \"python\", \"line\": 44}, {\"function\": \"decode\", \"file\": \"/usr/lib/python3.11/json/decoder.py\", \"kind\": \"python\", \"line\": 12}], \"samples\": 1, \"count\": 100}\n";

/* clang-format on */

static char *export(const char *name, const struct trace *trace)
{
	struct written written;
	struct errbuf err;
	size_t i = 0;

	while (strcmp(exporters[i]->name, name) != 0)
		assert_non_null(exporters[++i]);
	written_open(&written);
	assert_int_equal(exporters[i]->write(trace, written.file, &err), 0);
	written_close(&written);
	return written.text;
}

static void assert_is_json(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%d: %s", error.line, error.text);
	json_decref(root);
}

static void test_json__report_is_the_whole_document(void **state)
{
	struct written written;
	struct errbuf err;

	(void)state;
	written_open(&written);
	assert_int_equal(json_write(example_trace(), written.file, &err), 0);
	assert_string_equal(written_close(&written), expected_json);
	assert_is_json(written.text);
	free(written.text);
}

static void test_json__samples_and_losses_are_all_overflows(void **state)
{
	struct trace *trace = example_trace();
	struct written written;
	struct errbuf err;
	json_t *root, *lost, *each;
	json_int_t sum = 0;
	const char *key;

	(void)state;
	written_open(&written);
	assert_int_equal(json_write(trace, written.file, &err), 0);
	root = json_loads(written_close(&written), 0, NULL);
	lost = json_object_get(root, "lost");
	json_object_foreach(lost, key, each)
	{
		if (strcmp(key, "total") != 0)
			sum += json_integer_value(each);
	}
	assert_int_equal(json_integer_value(json_object_get(lost, "total")), sum);
	assert_int_equal(json_integer_value(json_object_get(root, "samples")) + sum, 12);
	json_decref(root);
	free(written.text);
}

static void test_json__empty_trace_is_a_document(void **state)
{
	struct trace trace = {.events = (struct trace_event[]){{"cpu-time", "ns", 1, 0, NULL}},
			      .nr_events = 1};
	struct written written;
	struct errbuf err;
	json_t *root;

	(void)state;
	written_open(&written);
	assert_int_equal(json_write(&trace, written.file, &err), 0);
	root = json_loads(written_close(&written), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "functions")), 0);
	assert_true(json_is_null(json_object_get(json_object_get(root, "overhead"), "share")));
	json_decref(root);
	free(written.text);
}

static void test_json_stream__strings_come_back_as_they_were(void **state)
{
	static const char hard[] =
		"\x01\b\t\n\f\r\"\\/\x7f\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80</&>";

	(void)state;
	for (int in_html = 0; in_html < 2; in_html++) {
		struct json_stream json = {.in_html = in_html};
		struct written written;
		json_t *root;

		json.out = written_open(&written);
		json_begin(&json, NULL, '[');
		json_text(&json, NULL, hard);
		json_text(&json, NULL,
			  "a\xff"
			  "b\xe2\x80");
		json_end(&json, ']');
		root = json_loads(written_close(&written), 0, NULL);
		assert_non_null(root);
		assert_string_equal(json_string_value(json_array_get(root, 0)), hard);
		assert_string_equal(json_string_value(json_array_get(root, 1)),
				    "a\xef\xbf\xbd"
				    "b\xef\xbf\xbd\xef\xbf\xbd");
		if (in_html)
			assert_null(strpbrk(written.text, "<>&"));
		assert_null(strstr(written.text, "\xe2\x80\xa8"));
		json_decref(root);
		free(written.text);
	}
}

static void test_json_stream__numbers_are_exact(void **state)
{
	struct json_stream json = {0};
	struct written written;

	(void)state;
	json.out = written_open(&written);
	json_begin(&json, NULL, '[');
	json_number(&json, NULL, 0);
	json_number(&json, NULL, UINT64_MAX);
	json_signed(&json, NULL, INT64_MIN);
	json_line(&json, NULL, 0);
	json_share(&json, NULL, 0.25);
	json_bool(&json, NULL, false);
	json_end(&json, ']');
	assert_string_equal(written_close(&written), "[0, 18446744073709551615, "
						     "-9223372036854775808, null, 0.25, false]");
	free(written.text);
}

static void assert_export(const char *name, const char *expected)
{
	char *text = export(name, example_trace());

	assert_string_equal(text, expected);
	free(text);
}

static void test_collapsed__names_cannot_break_the_lines(void **state)
{
	(void)state;
	assert_export("collapsed", expected_collapsed);
}

static void test_collapsed__one_event_needs_no_name(void **state)
{
	struct trace *trace = example_trace();
	char *text;

	(void)state;
	trace->nr_events = trace->nr_samples = 1;
	trace->functions[2].kind = FRAME_KERNEL;
	text = export("collapsed", trace);
	assert_string_equal(text, "<module> (/srv/app/main.py:1)_[k];Parser.parse "
				  "(/srv/app/parser.py:40);decode "
				  "(/usr/lib/python3.11/json/decoder.py:10) 1\n");
	free(text);
}

static void test_collapsed__very_long_names_are_whole(void **state)
{
	struct trace *trace = example_trace();
	char name[3001], *text;

	(void)state;
	/* Two-byte characters, so that a cut at a fixed place would split one. */
	for (size_t i = 0; i < 3000; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	name[3000] = 0;
	name[0] = name[1] = 'x';
	name[2999] = name[2998] = ';';
	trace->functions[2].name = name;
	trace->functions[2].file = NULL;
	trace->nr_samples = trace->nr_events = 1;
	text = export("collapsed", trace);
	name[2999] = name[2998] = ':';
	assert_memory_equal(text, name, 3000);
	assert_int_equal(text[3000], ';');
	free(text);
}

static void test_speedscope__profiles_are_per_event_and_thread(void **state)
{
	(void)state;
	assert_is_json(expected_speedscope);
	assert_export("speedscope", expected_speedscope);
}

static void test_speedscope__samples_are_in_the_order_of_time(void **state)
{
	struct trace *trace = example_trace();
	struct trace_sample first = trace->samples[0];
	char *text;

	(void)state;
	/* The stream is out of order; the file is not. */
	memmove(trace->samples, trace->samples + 1, 6 * sizeof(first));
	trace->samples[6] = first;
	text = export("speedscope", trace);
	assert_string_equal(text, expected_speedscope);
	free(text);
}

static void test_jsonl__a_stack_is_a_line(void **state)
{
	(void)state;
	assert_export("jsonl", expected_jsonl);
	for (const char *line = expected_jsonl; *line; line = strchr(line, '\n') + 1) {
		char *copy = strndup(line, (size_t)(strchr(line, '\n') - line));

		assert_is_json(copy);
		free(copy);
	}
}

static void test_pair_map__numbers_pairs_as_they_come(void **state)
{
	struct pair_map map = {0};
	uint32_t index;

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 20000; i++) {
			assert_int_equal(pair_map_add(&map, i % 100, i / 100, &index), 0);
			assert_int_equal(index, i);
		}
	}
	assert_int_equal(map.nr, 20000);
	assert_int_equal(map.pairs[12345].a, 45);
	assert_int_equal(map.pairs[12345].b, 123);
	pair_map_release(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json__report_is_the_whole_document),
		cmocka_unit_test(test_json__samples_and_losses_are_all_overflows),
		cmocka_unit_test(test_json__empty_trace_is_a_document),
		cmocka_unit_test(test_json_stream__strings_come_back_as_they_were),
		cmocka_unit_test(test_json_stream__numbers_are_exact),
		cmocka_unit_test(test_collapsed__names_cannot_break_the_lines),
		cmocka_unit_test(test_collapsed__one_event_needs_no_name),
		cmocka_unit_test(test_collapsed__very_long_names_are_whole),
		cmocka_unit_test(test_speedscope__profiles_are_per_event_and_thread),
		cmocka_unit_test(test_speedscope__samples_are_in_the_order_of_time),
		cmocka_unit_test(test_jsonl__a_stack_is_a_line),
		cmocka_unit_test(test_pair_map__numbers_pairs_as_they_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
