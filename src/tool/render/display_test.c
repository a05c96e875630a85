/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/render/display.h"
#include "tool/render/example_trace_test.h"
#include "tool/render/quantity.h"

static void assert_shown(const char *text, size_t width, enum display_cut cut, const char *wanted)
{
	struct written written;
	size_t columns;

	written_open(&written);
	columns = display_write(written.file, text, width, cut);
	assert_string_equal(written_close(&written), wanted);
	assert_int_equal(columns, display_width(wanted));
	assert_true(columns <= width);
	free(written.text);
}

static void test_display__nothing_drives_the_terminal(void **state)
{
	(void)state;
	assert_shown(HOSTILE_NAME, SIZE_MAX, DISPLAY_CUT_END,
		     "</script>\\x1b[31m;\"\\\\n\\u202e&\\xff");
	assert_shown("a\tb\rc\x7f\xc2\x9b", SIZE_MAX, DISPLAY_CUT_END, "a\\tb\\rc\\x7f\\u009b");
	assert_shown("\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81", SIZE_MAX, DISPLAY_CUT_END,
		     "\\u2028\\ufeff\\U000e0041");
}

static void test_display__bytes_that_are_no_utf8_are_shown_one_by_one(void **state)
{
	(void)state;
	/* overlong, surrogate, beyond U+10FFFF, cut at the end */
	assert_shown("\xc0\xaf", SIZE_MAX, DISPLAY_CUT_END, "\\xc0\\xaf");
	assert_shown("\xed\xa0\x80", SIZE_MAX, DISPLAY_CUT_END, "\\xed\\xa0\\x80");
	assert_shown("\xf4\x90\x80\x80", SIZE_MAX, DISPLAY_CUT_END, "\\xf4\\x90\\x80\\x80");
	assert_shown("\xe5\xb7", SIZE_MAX, DISPLAY_CUT_END, "\\xe5\\xb7");
	assert_shown("\xf0\x9f\x98\x80", SIZE_MAX, DISPLAY_CUT_END, "\xf0\x9f\x98\x80");
}

static void test_display__columns_are_the_terminals(void **state)
{
	(void)state;
	assert_int_equal(display_width("abc"), 3);
	assert_int_equal(display_width("\xe5\xb7\xa5\xe4\xbd\x9c"), 4); /* two wide */
	assert_int_equal(display_width("e\xcc\x81"), 1);		/* a combining accent */
	assert_int_equal(display_width("\033"), 4);
}

static void test_display__long_text_is_cut_where_it_matters_least(void **state)
{
	(void)state;
	assert_shown("abcdefghij", 10, DISPLAY_CUT_END, "abcdefghij");
	assert_shown("abcdefghij", 6, DISPLAY_CUT_END, "abcde\xe2\x80\xa6");
	assert_shown("abcdefghij", 6, DISPLAY_CUT_MIDDLE, "ab\xe2\x80\xa6hij");
	assert_shown("abcdefghij", 1, DISPLAY_CUT_MIDDLE, "\xe2\x80\xa6");
	assert_shown("abcdefghij", 0, DISPLAY_CUT_MIDDLE, "");
	assert_shown("/srv/app/lib/x.py", 12, DISPLAY_CUT_PATH, "\xe2\x80\xa6/lib/x.py");
	assert_shown("/srv/a_long_name.py", 8, DISPLAY_CUT_PATH, "\xe2\x80\xa6name.py");
}

static void test_display__a_cut_never_splits_a_character(void **state)
{
	(void)state;
	/* Three wide characters in four columns: one, the ellipsis, and a column that stays free.
	 */
	assert_shown("\xe5\xb7\xa5\xe4\xbd\x9c\xe5\xb7\xa5", 4, DISPLAY_CUT_END,
		     "\xe5\xb7\xa5\xe2\x80\xa6");
	assert_shown("\xe5\xb7\xa5\xe4\xbd\x9c\xe5\xb7\xa5", 4, DISPLAY_CUT_PATH,
		     "\xe2\x80\xa6\xe5\xb7\xa5");
	/* An accent stays with its letter or goes with it. */
	assert_shown("abcde\xcc\x81"
		     "fg",
		     3, DISPLAY_CUT_PATH,
		     "\xe2\x80\xa6"
		     "fg");
}

static void test_display__paragraphs_break_between_words(void **state)
{
	struct written written;

	(void)state;
	written_open(&written);
	display_paragraph(written.file, "one two three four", 2, 11);
	display_paragraph(written.file, "one two\nthree", 2, 0);
	assert_string_equal(written_close(&written), "one two\n  three\n  four\none two\\nthree\n");
	free(written.text);
}

/* The values of event_time_text()'s test: record and report say the same. */
static void test_quantity__of_a_period_is_the_recorders(void **state)
{
	(void)state;
	assert_string_equal(quantity_period(1).text, "1 ns");
	assert_string_equal(quantity_period(999).text, "999 ns");
	assert_string_equal(quantity_period(30000).text, "30 us");
	assert_string_equal(quantity_period(999983).text, "1 ms");
	assert_string_equal(quantity_period(1234567).text, "1.235 ms");
	assert_string_equal(quantity_period(4000000).text, "4 ms");
	assert_string_equal(quantity_period(1500000000).text, "1.5 s");
	assert_string_equal(quantity_period(5000000000000).text, "5000 s");
}

static void test_quantity__has_three_digits(void **state)
{
	(void)state;
	assert_string_equal(quantity_exact(0).text, "0");
	assert_string_equal(quantity_exact(999).text, "999");
	assert_string_equal(quantity_exact(1234567).text, "1,234,567");
	assert_string_equal(quantity_exact(UINT64_MAX).text, "18,446,744,073,709,551,615");
	assert_string_equal(quantity_time(7).text, "7 ns");
	assert_string_equal(quantity_time(999499).text, "999 us");
	assert_string_equal(quantity_time(999500).text, "1.00 ms");
	assert_string_equal(quantity_time(12345678).text, "12.3 ms");
	assert_string_equal(quantity_time(99960000).text, "100 ms");
	assert_string_equal(quantity_time(4321000000000).text, "4321 s");
	assert_string_equal(quantity_count(1234).text, "1.23k");
	assert_string_equal(quantity_count(12345678).text, "12.3M");
	assert_string_equal(quantity_percent(1, 3).text, "33.3%");
	assert_string_equal(quantity_percent(1, 0).text, "0.0%");
}

static int set_locale(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_display__nothing_drives_the_terminal),
		cmocka_unit_test(test_display__bytes_that_are_no_utf8_are_shown_one_by_one),
		cmocka_unit_test(test_display__columns_are_the_terminals),
		cmocka_unit_test(test_display__long_text_is_cut_where_it_matters_least),
		cmocka_unit_test(test_display__a_cut_never_splits_a_character),
		cmocka_unit_test(test_display__paragraphs_break_between_words),
		cmocka_unit_test(test_quantity__of_a_period_is_the_recorders),
		cmocka_unit_test(test_quantity__has_three_digits),
	};

	return cmocka_run_group_tests(tests, set_locale, NULL);
}
