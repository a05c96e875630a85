/* SPDX-License-Identifier: MIT */
/*
 * The values of options. Digits, at most one point, a suffix: no signs, no blanks, no hexadecimal,
 * no exponents, nothing that the C library would let through and nobody means.
 */
#include "tool/cli/options_value.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
	const char *text;
	uint64_t factor;
};

static const struct suffix number_suffixes[] = {
	{"", 1}, {"k", 1000}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0},
};

static const struct suffix byte_suffixes[] = {
	{"", 1}, {"k", 1 << 10}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0},
};

static const struct suffix second_suffixes[] = {
	{"", 1000000000},   {"s", 1000000000},		{"ms", 1000000},
	{"m", 60000000000}, {"h", 3600 * 1000000000LL}, {NULL, 0},
};

static uint64_t suffix_factor(const struct suffix *suffixes, const char *text)
{
	for (; suffixes->text; suffixes++) {
		if (strcmp(suffixes->text, text) == 0)
			return suffixes->factor;
	}
	return 0;
}

static bool parse_scaled(const struct suffix *suffixes, const char *text, uint64_t *ret_value)
{
	const char *digit = text;
	uint64_t value = 0, factor;

	for (; *digit >= '0' && *digit <= '9'; digit++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*digit - '0'), &value))
			return false;
	}
	factor = suffix_factor(suffixes, digit);
	if (digit == text || factor == 0 || __builtin_mul_overflow(value, factor, &value))
		return false;
	*ret_value = value;
	return true;
}

/* The length of a decimal number at the start of text; 0: none. */
static size_t decimal_length(const char *text)
{
	size_t whole = strspn(text, "0123456789"), length = whole;

	if (text[length] == '.')
		length += 1 + strspn(text + length + 1, "0123456789");
	return whole == 0 && length < 2 ? 0 : length;
}

static bool parse_seconds(const char *text, uint64_t *ret_ns)
{
	size_t length = decimal_length(text);
	uint64_t factor = suffix_factor(second_suffixes, text + length);
	long double ns;

	if (length == 0 || factor == 0)
		return false;
	ns = strtold(text, NULL) * (long double)factor + 0.5L;
	if (ns >= 18446744073709551615.0L)
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

static bool parse_double(const char *text, double *ret_value)
{
	size_t length = decimal_length(text);

	if (length == 0 || (text[length] && strcmp(text + length, "%") != 0))
		return false;
	*ret_value = strtod(text, NULL);
	return true;
}

const char *option_value_parse(enum option_type type, const char *text, void *value)
{
	uint64_t count;

	switch (type) {
	case OPTION_FLAG:
		break;
	case OPTION_STRING:
	case OPTION_ONCE:
		*(const char **)value = text;
		break;
	case OPTION_LIST:
		if (((struct option_list *)value)->nr == OPTION_LIST_MAX)
			return "not that many values";
		((struct option_list *)value)->texts[((struct option_list *)value)->nr++] = text;
		break;
	case OPTION_NUMBER:
		if (!parse_scaled(number_suffixes, text, value))
			return "a whole number, such as 20, 10k or 2M";
		break;
	case OPTION_COUNT:
		if (!parse_scaled(number_suffixes, text, &count) || count == 0)
			return "a whole number above 0, such as 20, 10k or 2M";
		*(uint64_t *)value = count;
		break;
	case OPTION_BYTES:
		if (!parse_scaled(byte_suffixes, text, value))
			return "a number of bytes, such as 4096, 512K, 64M or 1G";
		break;
	case OPTION_SECONDS:
		if (!parse_seconds(text, value))
			return "a time, such as 0.5, 10ms, 30s, 5m or 1h";
		break;
	case OPTION_DOUBLE:
		if (!parse_double(text, value))
			return "a number, such as 0.5 or 10%";
		break;
	}
	return NULL;
}
