/* SPDX-License-Identifier: MIT */
/* A small trace made by hand, with one of everything and a name that means harm. */
#ifndef PATHPROF_TOOL_RENDER_EXAMPLE_TRACE_TEST_H
#define PATHPROF_TOOL_RENDER_EXAMPLE_TRACE_TEST_H

#include <stdio.h>

#include "tool/trace/trace.h"

/* In bytes: a script's end, ESC, ';', quote, backslash, newline, right-to-left, invalid UTF-8. */
#define HOSTILE_NAME "</script>\033[31m;\"\\\n\xe2\x80\xae&\xff"

/* What a string holds when it was written to, to be freed by the test with free(). */
struct written {
	char *text;
	size_t length;
	FILE *file;
};

/** example_trace - the caller may change it: it is made anew by each call */
struct trace *example_trace(void);

/** written_open, written_close - a FILE into memory; close makes the text complete */
FILE *written_open(struct written *written);
const char *written_close(struct written *written);

#endif
