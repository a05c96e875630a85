/* SPDX-License-Identifier: MIT */
/*
 * Line tables of CPython 3.11 and later (PEP 626, PEP 657; Objects/locations.md in its source).
 *
 * Each entry covers 1 to 8 code units and starts with a byte that has its high bit set:
 *
 *   1 kkkk nnn   kind, number of units - 1
 *
 *   kind 0-9    short: same line, one byte of columns follows
 *   kind 10-12  line + (kind - 10), two bytes of columns follow
 *   kind 13     no columns: line + signed number
 *   kind 14     long: line + signed number, then three numbers
 *   kind 15     no line; the line of the next entry counts on from the one before
 *
 * Numbers are six bits a byte, least significant first, 0x40 set in all but the last; the lowest
 * bit of a signed one is its sign. Bytes after the start have the high bit clear, so the next start
 * is found without decoding the columns.
 */
#include "core/cpython/cpython.h"

#include "core/event/event.h"

#define ENTRY_START	 0x80
#define KIND_ONE_LINE	 10
#define KIND_NO_COLUMNS	 13
#define KIND_LONG	 14
#define KIND_NONE	 15
#define NUMBER_MORE	 0x40
#define NUMBER_SHIFT_MAX 30 /* six bytes hold 32 bits; a longer number is a lie */
#define NUMBER_BYTE_BITS 6
#define NUMBER_BYTE_MASK 0x3f

/* The number at @at, or as much of it as there is. */
static uint32_t number(const uint8_t *at, const uint8_t *end)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; at < end && shift <= NUMBER_SHIFT_MAX; at++) {
		value |= (uint32_t)(*at & NUMBER_BYTE_MASK) << shift;
		if (!(*at & NUMBER_MORE))
			break;
		shift += NUMBER_BYTE_BITS;
	}
	return value;
}

static int64_t line_delta(unsigned int entry_kind, const uint8_t *at, const uint8_t *end)
{
	uint32_t value;

	switch (entry_kind) {
	case KIND_NO_COLUMNS:
	case KIND_LONG:
		value = number(at, end);
		return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
	case KIND_ONE_LINE:
	case KIND_ONE_LINE + 1:
	case KIND_ONE_LINE + 2:
		return entry_kind - KIND_ONE_LINE;
	default: /* short forms, and no line */
		return 0;
	}
}

uint32_t cpython_line(unsigned int kind, const uint8_t *table, size_t length, uint32_t first_line,
		      uint32_t position)
{
	const uint8_t *at = table, *end = table + length;
	uint64_t line = first_line; /* unsigned: wraps in a hostile table, and is then no line */
	uint64_t unit = 0;

	if (!position)
		return first_line;
	if (kind != LINE_TABLE_CPYTHON_311)
		return 0;
	while (at < end && *at & ENTRY_START) {
		unsigned int entry_kind = *at >> 3 & 15;

		unit += (*at & 7) + 1;
		at++;
		line += (uint64_t)line_delta(entry_kind, at, end);
		if (position <= unit)
			return entry_kind != KIND_NONE && line <= INT32_MAX ? (uint32_t)line : 0;
		while (at < end && !(*at & ENTRY_START))
			at++;
	}
	return 0;
}
