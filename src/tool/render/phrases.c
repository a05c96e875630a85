/* SPDX-License-Identifier: MIT */
#include "tool/render/phrases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int phrases_make(const struct trace *trace,
		 void (*write)(FILE *out, const struct trace_function *function),
		 struct phrases *ret_phrases)
{
	struct phrases phrases = {0};
	size_t length = 0;
	FILE *out = open_memstream(&phrases.text, &length);
	int failed;

	if (!out)
		return -ENOMEM;
	phrases.ends = calloc(trace->nr_functions + 1, sizeof(*phrases.ends));
	for (size_t i = 0; phrases.ends && i < trace->nr_functions; i++) {
		write(out, &trace->functions[i]);
		phrases.ends[i] = (size_t)ftell(out);
	}
	failed = ferror(out);
	if (fclose(out) != 0 || failed || !phrases.ends) {
		phrases_release(&phrases);
		return -ENOMEM;
	}
	*ret_phrases = phrases;
	return 0;
}

void phrases_release(struct phrases *phrases)
{
	free(phrases->text);
	free(phrases->ends);
	memset(phrases, 0, sizeof(*phrases));
}

void phrases_write(const struct phrases *phrases, uint32_t function, FILE *out)
{
	size_t start = function ? phrases->ends[function - 1] : 0;

	fwrite_unlocked(phrases->text + start, 1, phrases->ends[function] - start, out);
}
