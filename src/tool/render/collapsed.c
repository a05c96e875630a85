/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, for flamegraph.pl, speedscope, inferno and what else reads them:
 *
 *   main (app.py:1);work (app.py:10) 12
 *
 * Root first, the number of samples last; of the event that waits count as (--wall) nanoseconds,
 * since a wait is one sample however long it lasts. A frame names a function by the line where it
 * starts, so that one function is one frame however many of its lines were met. ';' and characters
 * that would break the line are replaced. With several events, a first frame names the event.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/render/display.h"
#include "tool/render/exporters.h"
#include "tool/render/phrases.h"

/* As display.h escapes them, but for the two characters that structure a line. */
static void write_name(FILE *out, const char *name)
{
	while (*name) {
		size_t length = strcspn(name, ";");
		char part[256];

		if (length >= sizeof(part)) {
			/* Cut between characters: a continuation byte stays with its first. */
			length = sizeof(part) - 1;
			while (length > 1 && ((unsigned char)name[length] & 0xc0) == 0x80)
				length--;
		}
		memcpy(part, name, length);
		part[length] = 0;
		display_write(out, part, SIZE_MAX, DISPLAY_CUT_END);
		name += length;
		if (*name == ';') {
			putc_unlocked(':', out);
			name++;
		}
	}
}

static void write_frame(FILE *out, const struct trace_function *function)
{
	write_name(out, function->name);
	if (function->file) {
		fputs(" (", out);
		write_name(out, function->file);
		if (function->line)
			fprintf(out, ":%" PRIu32, function->line);
		putc_unlocked(')', out);
	}
	/* The suffix by which flamegraph.pl colours the kernel. */
	if (function->kind == FRAME_KERNEL)
		fputs("_[k]", out);
}

/* The nodes from below the root to @node, into @path, which has room for all: their number. */
static size_t path_to(const struct call_tree *tree, uint32_t node, uint32_t *path)
{
	size_t depth = 0;

	for (uint32_t at = node; at != 0; at = tree->nodes[at].parent)
		depth++;
	for (size_t i = depth; i > 0; i--) {
		path[i - 1] = node;
		node = tree->nodes[node].parent;
	}
	return depth;
}

static void write_stack(FILE *out, const struct phrases *names, const struct call_tree *tree,
			const uint32_t *path, size_t depth)
{
	for (size_t i = 0; i < depth; i++) {
		if (i > 0)
			putc_unlocked(';', out);
		phrases_write(names, tree->nodes[path[i]].function, out);
	}
}

static int write_event(const struct trace *trace, uint32_t event, const struct phrases *names,
		       FILE *out)
{
	struct profile_filter filter = {event, PROFILE_ALL, 0, true};
	bool by_time = trace->wall.period_ns && trace->wall.event == event;
	struct call_tree tree;
	uint32_t *path;
	int rc = call_tree_build(trace, filter, CALL_TREE_TOP_DOWN, false, &tree);

	if (rc < 0)
		return rc;
	path = calloc(tree.nr_nodes + 1, sizeof(*path));
	for (uint32_t i = 0; path && i < tree.nr_nodes; i++) {
		const struct call_node *node = &tree.nodes[i];
		uint64_t weight = by_time ? node->self_count : node->self;
		size_t depth;

		if (weight == 0)
			continue;
		depth = path_to(&tree, i, path);
		if (trace->nr_events > 1) {
			write_name(out, trace->events[event].name);
			putc_unlocked(';', out);
		}
		write_stack(out, names, &tree, path, depth);
		fprintf(out, " %" PRIu64 "\n", weight);
	}
	call_tree_release(&tree);
	rc = path ? 0 : -ENOMEM;
	free(path);
	return rc;
}

static int collapsed_write(const struct trace *trace, FILE *out, struct errbuf *err)
{
	struct phrases names;
	int rc = phrases_make(trace, write_frame, &names);

	if (rc == 0) {
		for (uint32_t i = 0; i < trace->nr_events && rc == 0; i++)
			rc = write_event(trace, i, &names, out);
		phrases_release(&names);
	}
	return rc < 0 ? errbuf_set(err, rc, "Cannot fold the stacks: out of memory") : 0;
}

const struct exporter collapsed_exporter = {
	"collapsed",
	"a line per call path and its samples, with --wall its ns: flamegraph.pl, inferno, "
	"speedscope",
	true,
	collapsed_write,
};
