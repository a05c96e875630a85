/* SPDX-License-Identifier: MIT */
/* Works on one character at a time, so that a name of any length costs no memory. */
#include "tool/render/display.h"

#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#define ELLIPSIS "\xe2\x80\xa6" /* U+2026, one column */

/* A character as it is shown. */
struct glyph {
	char text[12];	     /* the longest is \u{10ffff} */
	size_t nr_bytes;     /* of text */
	size_t width;	     /* columns */
	size_t source_bytes; /* what it stands for */
};

size_t utf8_next(const char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *byte = (const unsigned char *)text;
	size_t length;
	uint32_t code;

	*ret_code = UTF8_INVALID;
	if (byte[0] < 0x80) {
		*ret_code = byte[0];
		return 1;
	}
	length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
	if (byte[0] < 0xc2 || byte[0] > 0xf4)
		return 1;
	code = byte[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		/* The terminating zero is no continuation: this never reads past it. */
		if ((byte[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | (byte[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 1;
	*ret_code = code;
	return length;
}

/* Characters that drive a terminal, move text about, or cannot be seen. */
static bool is_hidden(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe007f);
}

static size_t escape(char *text, size_t room, uint32_t code, unsigned char byte)
{
	if (code == UTF8_INVALID)
		return (size_t)snprintf(text, room, "\\x%02x", byte);
	if (code == '\n' || code == '\t' || code == '\r')
		return (size_t)snprintf(text, room, "\\%c",
					code == '\n'   ? 'n'
					: code == '\t' ? 't'
						       : 'r');
	if (code < 0x80)
		return (size_t)snprintf(text, room, "\\x%02x", code);
	return (size_t)snprintf(text, room, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
}

static struct glyph next_glyph(const char *text)
{
	struct glyph glyph;
	uint32_t code;

	glyph.source_bytes = utf8_next(text, &code);
	if (code == UTF8_INVALID || is_hidden(code)) {
		glyph.nr_bytes = escape(glyph.text, sizeof(glyph.text), code, (unsigned char)*text);
		glyph.width = glyph.nr_bytes;
		return glyph;
	}
	memcpy(glyph.text, text, glyph.source_bytes);
	glyph.nr_bytes = glyph.source_bytes;
	glyph.width = 1;
	if (code >= 0x80) {
		int columns = wcwidth((wchar_t)code);

		/* Characters newer than the C library's tables: most take one column. */
		glyph.width = columns < 0 ? 1 : (size_t)columns;
	}
	return glyph;
}

size_t display_width(const char *text)
{
	size_t width = 0;

	while (*text) {
		struct glyph glyph = next_glyph(text);

		width += glyph.width;
		text += glyph.source_bytes;
	}
	return width;
}

/* Write the glyphs that fit wholly into columns [0, width). */
static size_t write_head(FILE *out, const char *text, size_t width)
{
	size_t column = 0;

	while (*text) {
		struct glyph glyph = next_glyph(text);

		if (glyph.width > width - column)
			break;
		fwrite_unlocked(glyph.text, 1, glyph.nr_bytes, out);
		column += glyph.width;
		text += glyph.source_bytes;
	}
	return column;
}

/* Where the last @width columns begin; a combining mark does not begin them. */
static const char *find_tail(const char *text, size_t total, size_t width)
{
	size_t column = 0;

	while (*text) {
		struct glyph glyph = next_glyph(text);

		if (column >= total - width && glyph.width > 0)
			break;
		column += glyph.width;
		text += glyph.source_bytes;
	}
	return text;
}

static size_t write_cut(FILE *out, const char *text, size_t total, size_t width,
			enum display_cut cut)
{
	size_t head = cut == DISPLAY_CUT_END ? width - 1 : 0, used;
	const char *tail, *slash;

	if (cut == DISPLAY_CUT_MIDDLE)
		head = (width - 1) / 2;
	used = write_head(out, text, head);
	fputs_unlocked(ELLIPSIS, out);
	if (cut == DISPLAY_CUT_END)
		return used + 1;
	tail = find_tail(text, total, width - 1 - head);
	slash = cut == DISPLAY_CUT_PATH ? strchr(tail, '/') : NULL;
	if (slash && slash[1])
		tail = slash;
	return used + 1 + write_head(out, tail, width - 1 - head);
}

size_t display_write(FILE *out, const char *text, size_t width, enum display_cut cut)
{
	size_t total;

	if (width == SIZE_MAX)
		return write_head(out, text, SIZE_MAX);
	if (width == 0)
		return 0;
	total = display_width(text);
	if (total <= width)
		return write_head(out, text, width);
	return write_cut(out, text, total, width, cut);
}

void display_pad(FILE *out, size_t columns)
{
	while (columns-- > 0)
		putc_unlocked(' ', out);
}

void display_paragraph(FILE *out, const char *text, size_t indent, size_t width)
{
	size_t column = indent, nr_words = 0;

	while (*text) {
		size_t length = strcspn(text, " "), columns = 0;
		const char *end = text + length;

		for (const char *at = text; at < end;) {
			struct glyph glyph = next_glyph(at);

			columns += glyph.width;
			at += glyph.source_bytes;
		}
		if (nr_words > 0 && width > 0 && column + 1 + columns > width) {
			putc_unlocked('\n', out);
			display_pad(out, indent);
			column = indent;
		} else if (nr_words > 0) {
			putc_unlocked(' ', out);
			column++;
		}
		for (; text < end;) {
			struct glyph glyph = next_glyph(text);

			fwrite_unlocked(glyph.text, 1, glyph.nr_bytes, out);
			text += glyph.source_bytes;
		}
		column += columns;
		nr_words++;
		text += strspn(text, " ");
	}
	putc_unlocked('\n', out);
}
