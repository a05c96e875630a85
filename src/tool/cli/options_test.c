/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/cli/commands.h"
#include "tool/cli/options.h"
#include "tool/cli/options_value.h"
#include "tool/events/suggest.h"

#define WORDS_MAX 16

/* What one parse gave. */
struct result {
	bool tree, inverted;
	const char *output, *file;
	uint64_t limit, bytes, time_ns;
	double share;
	struct option_list events;
	struct common_options common;
	int status, operands, argc;
	char *argv[WORDS_MAX + 1];
	char words[256]; /* argv's */
	char out[2048];	 /* stdout and stderr */
};

static void read_back(struct result *result, FILE *file)
{
	size_t length;

	fflush(stdout);
	fflush(stderr);
	rewind(file);
	length = fread(result->out, 1, sizeof(result->out) - 1, file);
	result->out[length] = 0;
}

/* Parse a line of words between single blanks. */
static struct result *parse(struct result *result, const char *line, bool stop_at_operand)
{
	const struct option_spec options[] = {
		{'t', "tree", OPTION_FLAG, NULL, "Show a tree", &result->tree},
		{'i', "inverted", OPTION_FLAG, NULL, "From the leaves", &result->inverted},
		{'o', "output", OPTION_STRING, "FILE", "Write here", &result->output},
		{'n', "limit", OPTION_NUMBER, "N", "Rows", &result->limit},
		{0, "limit-bytes", OPTION_BYTES, "SIZE", "Size", &result->bytes},
		{0, "interval", OPTION_SECONDS, "TIME", "Time", &result->time_ns},
		{0, "min-share", OPTION_DOUBLE, "PERCENT", "Share", &result->share},
		{0, "file", OPTION_ONCE, "FILE", "One", &result->file},
		{'e', "event", OPTION_LIST, "EVENT", "Each", &result->events},
		{0},
	};
	const struct command_spec command = {
		"test", "[OPTION...] [DIR]", "Tests.", "  pathprof test", options, stop_at_operand,
	};
	FILE *file = tmpfile();
	int saved_out = dup(1), saved_err = dup(2);

	memset(result, 0, sizeof(*result));
	snprintf(result->words, sizeof(result->words), "test %s", line);
	for (char *w = strtok(result->words, " "); w; w = strtok(NULL, " "))
		result->argv[result->argc++] = w;
	assert_non_null(file);
	dup2(fileno(file), 1);
	dup2(fileno(file), 2);
	result->operands = -7;
	result->status = options_parse(&command, result->argc, result->argv, &result->common,
				       &result->operands);
	read_back(result, file);
	dup2(saved_out, 1);
	dup2(saved_err, 2);
	close(saved_out);
	close(saved_err);
	fclose(file);
	return result;
}

static void assert_usage(const char *line, const char *sentence)
{
	struct result r;

	parse(&r, line, false);
	assert_int_equal(r.status, EXIT_USAGE);
	assert_string_equal(r.out, sentence);
	assert_int_equal(r.operands, -7);
}

static void test_options__operands_may_stand_anywhere(void **state)
{
	struct result r;

	(void)state;
	parse(&r, "one -t two --output=x -- --tree -", false);
	assert_int_equal(r.status, -1);
	assert_true(r.tree);
	assert_string_equal(r.output, "x");
	assert_int_equal(r.argc - r.operands, 4);
	assert_string_equal(r.argv[r.operands], "one");
	assert_string_equal(r.argv[r.operands + 1], "two");
	assert_string_equal(r.argv[r.operands + 2], "--tree");
	assert_string_equal(r.argv[r.operands + 3], "-");
	assert_null(r.argv[r.argc]);
}

static void test_options__command_of_record_keeps_its_options(void **state)
{
	struct result r;

	(void)state;
	parse(&r, "-t cmd -i -- x", true);
	assert_int_equal(r.status, -1);
	assert_true(r.tree);
	assert_false(r.inverted);
	assert_int_equal(r.argc - r.operands, 4);
	assert_string_equal(r.argv[r.operands], "cmd");
	assert_string_equal(r.argv[r.operands + 2], "--");
	parse(&r, "-t -- -cmd -i", true);
	assert_int_equal(r.argc - r.operands, 2);
	assert_string_equal(r.argv[r.operands], "-cmd");
}

static void test_options__values_stand_in_the_word_or_the_next(void **state)
{
	struct result r;

	(void)state;
	parse(&r, "-tin5 -ofile", false);
	assert_true(r.tree && r.inverted);
	assert_int_equal(r.limit, 5);
	assert_string_equal(r.output, "file");
	parse(&r, "-n 6 --output --tree -o -", false);
	assert_int_equal(r.limit, 6);
	assert_string_equal(r.output, "-");
	assert_false(r.tree);
	parse(&r, "--output=", false);
	assert_string_equal(r.output, "");
}

static void test_options__unique_prefixes_are_enough(void **state)
{
	struct result r;

	(void)state;
	parse(&r, "--tr --out=x --limit=3 --limit-=2K --no --verb --verb", false);
	assert_int_equal(r.status, -1);
	assert_true(r.tree && r.common.no_pager);
	assert_string_equal(r.output, "x");
	assert_int_equal(r.limit, 3);
	assert_int_equal(r.bytes, 2048);
	assert_int_equal(r.common.verbose, 2);
	assert_usage("--in", "pathprof test: option '--in' is ambiguous: --inverted, --interval; "
			     "see pathprof test --help\n");
	assert_usage("--ver", "pathprof test: option '--ver' is ambiguous: --verbose, --version; "
			      "see pathprof test --help\n");
}

static void test_options__errors_are_sentences(void **state)
{
	(void)state;
	assert_usage("--foo", "pathprof test: unknown option '--foo'; see pathprof test --help\n");
	assert_usage("--foo=1", "pathprof test: unknown option '--foo'; "
				"see pathprof test --help\n");
	assert_usage("--tere", "pathprof test: unknown option '--tere' (did you mean '--tree'?); "
			       "see pathprof test --help\n");
	assert_usage("-tz", "pathprof test: unknown option '-z'; see pathprof test --help\n");
	assert_usage("--=x", "pathprof test: unknown option '--'; see pathprof test --help\n");
	assert_usage("--tree=x", "pathprof test: --tree takes no value; "
				 "see pathprof test --help\n");
	assert_usage("x -o", "pathprof test: -o needs a value: FILE; see pathprof test --help\n");
	assert_usage("--output", "pathprof test: --output needs a value: FILE; "
				 "see pathprof test --help\n");
	assert_usage("--color=red", "pathprof test: --color takes auto, always or never, "
				    "not 'red'; see pathprof test --help\n");
	assert_usage("--file=a --fil b", "pathprof test: --file is given twice, with 'a' and 'b': "
					 "one at a time; see pathprof test --help\n");
	assert_usage("--limit=-1", "pathprof test: --limit takes a whole number, such as 20, 10k "
				   "or 2M, not '-1'; see pathprof test --help\n");
}

static void test_options__no_message_drives_the_terminal(void **state)
{
	(void)state;
	assert_usage("--\033[31m", "pathprof test: unknown option '--?[31m'; "
				   "see pathprof test --help\n");
}

static void test_options__help_is_the_table(void **state)
{
	struct result r;

	(void)state;
	parse(&r, "--tree --help --nonsense", false);
	assert_int_equal(r.status, EXIT_OK);
	assert_string_equal(
		r.out, "Usage: pathprof test [OPTION...] [DIR]\n\n"
		       "Tests.\n\n"
		       "Options:\n"
		       "  -t, --tree               Show a tree\n"
		       "  -i, --inverted           From the leaves\n"
		       "  -o, --output=FILE        Write here\n"
		       "  -n, --limit=N            Rows\n"
		       "      --limit-bytes=SIZE   Size\n"
		       "      --interval=TIME      Time\n"
		       "      --min-share=PERCENT  Share\n"
		       "      --file=FILE          One\n"
		       "  -e, --event=EVENT        Each\n"
		       "  -q, --quiet              Say less on stderr\n"
		       "  -v, --verbose            Say more on stderr\n"
		       "      --color=WHEN         Colour: auto (the default), always or never\n"
		       "      --no-pager           Do not send the output through a pager\n"
		       "  -h, --help               Print this help and exit\n"
		       "      --version            Print the version and exit\n\n"
		       "Examples:\n"
		       "  pathprof test\n");
	parse(&r, "--version", false);
	assert_int_equal(r.status, EXIT_OK);
	assert_string_equal(r.out, "pathprof " PATHPROF_VERSION "\n");
}

static void test_options__color_has_three_modes_and_an_optional_value(void **state)
{
	struct result r;

	(void)state;
	assert_int_equal(parse(&r, "--color=never", false)->common.color, COLOR_NEVER);
	assert_false(color_wanted(&r.common, 1));
	assert_int_equal(parse(&r, "--color x", false)->common.color, COLOR_ALWAYS);
	assert_true(color_wanted(&r.common, 1));
	assert_int_equal(r.argc - r.operands, 1);
	assert_int_equal(parse(&r, "x", false)->common.color, COLOR_AUTO);
}

static void assert_number(enum option_type type, const char *text, uint64_t wanted)
{
	uint64_t value = 1;

	assert_null(option_value_parse(type, text, &value));
	assert_int_equal(value, wanted);
}

static void assert_no_number(enum option_type type, const char *text)
{
	uint64_t value = 77;

	assert_non_null(option_value_parse(type, text, &value));
	assert_int_equal(value, 77);
}

static void test_option_value__suffixes_multiply(void **state)
{
	(void)state;
	assert_number(OPTION_NUMBER, "0", 0);
	assert_number(OPTION_NUMBER, "12k", 12000);
	assert_number(OPTION_NUMBER, "3M", 3000000);
	assert_number(OPTION_NUMBER, "18446744073709551615", UINT64_MAX);
	assert_number(OPTION_COUNT, "2", 2);
	assert_number(OPTION_COUNT, "12k", 12000);
	assert_number(OPTION_BYTES, "3M", 3 << 20);
	assert_number(OPTION_BYTES, "1G", 1 << 30);
	assert_number(OPTION_SECONDS, "1", 1000000000);
	assert_number(OPTION_SECONDS, "0.25s", 250000000);
	assert_number(OPTION_SECONDS, ".5ms", 500000);
	assert_number(OPTION_SECONDS, "2m", 120000000000);
	assert_number(OPTION_SECONDS, "1.5h", 5400000000000);
	assert_number(OPTION_SECONDS, "0.000000001", 1);
}

static void test_option_value__nonsense_is_refused(void **state)
{
	static const char *const nonsense[] = {"",  "-1",  "+1",  " 1",	 "1 ",	"1x", "0x10",
					       "k", "1kk", "1e3", "nan", "inf", "."};

	(void)state;
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		double value = 7;

		assert_no_number(OPTION_NUMBER, nonsense[i]);
		assert_no_number(OPTION_COUNT, nonsense[i]);
		assert_no_number(OPTION_BYTES, nonsense[i]);
		assert_no_number(OPTION_SECONDS, nonsense[i]);
		assert_non_null(option_value_parse(OPTION_DOUBLE, nonsense[i], &value));
		assert_true(value > 6.9 && value < 7.1);
	}
	assert_no_number(OPTION_NUMBER, "18446744073709551616");
	assert_no_number(OPTION_NUMBER, "18446744073709551615k");
	assert_no_number(OPTION_COUNT, "0");
	assert_no_number(OPTION_COUNT, "0k");
	assert_no_number(OPTION_BYTES, "99999999999999G");
	assert_no_number(OPTION_SECONDS, "99999999999h");
}

static void test_option_value__percent_is_dropped(void **state)
{
	double value = 0;

	(void)state;
	assert_null(option_value_parse(OPTION_DOUBLE, "2.5%", &value));
	assert_true(value > 2.49 && value < 2.51);
}

static void test_suggest__slips_are_recognised_and_other_words_are_not(void **state)
{
	static const char *const words[] = {"record", "report", "export", "doctor", "list", NULL};

	(void)state;
	assert_string_equal(suggest("reocrd", words), "record");
	assert_string_equal(suggest("repot", words), "report");
	assert_string_equal(suggest("recrod", words), "record");
	assert_string_equal(suggest("exprot", words), "export");
	assert_string_equal(suggest("lis", words), "list");
	assert_null(suggest("xyz", words));
	assert_null(suggest("", words));
	assert_null(suggest("x", words));
	assert_null(suggest("recordrecordrecordrecordrecordrecord", words));
}

static void test_options__a_list_keeps_every_value(void **state)
{
	struct result result;

	(void)state;
	parse(&result, "-e a --event=b,c -eb -- -e d", false);
	assert_int_equal(result.status, -1);
	assert_int_equal(result.events.nr, 3);
	assert_string_equal(result.events.texts[0], "a");
	assert_string_equal(result.events.texts[1], "b,c");
	assert_string_equal(result.events.texts[2], "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options__a_list_keeps_every_value),
		cmocka_unit_test(test_options__operands_may_stand_anywhere),
		cmocka_unit_test(test_options__command_of_record_keeps_its_options),
		cmocka_unit_test(test_options__values_stand_in_the_word_or_the_next),
		cmocka_unit_test(test_options__unique_prefixes_are_enough),
		cmocka_unit_test(test_options__errors_are_sentences),
		cmocka_unit_test(test_options__no_message_drives_the_terminal),
		cmocka_unit_test(test_options__help_is_the_table),
		cmocka_unit_test(test_options__color_has_three_modes_and_an_optional_value),
		cmocka_unit_test(test_option_value__suffixes_multiply),
		cmocka_unit_test(test_option_value__nonsense_is_refused),
		cmocka_unit_test(test_option_value__percent_is_dropped),
		cmocka_unit_test(test_suggest__slips_are_recognised_and_other_words_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
