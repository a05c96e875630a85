/* SPDX-License-Identifier: MIT */
/* The order of functions by name, as numbers: ties between rows are then one comparison. */
#include "tool/analysis/analysis_priv.h"

#include <stdlib.h>
#include <string.h>

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_functions(const void *a, const void *b)
{
	const struct trace_function *x = *(const struct trace_function *const *)a;
	const struct trace_function *y = *(const struct trace_function *const *)b;
	int order = compare_text(x->name, y->name);

	if (!order)
		order = compare_text(x->file, y->file);
	if (!order)
		order = (x->line > y->line) - (x->line < y->line);
	return order ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

uint32_t *ranks_of_names(const struct trace *trace)
{
	const struct trace_function **sorted = malloc((trace->nr_functions + 1) * sizeof(*sorted));
	uint32_t *ranks = malloc((trace->nr_functions + 1) * sizeof(*ranks));

	if (sorted && ranks) {
		for (size_t i = 0; i < trace->nr_functions; i++)
			sorted[i] = &trace->functions[i];
		qsort(sorted, trace->nr_functions, sizeof(*sorted), compare_functions);
		for (size_t i = 0; i < trace->nr_functions; i++)
			ranks[sorted[i] - trace->functions] = (uint32_t)i;
	} else {
		free(ranks);
		ranks = NULL;
	}
	free(sorted);
	return ranks;
}
