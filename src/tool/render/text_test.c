/* SPDX-License-Identifier: MIT */
/* Whole reports over the example trace: what is written is compared to the last blank. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/render/example_trace_test.h"
#include "tool/render/render.h"

/* clang-format off */
static const char expected_header[] =
	"Command    python3 main.py --all\n"
	"Host       box, Linux 6.1, A CPU, 2 CPUs\n"
	"When       2026-11-30 00:00:00 +0000, 200 ms\n"
	"Event      cpu-time, a sample every 10 ms, by cpu-timer: 9 samples, ~90.0 ms\n"
	"           page-faults, a sample every 100, by perf-sigtrap: 1 sample, ~100 of 12,345 counted\n"
	"Samples    10 in 2 threads of 1 process, 2 lost\n"
	"Overhead   110 us in the program (0.1% of its CPU time), 5.00 ms in the recorder\n"
	"\n"
	"Lost or not seen\n"
	"  2 of 12 overflows (16.7%) left no sample.\n"
	"  2 lost: no free packet: the recorder did not keep up (buffer_full).\n"
	"  1 sample shows only part of the stack: deeper than the frames that one sample keeps (truncated).\n"
	"  30.0 ms of CPU time went to threads that were not sampled, or to the ends of many short ones.\n"
	"  1 process was not recorded (102 /bin/true): it is linked statically.\n"
	"  Native frames were not recorded.\n";

static const char expected_tables[] =
	"\n"
	"cpu-time: 9 samples, ~90.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function                           File:Line\n"
	" 44.4%   40.0 ms   44.4%   40.0 ms  decode                             /usr/lib/python3.11/json/decoder.py:10\n"
	" 22.2%   20.0 ms   77.8%   70.0 ms  Parser.parse                       /srv/app/parser.py:40\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  </script>\\x1b[31m;\"\\\\n\\u202e&\\xff  a;b\\n.py:3\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  [no Python frame]\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  read                               /lib/libc.so.6\n"
	"  0.0%         0   88.9%   80.0 ms  <module>                           /srv/app/main.py:1\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function                           File:Line\n"
	" 44.4%   40.0 ms   44.4%   40.0 ms  decode                             /usr/lib/python3.11/json/decoder.py:12\n"
	" 22.2%   20.0 ms   22.2%   20.0 ms  Parser.parse                       /srv/app/parser.py:47\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  </script>\\x1b[31m;\"\\\\n\\u202e&\\xff  a;b\\n.py:3\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  [no Python frame]\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  read                               /lib/libc.so.6\n"
	"  0.0%         0   88.9%   80.0 ms  <module>                           /srv/app/main.py:5\n"
	"  0.0%         0   77.8%   70.0 ms  Parser.parse                       /srv/app/parser.py:44\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  File\n"
	" 44.4%   40.0 ms   44.4%   40.0 ms  /usr/lib/python3.11/json/decoder.py\n"
	" 22.2%   20.0 ms   77.8%   70.0 ms  /srv/app/parser.py\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  a;b\\n.py\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  [no file]\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  /lib/libc.so.6\n"
	"  0.0%         0   88.9%   80.0 ms  /srv/app/main.py\n"
	"\n"
	"page-faults: 1 sample, ~100\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function      File:Line\n"
	"100.0%       100  100.0%       100  decode        /usr/lib/python3.11/json/decoder.py:10\n"
	"  0.0%         0  100.0%       100  <module>      /srv/app/main.py:1\n"
	"  0.0%         0  100.0%       100  Parser.parse  /srv/app/parser.py:40\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function      File:Line\n"
	"100.0%       100  100.0%       100  decode        /usr/lib/python3.11/json/decoder.py:12\n"
	"  0.0%         0  100.0%       100  <module>      /srv/app/main.py:5\n"
	"  0.0%         0  100.0%       100  Parser.parse  /srv/app/parser.py:44\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  File\n"
	"100.0%       100  100.0%       100  /usr/lib/python3.11/json/decoder.py\n"
	"  0.0%         0  100.0%       100  /srv/app/main.py\n"
	"  0.0%         0  100.0%       100  /srv/app/parser.py\n";

static const char expected_trees[] =
	"\n"
	"cpu-time: 9 samples, ~90.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Call path\n"
	"  0.0%         0   88.9%   80.0 ms  ├─ <module>  /srv/app/main.py:1\n"
	"  0.0%         0   77.8%   70.0 ms  │  ├─ Parser.parse  /srv/app/parser.py:40\n"
	" 44.4%   40.0 ms   44.4%   40.0 ms  │  │  ├─ decode  /usr/lib/python3.11/json/decoder.py:10\n"
	" 22.2%   20.0 ms   22.2%   20.0 ms  │  │  ├─ Parser.parse  /srv/app/parser.py:40\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  │  │  └─ read  /lib/libc.so.6\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  │  └─ </script>\\x1b[31m;\"\\\\n\\u202e&\\xff  a;b\\n.py:3\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  └─ [no Python frame]\n"
	"\n"
	"cpu-time, thread 100 main (77.8% of the event): 7 samples, ~70.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Call path\n"
	"  0.0%         0  100.0%   70.0 ms  <module>  /srv/app/main.py:1\n"
	"  0.0%         0   85.7%   60.0 ms  ├─ Parser.parse  /srv/app/parser.py:40\n"
	" 57.1%   40.0 ms   57.1%   40.0 ms  │  ├─ decode  /usr/lib/python3.11/json/decoder.py:10\n"
	" 28.6%   20.0 ms   28.6%   20.0 ms  │  └─ Parser.parse  /srv/app/parser.py:40\n"
	" 14.3%   10.0 ms   14.3%   10.0 ms  └─ </script>\\x1b[31m;\"\\\\n\\u202e&\\xff  a;b\\n.py:3\n"
	"\n"
	"cpu-time, thread 101 工作 worker (22.2% of the event): 2 samples, ~20.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Call path\n"
	"  0.0%         0   50.0%   10.0 ms  ├─ <module>  /srv/app/main.py:1\n"
	"  0.0%         0   50.0%   10.0 ms  │  Parser.parse  /srv/app/parser.py:40\n"
	" 50.0%   10.0 ms   50.0%   10.0 ms  │  read  /lib/libc.so.6\n"
	" 50.0%   10.0 ms   50.0%   10.0 ms  └─ [no Python frame]\n"
	"\n"
	"page-faults: 1 sample, ~100\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Call path\n"
	"  0.0%         0  100.0%       100  <module>  /srv/app/main.py:1\n"
	"  0.0%         0  100.0%       100  Parser.parse  /srv/app/parser.py:40\n"
	"100.0%       100  100.0%       100  decode  /usr/lib/python3.11/json/decoder.py:10\n"
	"\n"
	"page-faults, thread 100 main (100.0% of the event): 1 sample, ~100\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Call path\n"
	"  0.0%         0  100.0%       100  <module>  /srv/app/main.py:1\n"
	"  0.0%         0  100.0%       100  Parser.parse  /srv/app/parser.py:40\n"
	"100.0%       100  100.0%       100  decode  /usr/lib/python3.11/json/decoder.py:10\n";

static const char expected_inverted[] =
	"\n"
	"cpu-time: 9 samples, ~90.0 ms\n"
	"\n"
	"Total%    ~Total  Function, called by\n"
	" 44.4%   40.0 ms  ├─ decode  /usr/lib/python3.11/json/decoder.py:10\n"
	" 44.4%   40.0 ms  │  Parser.parse  /srv/app/parser.py:40\n"
	" 44.4%   40.0 ms  │  <module>  /srv/app/main.py:1\n"
	" 55.6%   50.0 ms  └─ (4 branches below --min-share)\n"
	"\n"
	"page-faults: 1 sample, ~100\n"
	"\n"
	"Total%    ~Total  Function, called by\n"
	"100.0%       100  decode  /usr/lib/python3.11/json/decoder.py:10\n"
	"100.0%       100  Parser.parse  /srv/app/parser.py:40\n"
	"100.0%       100  <module>  /srv/app/main.py:1\n";

static const char expected_narrow[] =
	"\n"
	"cpu-time: 9 samples, ~90.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function              File:Line\n"
	" 44.4%   40.0 ms   44.4%   40.0 ms  decode                …/json/decoder.py:10\n"
	" 22.2%   20.0 ms   77.8%   70.0 ms  Parser.parse          /srv/app/parser.py:40\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  </script>…&\\xff       a;b\\n.py:3\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  [no Python frame]\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  read                  /lib/libc.so.6\n"
	"  0.0%         0   88.9%   80.0 ms  <module>              /srv/app/main.py:1\n"
	"\n"
	"page-faults: 1 sample, ~100\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function      File:Line\n"
	"100.0%       100  100.0%       100  decode        …/json/decoder.py:10\n"
	"  0.0%         0  100.0%       100  <module>      /srv/app/main.py:1\n"
	"  0.0%         0  100.0%       100  Parser.parse  /srv/app/parser.py:40\n";

static const char expected_very_narrow[] =
	"Command    python3 main.py --all\n"
	"Host       box, Linux 6.1, A CPU, 2 CPUs\n"
	"When       2026-11-30 00:00:00 +0000, 200 ms\n"
	"Event      cpu-time, a sample every 10 ms, by\n"
	"           cpu-timer: 9 samples, ~90.0 ms\n"
	"           page-faults, a sample every 100, by\n"
	"           perf-sigtrap: 1 sample, ~100 of 12,345\n"
	"           counted\n"
	"Samples    10 in 2 threads of 1 process, 2 lost\n"
	"Overhead   110 us in the program (0.1% of its CPU\n"
	"           time), 5.00 ms in the recorder\n"
	"\n"
	"Lost or not seen\n"
	"  2 of 12 overflows (16.7%) left no sample.\n"
	"  2 lost: no free packet: the recorder did not\n"
	"  keep up (buffer_full).\n"
	"  1 sample shows only part of the stack: deeper\n"
	"  than the frames that one sample keeps\n"
	"  (truncated).\n"
	"  30.0 ms of CPU time went to threads that were\n"
	"  not sampled, or to the ends of many short ones.\n"
	"  1 process was not recorded (102 /bin/true): it\n"
	"  is linked statically.\n"
	"  Native frames were not recorded.\n"
	"\n"
	"cpu-time: 9 samples, ~90.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function\n"
	" 44.4%   40.0 ms   44.4%   40.0 ms  decode\n"
	" 22.2%   20.0 ms   22.2%   20.0 ms  Parser.parse\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  </scri…&\\xff\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  [no Py… frame]\n"
	" 11.1%   10.0 ms   11.1%   10.0 ms  read\n"
	"  0.0%         0   88.9%   80.0 ms  <module>\n"
	"  0.0%         0   77.8%   70.0 ms  Parser.parse\n"
	"\n"
	"page-faults: 1 sample, ~100\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function\n"
	"100.0%       100  100.0%       100  decode\n"
	"  0.0%         0  100.0%       100  <module>\n"
	"  0.0%         0  100.0%       100  Parser.parse\n";

static const char expected_color[] =
	"\n"
	"cpu-time: 9 samples, ~90.0 ms\n"
	"\n"
	" Self%     ~Self  Total%    ~Total  Function                        File:Line\n"
	"\033[1;31m 44.4%\033[0m   40.0 ms  \033[1;31m 44.4%\033[0m   40.0 ms  decode                          \033[2m…/python3.11/json/decoder.py:10\033[0m\n"
	"\033[1;31m 22.2%\033[0m   20.0 ms  \033[1;31m 77.8%\033[0m   70.0 ms  Parser.parse                    \033[2m/srv/app/parser.py:40\033[0m\n"
	"\033[33m 11.1%\033[0m   10.0 ms  \033[33m 11.1%\033[0m   10.0 ms  </script>\\x1b[…\"\\\\n\\u202e&\\xff  \033[2ma;b\\n.py:3\033[0m\n"
	"\033[33m 11.1%\033[0m   10.0 ms  \033[33m 11.1%\033[0m   10.0 ms  [no Python frame]\n"
	"\033[33m 11.1%\033[0m   10.0 ms  \033[33m 11.1%\033[0m   10.0 ms  read                            \033[2m/lib/libc.so.6\033[0m\n"
	"  0.0%         0  \033[1;31m 88.9%\033[0m   80.0 ms  <module>                        \033[2m/srv/app/main.py:1\033[0m\n";

/* clang-format on */

static char *report(const struct trace *trace, const struct text_options *options)
{
	struct written written;
	struct errbuf err;

	written_open(&written);
	assert_int_equal(text_write(trace, options, written.file, &err), 0);
	written_close(&written);
	return written.text;
}

static void assert_report(const struct text_options *options, const char *header, const char *rest)
{
	char *text = report(example_trace(), options);

	assert_true(strlen(text) > strlen(header));
	assert_memory_equal(text, header, strlen(header));
	assert_string_equal(text + strlen(header), rest);
	free(text);
}

static void test_text__tables_are_whole_where_nothing_limits_them(void **state)
{
	struct text_options options = {.by_function = true, .by_line = true, .by_file = true};

	(void)state;
	assert_report(&options, expected_header, expected_tables);
}

static void test_text__trees_and_threads(void **state)
{
	struct text_options options = {.tree = true, .per_thread = true};

	(void)state;
	assert_report(&options, expected_header, expected_trees);
}

static void test_text__light_branches_are_folded_into_a_line(void **state)
{
	struct text_options options = {.tree = true, .inverted = true, .min_share = 0.25};

	(void)state;
	assert_report(&options, expected_header, expected_inverted);
}

static void test_text__narrow_terminals_cut_paths_first(void **state)
{
	struct text_options options = {.by_function = true, .width = 80};
	char *text = report(example_trace(), &options);

	(void)state;
	assert_string_equal(strstr(text, "\ncpu-time: 9"), expected_narrow);
	free(text);
}

static void test_text__very_narrow_terminals_keep_functions(void **state)
{
	struct text_options options = {.by_line = true, .width = 50};

	(void)state;
	assert_report(&options, "", expected_very_narrow);
}

static void test_text__colour_is_heat_and_dim_paths(void **state)
{
	struct text_options options = {
		.by_function = true, .color = true, .width = 100, .event = "cpu-time"};
	char *text = report(example_trace(), &options);

	(void)state;
	assert_string_equal(strstr(text, "\ncpu-time: 9"), expected_color);
	free(text);
}

static void test_text__limit_says_what_it_left_out(void **state)
{
	struct text_options options = {.by_function = true, .limit = 2, .event = "cpu-time"};

	(void)state;
	assert_report(&options, expected_header,
		      "\ncpu-time: 9 samples, ~90.0 ms\n\n"
		      " Self%     ~Self  Total%    ~Total  Function      File:Line\n"
		      " 44.4%   40.0 ms   44.4%   40.0 ms  decode        "
		      "/usr/lib/python3.11/json/decoder.py:10\n"
		      " 22.2%   20.0 ms   77.8%   70.0 ms  Parser.parse  "
		      "/srv/app/parser.py:40\n"
		      "4 more rows (--limit=0 shows all)\n");
}

static void test_text__unknown_names_are_sentences(void **state)
{
	struct text_options options = {.by_function = true, .event = "cycles"};
	struct written written;
	struct errbuf err;

	(void)state;
	written_open(&written);
	assert_int_equal(text_write(example_trace(), &options, written.file, &err), -ENOENT);
	assert_string_equal(err.text, "The recording has no event 'cycles'; it has: cpu-time, "
				      "page-faults");
	options.event = NULL;
	options.source = "nothing.py";
	assert_int_equal(text_write(example_trace(), &options, written.file, &err), -ENOENT);
	assert_string_equal(err.text, "The recording has no file named 'nothing.py'");
	assert_string_equal(written_close(&written), "");
	free(written.text);
}

static void test_text__an_end_of_two_names_is_ambiguous(void **state)
{
	struct text_options options = {.source = "main.py"};
	struct trace *trace = example_trace();
	struct written written;
	struct errbuf err;

	(void)state;
	trace->functions[4].file = "/usr/main.py";
	written_open(&written);
	assert_int_equal(text_write(trace, &options, written.file, &err), -EINVAL);
	assert_string_equal(err.text, "'main.py' is the end of several files' names, such as "
				      "'/srv/app/main.py' and '/usr/main.py': give more of it");
	/* "ain.py" is the end of a word, not of a path. */
	options.source = "ain.py";
	assert_int_equal(text_write(trace, &options, written.file, &err), -ENOENT);
	written_close(&written);
	free(written.text);
}

/* A source on disk as the example's main.py, whose line 5 has samples; 2001: before it ran. */
static void make_source(char *path, const char *text, bool old)
{
	FILE *file;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs(text, file);
	fclose(file);
	if (old)
		assert_int_equal(utimensat(AT_FDCWD, path,
					   (struct timespec[]){{1000000000, 0}, {1000000000, 0}},
					   0),
				 0);
}

static void assert_source(const char *text, bool old, const char *expected)
{
	struct text_options options = {.event = "cpu-time"};
	struct trace *trace = example_trace();
	char path[] = "/tmp/pathprof-source-XXXXXX", *written, whole[2048];

	make_source(path, text, old);
	options.source = path;
	trace->functions[2].file = path;
	written = report(trace, &options);
	unlink(path);
	snprintf(whole, sizeof(whole), expected, path);
	assert_string_equal(strstr(written, "\ncpu-time: 9") + 1, whole);
	free(written);
}

/* The same with the samples on another line: what of the text is there, gaps and all. */
static void assert_source_line(const char *text, uint32_t line, bool old, const char *expected)
{
	struct text_options options = {.event = "cpu-time"};
	struct trace *trace = example_trace();
	char path[] = "/tmp/pathprof-source-XXXXXX", *written;

	make_source(path, text, old);
	options.source = path;
	trace->functions[2].file = path;
	for (size_t i = 0; i < trace->nr_nodes; i++)
		if (trace->nodes[i].function == 2)
			trace->nodes[i].line = line;
	written = report(trace, &options);
	unlink(path);
	assert_non_null(strstr(written, expected));
	free(written);
}

static void test_text__source_has_costs_beside_its_lines(void **state)
{
	(void)state;
	assert_source("one\n\ttwo\r\n\n\033[31m\nfive\nsix", true,
		      "cpu-time: 9 samples, ~90.0 ms\n\n"
		      " Self%%     ~Self  Total%%    ~Total    Line  %s\n"
		      "                                         1  one\n"
		      "                                         2          two\n"
		      "                                         3\n"
		      "                                         4  \\x1b[31m\n"
		      "  0.0%%         0   88.9%%   80.0 ms       5  five\n"
		      "                                         6  six\n");
}

static void test_text__source_that_is_left_out_is_marked(void **state)
{
	char text[256] = "";

	(void)state;
	for (int line = 1; line <= 30; line++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d\n", line);
	assert_source(text, true,
		      "cpu-time: 9 samples, ~90.0 ms\n\n"
		      " Self%%     ~Self  Total%%    ~Total    Line  %s\n"
		      "                                         1  1\n"
		      "                                         2  2\n"
		      "                                         3  3\n"
		      "                                         4  4\n"
		      "  0.0%%         0   88.9%%   80.0 ms       5  5\n"
		      "                                         6  6\n"
		      "                                         7  7\n"
		      "                                         8  8\n"
		      "                                         9  9\n"
		      "                                        10  10\n"
		      "                                       ...\n");
	assert_source_line(text, 12, true,
			   "                                       ...\n"
			   "                                         7  7\n");
	assert_source_line(text, 30, true,
			   "                                        29  29\n"
			   "  0.0%         0   88.9%   80.0 ms      30  30\n");
	assert_source_line(text, 30, true,
			   "                                       ...\n"
			   "                                        25  25\n");
}

static void test_text__source_that_changed_is_said(void **state)
{
	(void)state;
	assert_source("1\n2\n3\n4\n5\n", false,
		      "cpu-time: 9 samples, ~90.0 ms\n\n"
		      "The source was changed after the recording began: the lines may be others.\n"
		      " Self%%     ~Self  Total%%    ~Total    Line  %s\n"
		      "                                         1  1\n"
		      "                                         2  2\n"
		      "                                         3  3\n"
		      "                                         4  4\n"
		      "  0.0%%         0   88.9%%   80.0 ms       5  5\n");
	assert_source(
		"1\n2\n", true,
		"cpu-time: 9 samples, ~90.0 ms\n\n"
		"The source has 2 lines now, and samples fell on line 5: it is not what ran.\n"
		" Self%%     ~Self  Total%%    ~Total    Line  %s\n"
		"                                       ...\n"
		"  0.0%%         0   88.9%%   80.0 ms       5\n");
}

static void test_text__a_line_twice_in_a_stack_counts_once(void **state)
{
	struct text_options options = {.source = "parser.py", .event = "cpu-time"};
	struct trace *trace = example_trace();
	char *text;

	(void)state;
	/* decode stands on the line of parse that called it, as a generator expression would. */
	trace->functions[4].file = trace->functions[3].file;
	trace->nodes[3].line = 44;
	text = report(trace, &options);
	assert_string_equal(strstr(text, " Self%"),
			    " Self%     ~Self  Total%    ~Total    Line  /srv/app/parser.py\n"
			    " 44.4%   40.0 ms   77.8%   70.0 ms      44\n"
			    " 22.2%   20.0 ms   22.2%   20.0 ms      47\n");
	free(text);
}

static void test_text__missing_source_is_said(void **state)
{
	struct text_options options = {.source = "main.py", .event = "cpu-time"};
	static const char expected[] =
		"\ncpu-time: 9 samples, ~90.0 ms\n\n"
		"The source cannot be read here: No such file or directory. Its lines are "
		"shown by number.\n"
		" Self%     ~Self  Total%    ~Total    Line  /srv/app/main.py\n"
		"  0.0%         0   88.9%   80.0 ms       5\n";

	(void)state;
	assert_report(&options, expected_header, expected);
	/* As a shell completes it. */
	options.source = "./main.py";
	assert_report(&options, expected_header, expected);
}

#define EMPTY_HEAD                                                                    \
	"Command    python3 main.py --all\n"                                          \
	"Host       box, Linux 6.1, A CPU, 2 CPUs\n"                                  \
	"When       200 ms\n"                                                         \
	"Event      cpu-time, a sample every 10 ms, by cpu-timer: 0 samples, ~0 ns\n" \
	"Samples    0 in 0 threads of 1 process, "

static void test_text__an_empty_recording_says_why(void **state)
{
	struct text_options options = {.by_function = true, .width = 100};
	struct trace *trace = example_trace();
	char *text;

	(void)state;
	trace->nr_samples = trace->nr_lost = trace->nr_degraded = trace->nr_notes = 0;
	trace->nr_events = trace->nr_processes = 1;
	trace->nr_threads = trace->nr_interpreters = 0;
	trace->unseen_cpu_ns = trace->handler_ns = trace->recorder_ns = 0;
	trace->clock_offset_ns = 0;
	text = report(trace, &options);
	assert_string_equal(text, EMPTY_HEAD
			    "none lost\n\n"
			    "There are no samples. Either the program ended before it had "
			    "used one period of CPU time (or caused\n"
			    "one period of the event), or it hardly ran: waiting, for disks, "
			    "locks or other programs, uses none.\n"
			    "Record for longer, or with a shorter period.\n");
	free(text);
	trace->complete = trace->ended = false; /* then that is why, and nothing else is */
	text = report(trace, &options);
	assert_string_equal(text, EMPTY_HEAD
			    "not known how many lost\n\n"
			    "Lost or not seen\n"
			    "  The recording is not complete: it is still being recorded, or its "
			    "recorder was killed. What came\n"
			    "  last, and what was lost, may be missing.\n");
	free(text);
}

static size_t times(const char *text, const char *words)
{
	size_t number = 0;

	for (const char *at = text; (at = strstr(at, words)); at++)
		number++;
	return number;
}

/* One of the example's samples is a wait. */
static struct trace *with_a_wait(uint64_t period_ns)
{
	struct trace *trace = example_trace();

	trace->samples[6].state = STATE_LOCK;
	trace->nr_waits = 1;
	trace->wall.period_ns = period_ns;
	return trace;
}

static void test_text__one_state_is_not_told_twice(void **state)
{
	struct text_options options = {.by_function = true, .width = 100, .split_states = true};
	char *text;

	(void)state;
	options.per_thread = true;
	options.states = 1u << STATE_LOCK;
	text = report(with_a_wait(10 * 1000000), &options);
	assert_int_equal(times(text, "cpu-time, gil-wait: 1 wait, ~10.0 ms\n"), 1);
	assert_int_equal(times(text, "gil-wait: 1 wait"), 2); /* of all threads, and of one */
	free(text);
	options.states |= 1u << STATE_RUNNING;
	text = report(with_a_wait(10 * 1000000), &options);
	assert_int_equal(times(text, "cpu-time, running+gil-wait: 8 samples and 1 wait, "), 1);
	assert_int_equal(times(text, "cpu-time, gil-wait: 1 wait, ~10.0 ms\n"), 1);
	assert_int_equal(times(text, "cpu-time, running: 8 samples, "), 1);
	free(text);
}

static void test_text__samples_are_told_apart_from_waits(void **state)
{
	struct text_options options = {.by_function = true, .width = 0};
	char *text = report(with_a_wait(10 * 1000000), &options);

	(void)state;
	assert_non_null(strstr(text, "by cpu-timer: 8 samples and 1 wait, ~90.0 ms\n"));
	assert_non_null(strstr(text, "Samples    9 in ")); /* one is of the other event */
	free(text);
}

static void test_text__a_state_that_nothing_was_in_is_said(void **state)
{
	struct text_options options = {.by_function = true, .width = 100};
	char *text;

	(void)state;
	options.states = 1u << STATE_WAITING;
	text = report(example_trace(), &options);
	assert_non_null(strstr(text, "\n\nNothing was in that state; waiting is recorded with "
				     "pathprof record --wall.\n"));
	free(text);
	text = report(with_a_wait(10 * 1000000), &options);
	assert_non_null(strstr(text, "\n\nNothing was in that state.\n"));
	free(text);
	options.states = 1u << STATE_LOCK;
	text = report(with_a_wait(10 * 1000000), &options);
	assert_null(strstr(text, "Nothing was"));
	free(text);
}

/* Kernel time that is not counted changes what all other lines mean. */
static void test_text__headlines_are_the_first_lines(void **state)
{
	static const char *const headlines[] = {"Kernel time is not included: x"};
	struct text_options options = {.by_function = true, .width = 100};
	struct trace *trace = example_trace();
	char *text;

	(void)state;
	trace->headlines = headlines;
	trace->nr_headlines = 1;
	text = report(trace, &options);
	assert_memory_equal(text, "Kernel time is not included: x.\n\nCommand", 40);
	assert_null(strstr(text + 10, "Kernel time")); /* and not again among the notices */
	free(text);
}

/* A tree may be as deep as the recorder allows, in a straight line and in forks. */
static void test_text__deep_trees_stay_in_their_columns(void **state)
{
	enum { DEPTH = 3000 };
	struct text_options options = {.tree = true, .width = 80};
	struct trace *trace = example_trace();
	struct trace_node *nodes = calloc(DEPTH + 1, sizeof(*nodes));
	struct trace_sample *samples = calloc(DEPTH, sizeof(*samples));
	char *text;

	(void)state;
	for (uint32_t i = 1; i <= DEPTH; i++) {
		/* Each level ends one stack in a leaf of its own and goes on in another. */
		nodes[i] = (struct trace_node){i < 3 ? 0 : i - 2 + i % 2, 2 + i % 2, 1, 0, 0, 1};
		samples[i - 1] = (struct trace_sample){0, 0, 0, 0, i, 1};
	}
	trace->nodes = nodes;
	trace->nr_nodes = DEPTH + 1;
	trace->samples = samples;
	trace->nr_samples = DEPTH;
	trace->nr_events = 1;
	text = report(trace, &options);
	assert_true(strlen(text) > 100000);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(mbstowcs(NULL, line, 0) <= 36 + 40 * 3 + 10);
	free(text);
	free(nodes);
	free(samples);
}

static int set_up(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text__tables_are_whole_where_nothing_limits_them),
		cmocka_unit_test(test_text__trees_and_threads),
		cmocka_unit_test(test_text__light_branches_are_folded_into_a_line),
		cmocka_unit_test(test_text__narrow_terminals_cut_paths_first),
		cmocka_unit_test(test_text__very_narrow_terminals_keep_functions),
		cmocka_unit_test(test_text__colour_is_heat_and_dim_paths),
		cmocka_unit_test(test_text__limit_says_what_it_left_out),
		cmocka_unit_test(test_text__unknown_names_are_sentences),
		cmocka_unit_test(test_text__an_end_of_two_names_is_ambiguous),
		cmocka_unit_test(test_text__source_has_costs_beside_its_lines),
		cmocka_unit_test(test_text__source_that_is_left_out_is_marked),
		cmocka_unit_test(test_text__source_that_changed_is_said),
		cmocka_unit_test(test_text__a_line_twice_in_a_stack_counts_once),
		cmocka_unit_test(test_text__missing_source_is_said),
		cmocka_unit_test(test_text__an_empty_recording_says_why),
		cmocka_unit_test(test_text__one_state_is_not_told_twice),
		cmocka_unit_test(test_text__samples_are_told_apart_from_waits),
		cmocka_unit_test(test_text__a_state_that_nothing_was_in_is_said),
		cmocka_unit_test(test_text__headlines_are_the_first_lines),
		cmocka_unit_test(test_text__deep_trees_stay_in_their_columns),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
