/* SPDX-License-Identifier: MIT */
#include "tool/render/quantity.h"

#include <stdio.h>

struct step {
	uint64_t factor; /* the unit is this many */
	const char *unit;
};

static const struct step counts[] = {
	{1, ""}, {1000, "k"}, {1000000, "M"}, {1000000000, "G"}, {1000000000000, "T"},
};

static const struct step times[] = {
	{1, " ns"},
	{1000, " us"},
	{1000000, " ms"},
	{1000000000, " s"},
};

struct quantity quantity_exact(uint64_t number)
{
	struct quantity quantity;
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	char *at = quantity.text;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = 0;
	return quantity;
}

/* Three digits, as 1.23, 12.3, 123; the largest unit takes what there is. */
static struct quantity three_digits(uint64_t number, const struct step *steps, size_t nr_steps)
{
	struct quantity quantity;
	size_t i = 0;
	double value;

	/* 999.5 and more is shown as 1.00 of the next unit. */
	while (i + 1 < nr_steps && (double)number / (double)steps[i].factor >= 999.5)
		i++;
	value = (double)number / (double)steps[i].factor;
	snprintf(quantity.text, sizeof(quantity.text), "%.*f%s",
		 i == 0 || value >= 99.95 ? 0
		 : value >= 9.995	  ? 1
					  : 2,
		 value, steps[i].unit);
	return quantity;
}

struct quantity quantity_count(uint64_t number)
{
	return three_digits(number, counts, sizeof(counts) / sizeof(counts[0]));
}

struct quantity quantity_time(uint64_t ns)
{
	return three_digits(ns, times, sizeof(times) / sizeof(times[0]));
}

struct quantity quantity_period(uint64_t ns)
{
	struct quantity quantity;
	size_t i = 0;

	/* As the recorder's event_time_text(): 999983 ns are 1 ms. */
	while (i + 1 < sizeof(times) / sizeof(times[0]) &&
	       (double)ns / (double)times[i].factor >= 999.95)
		i++;
	snprintf(quantity.text, sizeof(quantity.text), "%.4g%s",
		 (double)ns / (double)times[i].factor, times[i].unit);
	return quantity;
}

struct quantity quantity_of(uint64_t number, bool is_time)
{
	return is_time ? quantity_time(number) : quantity_count(number);
}

struct quantity quantity_percent(uint64_t part, uint64_t whole)
{
	struct quantity quantity;

	snprintf(quantity.text, sizeof(quantity.text), "%.1f%%",
		 whole ? 100.0 * (double)part / (double)whole : 0.0);
	return quantity;
}
