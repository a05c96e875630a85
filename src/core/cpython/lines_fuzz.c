/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: a line table and the characters of a name are whatever stood in the target.
 *
 *   clang -g -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc \
 *     src/core/cpython/{lines_fuzz,lines,text}.c -o lines_fuzz && ./lines_fuzz -max_total_time=20
 */
#include <stdlib.h>
#include <string.h>

#include "core/cpython/cpython.h"
#include "core/event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const uint8_t *table, size_t length, uint32_t first_line, uint32_t position)
{
	uint32_t line = cpython_line(LINE_TABLE_CPYTHON_311, table, length, first_line, position);

	if (line > INT32_MAX && position)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned int widths[] = {1, 2, 4, 3};
	struct {
		uint32_t first_line, position, width;
	} head;
	char *text;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	look_up(data, size, head.first_line, head.position);
	look_up(data, size, head.first_line, head.position % 1024);
	head.width = widths[head.width % 4];
	text = cpython_text_utf8(data, (uint32_t)(size / head.width), head.width);
	if (!text || memchr(text, '\n', strlen(text)))
		abort();
	free(text);
	return 0;
}
