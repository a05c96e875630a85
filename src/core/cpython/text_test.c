/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/cpython/cpython.h"

static void assert_utf8(const void *characters, uint32_t length, unsigned int width,
			const char *expected)
{
	char *text = cpython_text_utf8(characters, length, width);

	assert_string_equal(text, expected);
	free(text);
}

static void test_text__every_width_becomes_utf8(void **state)
{
	static const uint8_t latin1[] = {'a', 0xe9, 0xff};
	static const uint16_t greek[] = {'a', 0x3a9, 0x6587, 0xffff, 0x7ff, 0x800};
	static const uint32_t wide[] = {'a', 0xe9, 0x3a9, 0x6587, 0x1f600, 0x10ffff};

	(void)state;
	assert_utf8(latin1, 3, 1, "a\u00e9\u00ff");
	assert_utf8(greek, 6, 2, "a\u03a9\u6587\xef\xbf\xbf\xdf\xbf\xe0\xa0\x80");
	assert_utf8(wide, 6, 4, "a\u00e9\u03a9\u6587\U0001f600\xf4\x8f\xbf\xbf");
	assert_utf8(wide, 0, 4, "");
}

static void test_text__controls_and_surrogates_are_escaped(void **state)
{
	static const uint8_t controls[] = {0, '\n', 0x1f, ' ', '~', 0x7f, 0x80, 0x9f, 0xa0};
	static const uint16_t surrogates[] = {0xd7ff, 0xd800, 0xdfff, 0xe000};

	(void)state;
	assert_utf8(controls, 9, 1, "\\x00\\x0a\\x1f ~\\x7f\\x80\\x9f\u00a0");
	assert_utf8(surrogates, 4, 2, "\xed\x9f\xbf\\ud800\\udfff\xee\x80\x80");
}

static void test_text__what_is_no_character_is_shown_as_such(void **state)
{
	static const uint32_t beyond[] = {0x110000, 0xffffffff};

	(void)state;
	assert_utf8(beyond, 2, 4, "\\U00110000\\Uffffffff");
	assert_utf8(beyond, 2, 3, "");
	assert_utf8(beyond, 2, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text__every_width_becomes_utf8),
		cmocka_unit_test(test_text__controls_and_surrogates_are_escaped),
		cmocka_unit_test(test_text__what_is_no_character_is_shown_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
