/* SPDX-License-Identifier: MIT */
/* What the parts of the text report share. */
#ifndef PATHPROF_TOOL_RENDER_TEXT_PRIV_H
#define PATHPROF_TOOL_RENDER_TEXT_PRIV_H

#include "tool/render/display.h"
#include "tool/render/quantity.h"
#include "tool/render/render.h"
#include "tool/render/totals.h"

/* A report being written. */
struct text {
	const struct trace *trace;
	const struct text_options *options;
	struct totals totals;
	const char *source_path; /* the file that options->source means */
	FILE *out;
	struct errbuf *err;
};

/* What one table or tree is about. */
struct section {
	uint32_t event, thread;
	uint32_t states;    /* as in struct profile_filter */
	bool is_time;	    /* counts are nanoseconds */
	struct total whole; /* what percentages are shares of */
};

/* The columns of numbers, "Self%  ~Self  Total%  ~Total" and two blanks. */
#define NUMBER_COLUMNS 36

/** text_header - the recording, then its notices. 0 or -ENOMEM */
int text_header(const struct text *text);

/** text_table - one flat profile of a section. 0 or -ENOMEM */
int text_table(const struct text *text, const struct section *section, enum profile_by by);

/** text_tree - the call tree of a section. 0 or -ENOMEM */
int text_tree(const struct text *text, const struct section *section);

/** text_source_find - set source_path; 0 or a negative errno with a sentence */
int text_source_find(struct text *text);

/** text_source - that file's text with its costs. 0 or -ENOMEM */
int text_source(const struct text *text, const struct section *section);

/**
 * text_samples - "209 samples", and where there are waits "209 samples and 299 waits"
 * @states: 1 << enum sample_state each; 0: all
 */
#define TEXT_SAMPLES_BYTES 96
void text_samples(const struct text *text, uint32_t event, uint32_t thread, uint32_t states,
		  char ret_text[TEXT_SAMPLES_BYTES]);

/** text_number_heads, text_numbers - the columns of numbers of a table's head and of a row */
void text_number_heads(const struct text *text);
void text_numbers(const struct text *text, const struct section *section, const struct cost *cost);

/** text_percent - a percentage right-aligned in 6 columns, coloured by its heat */
void text_percent(const struct text *text, uint64_t part, uint64_t whole);

/** text_dim, text_plain - begin and end of text that matters less */
void text_dim(const struct text *text);
void text_plain(const struct text *text);

/** text_place - "file:line" (line 0: "file"), dim, in at most @width columns; none for NULL */
void text_place(const struct text *text, const char *file, uint32_t line, size_t width);
size_t text_place_width(const char *file, uint32_t line);

#endif
