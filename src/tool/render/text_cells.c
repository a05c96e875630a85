/* SPDX-License-Identifier: MIT */
/* The cells of tables. Colour says how hot a share is and that a path matters less; nothing else.
 */
#include <inttypes.h>
#include <string.h>

#include "tool/render/text_priv.h"

#define COLOR_HOT   "\033[1;31m"
#define COLOR_WARM  "\033[33m"
#define COLOR_DIM   "\033[2m"
#define COLOR_PLAIN "\033[0m"

#define HOT_SHARE  0.20
#define WARM_SHARE 0.05

void text_dim(const struct text *text)
{
	if (text->options->color)
		fputs(COLOR_DIM, text->out);
}

void text_plain(const struct text *text)
{
	if (text->options->color)
		fputs(COLOR_PLAIN, text->out);
}

void text_percent(const struct text *text, uint64_t part, uint64_t whole)
{
	double share = whole ? (double)part / (double)whole : 0.0;
	bool heated = text->options->color && share >= WARM_SHARE;

	if (heated)
		fputs(share >= HOT_SHARE ? COLOR_HOT : COLOR_WARM, text->out);
	fprintf(text->out, "%6s", quantity_percent(part, whole).text);
	if (heated)
		text_plain(text);
}

void text_number_heads(const struct text *text)
{
	fprintf(text->out, "%6s %9s  %6s %9s  ", "Self%", "~Self", "Total%", "~Total");
}

static void write_amount(const struct text *text, const struct section *section, uint64_t amount)
{
	fprintf(text->out, " %9s  ", amount ? quantity_of(amount, section->is_time).text : "0");
}

void text_numbers(const struct text *text, const struct section *section, const struct cost *cost)
{
	text_percent(text, cost->self_count, section->whole.count);
	write_amount(text, section, cost->self_count);
	text_percent(text, cost->total_count, section->whole.count);
	write_amount(text, section, cost->total_count);
}

/* ":line" */
static size_t line_suffix(char *suffix, size_t room, uint32_t line)
{
	return line ? (size_t)snprintf(suffix, room, ":%" PRIu32, line) : 0;
}

size_t text_place_width(const char *file, uint32_t line)
{
	char suffix[16];

	return file ? display_width(file) + line_suffix(suffix, sizeof(suffix), line) : 0;
}

void text_place(const struct text *text, const char *file, uint32_t line, size_t width)
{
	char suffix[16] = "";
	size_t length = line_suffix(suffix, sizeof(suffix), line);

	if (!file || width < length + 2)
		return;
	text_dim(text);
	display_write(text->out, file, width == SIZE_MAX ? width : width - length,
		      DISPLAY_CUT_PATH);
	fputs(suffix, text->out);
	text_plain(text);
}
