/* SPDX-License-Identifier: MIT */
/* Texts of functions, made once and written often: an export names each function 10^5 times. */
#ifndef PATHPROF_TOOL_RENDER_PHRASES_H
#define PATHPROF_TOOL_RENDER_PHRASES_H

#include <stdio.h>

#include "tool/trace/trace.h"

struct phrases {
	char *text;
	size_t *ends; /* of each function's text; it begins where the one before ends */
};

/** phrases_make - @write writes the text of one function. 0 or -ENOMEM; phrases_release() frees */
int phrases_make(const struct trace *trace,
		 void (*write)(FILE *out, const struct trace_function *function),
		 struct phrases *ret_phrases);
void phrases_release(struct phrases *phrases);

/** phrases_write - write the text of a function */
void phrases_write(const struct phrases *phrases, uint32_t function, FILE *out);

#endif
