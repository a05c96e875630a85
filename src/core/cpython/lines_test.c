/* SPDX-License-Identifier: MIT */
/*
 * Line tables: each kind of entry by hand, hostile ones, and what real interpreters say about
 * every code unit of some of their own modules.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/cpython/cpython.h"
#include "core/event/event.h"

#define ENTRY(kind, units)   (0x80 | (kind) << 3 | ((units)-1))
#define PYTHONS_MAX	     16
#define PYTHON_PATH_BYTES    512
#define LINE_TABLE_BYTES_MAX (1 << 20)

static uint32_t line_at(const uint8_t *table, size_t length, uint32_t position)
{
	return cpython_line(LINE_TABLE_CPYTHON_311, table, length, 100, position);
}

static void test_line__each_kind_of_entry(void **state)
{
	static const uint8_t table[] = {
		ENTRY(0, 2),  0x11,			    /* 100: positions 1, 2 */
		ENTRY(9, 1),  0x22,			    /* 100: 3 */
		ENTRY(10, 1), 1,    2,			    /* 100: 4 */
		ENTRY(11, 1), 1,    2,			    /* 101: 5 */
		ENTRY(12, 1), 1,    2,			    /* 103: 6 */
		ENTRY(13, 1), 0x07,			    /* 100 (-3): 7 */
		ENTRY(15, 8),				    /* none: 8 to 15 */
		ENTRY(14, 1), 0x48, 0x03, 0x01, 0x02, 0x03, /* 200 (+100): 16 */
		ENTRY(15, 1),				    /* none: 17 */
		ENTRY(11, 1), 1,    2,			    /* 201: 18 */
	};
	static const uint32_t lines[] = {100, 100, 100, 100, 100, 101, 103, 100, 0,   0,
					 0,   0,   0,	0,   0,	  0,   200, 0,	 201, 0};

	(void)state;
	for (uint32_t position = 0; position < sizeof(lines) / sizeof(lines[0]); position++)
		assert_int_equal(line_at(table, sizeof(table), position), lines[position]);
	assert_int_equal(line_at(table, sizeof(table), UINT32_MAX), 0);
	assert_int_equal(line_at(table, sizeof(table) - 3, 18), 0);
}

static void test_line__position_zero_is_the_first_line(void **state)
{
	(void)state;
	assert_int_equal(cpython_line(LINE_TABLE_NONE, NULL, 0, 7, 0), 7);
	assert_int_equal(line_at(NULL, 0, 0), 100);
}

static void test_line__unknown_tables_have_no_lines(void **state)
{
	static const uint8_t table[] = {ENTRY(0, 1), 0};

	(void)state;
	assert_int_equal(cpython_line(LINE_TABLE_NONE, table, sizeof(table), 1, 1), 0);
	assert_int_equal(cpython_line(200, table, sizeof(table), 1, 1), 0);
	assert_int_equal(line_at(NULL, 0, 1), 0);
}

static void test_line__hostile_tables_end_at_their_length(void **state)
{
	static const uint8_t endless[] = {ENTRY(14, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
	static const uint8_t no_start[] = {0x01, ENTRY(0, 1), 0};
	static const uint8_t before_the_file[] = {ENTRY(13, 1), 0x7f, 0x3f};
	uint8_t *cut = malloc(1); /* the sanitizer sees a read past it */

	(void)state;
	assert_int_equal(line_at(endless, sizeof(endless), 1), 0); /* far before the file */
	assert_int_equal(line_at(no_start, sizeof(no_start), 1), 0);
	assert_int_equal(line_at(before_the_file, sizeof(before_the_file), 1), 0);
	*cut = ENTRY(13, 1);
	assert_int_equal(line_at(cut, 1, 1), 100);
	assert_int_equal(line_at(cut, 1, 2), 0);
	free(cut);
}

/* Prints for each code object: first line, line table in hex, the line of each code unit or 0. */
static const char script[] =
	"import sys, sysconfig, os\n"
	"def show(code):\n"
	"    lines = [str(p[0] or 0) for p in code.co_positions()]\n"
	"    print(code.co_firstlineno, code.co_linetable.hex() or '-', *lines)\n"
	"    for constant in code.co_consts:\n"
	"        if hasattr(constant, 'co_code'):\n"
	"            show(constant)\n"
	"if sys.version_info[:2] == (3, 11):\n"
	"    for name in ('ast', 'asyncio/tasks', 'dataclasses', 'decimal', '_pydecimal', 'enum',\n"
	"                 'typing', 'inspect', 'argparse', 'subprocess', 'turtle', 'contextlib'):\n"
	"        path = os.path.join(sysconfig.get_path('stdlib'), name + '.py')\n"
	"        with open(path, encoding='utf-8') as file:\n"
	"            show(compile(file.read(), path, 'exec'))\n"
	"    show(compile('x = [' + '\\n' * 70000 + '1,' * 9 + 'y]\\nz()', 'far', 'exec'))\n";

static size_t bytes_of_hex(const char *hex, uint8_t *bytes)
{
	size_t length = 0;
	unsigned int byte;

	while (length < LINE_TABLE_BYTES_MAX && sscanf(hex + 2 * length, "%2x", &byte) == 1)
		bytes[length++] = (uint8_t)byte;
	return length;
}

/* Compares one printed code object; returns its number of code units. */
static uint32_t compare_code(char *printed, uint8_t *table)
{
	char *rest = NULL;
	uint32_t first_line = (uint32_t)strtoul(strtok_r(printed, " \n", &rest), NULL, 10);
	size_t length = bytes_of_hex(strtok_r(NULL, " \n", &rest), table);
	uint32_t position = 0;
	char *word;

	while ((word = strtok_r(NULL, " \n", &rest))) {
		uint32_t line =
			cpython_line(LINE_TABLE_CPYTHON_311, table, length, first_line, ++position);

		assert_int_equal(line, strtoul(word, NULL, 10));
	}
	return position;
}

static uint64_t compare_with(const char *python)
{
	char command[sizeof(script) + PYTHON_PATH_BYTES + 64];
	uint8_t *table = malloc(LINE_TABLE_BYTES_MAX);
	char *printed = NULL;
	size_t room = 0;
	uint64_t nr_units = 0;
	FILE *from;

	snprintf(command, sizeof(command), "'%s' - <<'END'\n%sEND\n", python, script);
	from = popen(command, "r");
	assert_non_null(from);
	assert_non_null(table);
	while (getline(&printed, &room, from) > 0)
		nr_units += compare_code(printed, table);
	assert_int_equal(pclose(from), 0);
	free(printed);
	free(table);
	return nr_units;
}

/* /usr/bin/python3, those in PATHPROF_PYTHONS, and pyenv's. */
static size_t find_pythons(char pythons[PYTHONS_MAX][PYTHON_PATH_BYTES])
{
	char *named = strdup(getenv("PATHPROF_PYTHONS") ? getenv("PATHPROF_PYTHONS") : "");
	char pattern[PYTHON_PATH_BYTES];
	size_t nr_pythons = 1;
	char *rest = NULL;
	glob_t found;

	strcpy(pythons[0], "/usr/bin/python3");
	for (char *at = strtok_r(named, ":", &rest); at && nr_pythons < PYTHONS_MAX;
	     at = strtok_r(NULL, ":", &rest))
		snprintf(pythons[nr_pythons++], PYTHON_PATH_BYTES, "%s", at);
	free(named);
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/3.11.*/bin/python3",
		 getenv("HOME") ? getenv("HOME") : "");
	if (glob(pattern, 0, NULL, &found))
		return nr_pythons;
	for (size_t i = 0; i < found.gl_pathc && nr_pythons < PYTHONS_MAX; i++)
		snprintf(pythons[nr_pythons++], PYTHON_PATH_BYTES, "%s", found.gl_pathv[i]);
	globfree(&found);
	return nr_pythons;
}

static void test_line__is_what_the_interpreter_says(void **state)
{
	static char pythons[PYTHONS_MAX][PYTHON_PATH_BYTES];
	size_t nr_pythons = find_pythons(pythons);
	uint64_t nr_units = 0;

	(void)state;
	for (size_t i = 0; i < nr_pythons; i++) {
		uint64_t nr_here = access(pythons[i], X_OK) ? 0 : compare_with(pythons[i]);

		print_message("%s: %llu code units\n", pythons[i], (unsigned long long)nr_here);
		nr_units += nr_here;
	}
	if (!nr_units) {
		print_message("SKIPPED: no CPython 3.11 at hand\n");
		skip();
	}
	assert_true(nr_units > 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line__each_kind_of_entry),
		cmocka_unit_test(test_line__position_zero_is_the_first_line),
		cmocka_unit_test(test_line__unknown_tables_have_no_lines),
		cmocka_unit_test(test_line__hostile_tables_end_at_their_length),
		cmocka_unit_test(test_line__is_what_the_interpreter_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
