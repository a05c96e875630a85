/* SPDX-License-Identifier: MIT */
/*
 * Flat tables:
 *
 *    Self%     ~Self  Total%    ~Total  Function      File:Line
 *    61.0%   6.10 s    99.8%   9.98 s   Parser.parse  app/parser.py:40
 *
 * On a terminal the two texts share the columns that the numbers leave; a path loses its beginning,
 * a function its middle. Elsewhere nothing is cut.
 */
#include <string.h>

#include "tool/render/text_priv.h"

#define FUNCTION_PADDING_MAX 60 /* one long name must not push every path out of sight */
#define FUNCTION_LEAST	     12 /* narrower than these, a column says nothing */
#define PLACE_LEAST	     12

/* Columns of the two texts; a width of 0 leaves the text out, SIZE_MAX cuts nothing. */
struct layout {
	size_t function, function_padding, place;
};

static const char *const heads[][2] = {
	[PROFILE_BY_FUNCTION] = {"Function", "File:Line"},
	[PROFILE_BY_LINE] = {"Function", "File:Line"},
	[PROFILE_BY_FILE] = {"", "File"},
};

static uint32_t line_of(const struct text *text, const struct profile_row *row, enum profile_by by)
{
	if (by == PROFILE_BY_FUNCTION)
		return text->trace->functions[row->function].line;
	return by == PROFILE_BY_LINE ? row->line : 0;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static struct layout plan(const struct text *text, const struct profile *profile, size_t nr_rows,
			  enum profile_by by)
{
	size_t function = by == PROFILE_BY_FILE ? 0 : strlen("Function"), place = 0, rest;
	struct layout layout;

	for (size_t i = 0; i < nr_rows; i++) {
		const struct profile_row *row = &profile->rows[i];
		const struct trace_function *of = &text->trace->functions[row->function];

		if (by != PROFILE_BY_FILE)
			function = larger(function, display_width(of->name));
		place = larger(place, text_place_width(of->file, line_of(text, row, by)));
	}
	if (text->options->width == 0) {
		layout.function = layout.place = SIZE_MAX;
		layout.function_padding =
			function < FUNCTION_PADDING_MAX ? function : FUNCTION_PADDING_MAX;
		return layout;
	}
	rest = text->options->width > NUMBER_COLUMNS + FUNCTION_LEAST
		       ? text->options->width - NUMBER_COLUMNS
		       : FUNCTION_LEAST;
	if (by == PROFILE_BY_FILE)
		return (struct layout){0, 0, rest};
	if (rest < FUNCTION_LEAST + 2 + PLACE_LEAST)
		return (struct layout){rest, 0, 0};
	if (function + 2 + place > rest) {
		/* The path keeps half, or what the function does not need. */
		size_t half = rest / 2;

		if (place > half)
			place = larger(half, function + 2 < rest ? rest - 2 - function : 0);
		if (function > rest - 2 - place)
			function = rest - 2 - place;
	}
	return (struct layout){function, function, rest - 2 - function};
}

static void write_heads(const struct text *text, const struct layout *layout, enum profile_by by)
{
	text_number_heads(text);
	if (by == PROFILE_BY_FILE)
		fprintf(text->out, "%s\n", heads[by][1]);
	else if (layout->place == 0)
		fprintf(text->out, "%s\n", heads[by][0]);
	else
		fprintf(text->out, "%-*s  %s\n", (int)layout->function_padding, heads[by][0],
			heads[by][1]);
}

static void write_row(const struct text *text, const struct section *section,
		      const struct layout *layout, const struct profile_row *row,
		      enum profile_by by)
{
	const struct trace_function *function = &text->trace->functions[row->function];
	size_t used = 0;

	text_numbers(text, section, &row->cost);
	if (by == PROFILE_BY_FILE && !function->file) {
		display_write(text->out, "[no file]", layout->place, DISPLAY_CUT_END);
		putc('\n', text->out);
		return;
	}
	if (by != PROFILE_BY_FILE)
		used = display_write(text->out, function->name, layout->function,
				     DISPLAY_CUT_MIDDLE);
	if (by != PROFILE_BY_FILE && layout->place > 0 && function->file) {
		if (used < layout->function_padding)
			display_pad(text->out, layout->function_padding - used);
		display_pad(text->out, 2);
	}
	text_place(text, function->file, line_of(text, row, by), layout->place);
	putc('\n', text->out);
}

int text_table(const struct text *text, const struct section *section, enum profile_by by)
{
	struct profile_filter filter = {section->event, section->thread, section->states, false};
	struct profile profile;
	struct layout layout;
	size_t nr_rows;
	int rc = profile_flat(text->trace, filter, by, false, &profile);

	if (rc < 0)
		return rc;
	nr_rows = profile.nr_rows;
	if (text->options->limit && nr_rows > text->options->limit)
		nr_rows = text->options->limit;
	layout = plan(text, &profile, nr_rows, by);
	putc('\n', text->out);
	write_heads(text, &layout, by);
	for (size_t i = 0; i < nr_rows; i++)
		write_row(text, section, &layout, &profile.rows[i], by);
	if (nr_rows < profile.nr_rows)
		fprintf(text->out, "%s more %s (--limit=0 shows all)\n",
			quantity_exact(profile.nr_rows - nr_rows).text,
			profile.nr_rows - nr_rows == 1 ? "row" : "rows");
	profile_release(&profile);
	return 0;
}
