/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/errbuf.h"

static void test_errbuf__prepend_puts_context_first(void **state)
{
	struct errbuf err;

	(void)state;
	assert_int_equal(errbuf_set(&err, -ENOENT, "Cannot open '%s'", "x"), -ENOENT);
	assert_int_equal(errbuf_prepend(&err, -ENOENT, "Reading %d", 7), -ENOENT);
	assert_string_equal(err.text, "Reading 7: Cannot open 'x'");
}

static void test_errbuf__long_sentences_are_cut_not_overrun(void **state)
{
	struct errbuf err;
	char path[2 * ERRBUF_BYTES];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	errbuf_set(&err, -EIO, "%s", path);
	errbuf_prepend(&err, -EIO, "%s", path);
	assert_int_equal(strlen(err.text), ERRBUF_BYTES - 1);
}

static void test_errbuf__null_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(errbuf_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(errbuf_prepend(NULL, -EIO, "x"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errbuf__prepend_puts_context_first),
		cmocka_unit_test(test_errbuf__long_sentences_are_cut_not_overrun),
		cmocka_unit_test(test_errbuf__null_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
