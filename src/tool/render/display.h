/* SPDX-License-Identifier: MIT */
/*
 * Names on a terminal. A name comes out of somebody's program: it may hold escape sequences,
 * newlines, text that runs right to left, bytes that are no UTF-8. Nothing of that reaches the
 * output as it is: such characters are written as \n, \x1b, \u202e. Columns are what a terminal
 * shows: wide characters take two, combining ones none.
 */
#ifndef PATHPROF_TOOL_RENDER_DISPLAY_H
#define PATHPROF_TOOL_RENDER_DISPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where text that is too long loses its middle part, shown as one U+2026. */
enum display_cut {
	DISPLAY_CUT_END,
	DISPLAY_CUT_MIDDLE,
	DISPLAY_CUT_PATH, /* at the start, at a slash if there is one: the file's name is kept */
};

/**
 * utf8_next - the first character of a text
 * @text: not at its end
 * @ret_code: the code point, or UTF8_INVALID for one byte that begins no valid sequence
 * Returns its length in bytes.
 */
#define UTF8_INVALID UINT32_MAX
size_t utf8_next(const char *text, uint32_t *ret_code);

/** display_width - columns that the text takes, escapes included */
size_t display_width(const char *text);

/**
 * display_write - write a text, cut to at most @width columns
 * @width: SIZE_MAX: do not cut
 * Returns the columns written.
 */
size_t display_write(FILE *out, const char *text, size_t width, enum display_cut cut);

/** display_pad - write this many blanks */
void display_pad(FILE *out, size_t columns);

/**
 * display_paragraph - write sentences as lines that break between words
 * @indent: columns before each line but the first, which is where the caller left off
 * @width: columns of a line; 0: one line
 * Ends with a newline.
 */
void display_paragraph(FILE *out, const char *text, size_t indent, size_t width);

#endif
