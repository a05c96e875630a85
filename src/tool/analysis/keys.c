/* SPDX-License-Identifier: MIT */
/* What rows are made by: a number per node, equal where function, line or file are. */
#include "tool/analysis/analysis_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool/trace/map.h"

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* The first function of the same file. */
static int find_file(const struct trace *trace, struct map *files, uint32_t function,
		     uint32_t *ret_first)
{
	const char *file = trace->functions[function].file;

	for (uint64_t hash = hash_text(file);; hash++) { /* ends at this file's entry */
		uint32_t *first = map_at(files, hash, function);

		if (!first)
			return -ENOMEM;
		if (same_text(trace->functions[*first].file, file)) {
			*ret_first = *first;
			return 0;
		}
	}
}

/* Keys are functions; those of one file share the first's. */
static int number_functions(struct node_keys *keys, const struct trace *trace, bool by_file)
{
	struct map files = {0};
	int rc = 0;

	keys->nr_keys = trace->nr_functions;
	for (uint32_t i = 0; i < trace->nr_functions && !rc; i++) {
		keys->function[i] = i;
		if (by_file)
			rc = find_file(trace, &files, i, &keys->function[i]);
	}
	for (size_t i = 0; i < trace->nr_nodes; i++)
		keys->of_node[i] = keys->function[trace->nodes[i].function];
	map_release(&files);
	return rc;
}

/* Keys are pairs of function and line, in order of first appearance. */
static int number_lines(struct node_keys *keys, const struct trace *trace)
{
	struct map pairs = {0};

	for (size_t i = 0; i < trace->nr_nodes; i++) {
		const struct trace_node *node = &trace->nodes[i];
		uint32_t *key = map_at(&pairs, (uint64_t)node->function << 32 | node->line,
				       (uint32_t)keys->nr_keys);

		if (!key) {
			map_release(&pairs);
			return -ENOMEM;
		}
		keys->of_node[i] = *key;
		if (*key < keys->nr_keys)
			continue;
		keys->function[*key] = node->function;
		keys->line[*key] = node->line;
		keys->nr_keys++;
	}
	map_release(&pairs);
	return 0;
}

int node_keys_make(const struct trace *trace, enum profile_by by, struct node_keys *ret_keys)
{
	size_t room = trace->nr_nodes > trace->nr_functions ? trace->nr_nodes : trace->nr_functions;
	struct node_keys keys = {
		.of_node = calloc(trace->nr_nodes + 1, sizeof(*keys.of_node)),
		.function = calloc(room + 1, sizeof(*keys.function)),
		.line = calloc(room + 1, sizeof(*keys.line)),
	};
	int rc = -ENOMEM;

	if (keys.of_node && keys.function && keys.line)
		rc = by == PROFILE_BY_LINE ? number_lines(&keys, trace)
					   : number_functions(&keys, trace, by == PROFILE_BY_FILE);
	if (rc)
		node_keys_release(&keys);
	else
		*ret_keys = keys;
	return rc;
}

void node_keys_release(struct node_keys *keys)
{
	free(keys->of_node);
	free(keys->function);
	free(keys->line);
	*keys = (struct node_keys){0};
}
