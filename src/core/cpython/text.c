/* SPDX-License-Identifier: MIT */
/* Characters of a str object as UTF-8 that can stand on one line of a report. */
#include "core/cpython/cpython.h"

#include <stdlib.h>
#include <string.h>

#define CHARACTER_BYTES_MAX 10 /* the longest is \UNNNNNNNN */

static uint32_t character_at(const uint8_t *characters, uint32_t index, unsigned int width)
{
	uint32_t character = 0;

	memcpy(&character, characters + (size_t)index * width, width); /* little endian */
	return character;
}

static size_t escape(char to[CHARACTER_BYTES_MAX], char letter, unsigned int nr_digits,
		     uint32_t character)
{
	to[0] = '\\';
	to[1] = letter;
	for (unsigned int i = 0; i < nr_digits; i++)
		to[2 + i] = "0123456789abcdef"[character >> 4 * (nr_digits - 1 - i) & 15];
	return 2 + nr_digits;
}

static size_t encode(uint32_t character, char to[CHARACTER_BYTES_MAX])
{
	if (character < 0x20 || (character >= 0x7f && character < 0xa0))
		return escape(to, 'x', 2, character);
	if (character >= 0xd800 && character < 0xe000)
		return escape(to, 'u', 4, character);
	if (character > 0x10ffff)
		return escape(to, 'U', 8, character);
	if (character < 0x80) {
		to[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = (char)(0xc0 | character >> 6);
		to[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		to[0] = (char)(0xe0 | character >> 12);
		to[1] = (char)(0x80 | (character >> 6 & 0x3f));
		to[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | character >> 18);
	to[1] = (char)(0x80 | (character >> 12 & 0x3f));
	to[2] = (char)(0x80 | (character >> 6 & 0x3f));
	to[3] = (char)(0x80 | (character & 0x3f));
	return 4;
}

char *cpython_text_utf8(const uint8_t *characters, uint32_t length, unsigned int width)
{
	char one[CHARACTER_BYTES_MAX];
	size_t bytes = 0;
	char *text, *at;

	if (width != 1 && width != 2 && width != 4)
		length = 0; /* no characters of ours */
	for (uint32_t i = 0; i < length; i++)
		bytes += encode(character_at(characters, i, width), one);
	text = malloc(bytes + 1);
	if (!text)
		return NULL;
	at = text;
	for (uint32_t i = 0; i < length; i++) {
		size_t size = encode(character_at(characters, i, width), one);

		memcpy(at, one, size);
		at += size;
	}
	*at = 0;
	return text;
}
