/* SPDX-License-Identifier: MIT */
/* Texts from a file made fit for terminals and JSON: no control characters, valid UTF-8. */
#include "tool/trace/trace_priv.h"

/* Length of the UTF-8 character at @text, or 0: no shortest form of a scalar value from U+00A0. */
static size_t character_length(const uint8_t *text, size_t left)
{
	static const uint32_t smallest[] = {0, 0, 0xa0, 0x800, 0x10000};
	uint32_t value;
	size_t length;

	if (text[0] >= 0xc2 && text[0] < 0xe0)
		length = 2;
	else if (text[0] >= 0xe0 && text[0] < 0xf0)
		length = 3;
	else if (text[0] >= 0xf0 && text[0] < 0xf5)
		length = 4;
	else
		return 0;
	if (length > left)
		return 0;
	value = text[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3fu);
	}
	if (value < smallest[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	return length;
}

void text_clean(char *text, size_t length, bool keep_lines)
{
	uint8_t *at = (uint8_t *)text, *end = at + length;
	size_t step;

	while (at < end) {
		if ((*at >= 0x20 && *at < 0x7f) || (keep_lines && (*at == '\n' || *at == '\t'))) {
			at++;
			continue;
		}
		step = *at < 0x80 ? 0 : character_length(at, (size_t)(end - at));
		if (step)
			at += step;
		else
			*at++ = '?';
	}
}
