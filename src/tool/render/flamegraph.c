/* SPDX-License-Identifier: MIT */
/*
 * The HTML page: the template that web/ builds, with the profile in the place of a placeholder
 * inside its <script>.
 *
 *   { "version": 1, "title", "recording": {..}, "notices": [..],
 *     "events":  [{"name", "unit", "period"}],   "threads": [{"pid", "tid", "name"}],
 *     "frames":  [[function, file, line, kind]..],
 *     "nodes":   [[parent, frame]..],            a prefix tree; parent -1: outermost
 *     "stacks":  [[event, thread, node, samples, count]..] }
 *
 * Names are somebody else's: no '<', '>' or '&' is left in the JSON, so none ends the script.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool/render/exporters.h"
#include "tool/render/json_parts.h"
#include "tool/render/pair_map.h"
#include "tool/render/stack_frames.h"
#include "tool/render/template.h"

#define PLACEHOLDER "/*PATHPROF_DATA*/null"
#define NO_PARENT   UINT32_MAX /* -1 in the page */

/* The page's tree, made of the stacks. */
struct prefix_tree {
	struct pair_map frames; /* (function, line) */
	struct pair_map nodes;	/* (parent, frame) */
	uint32_t *leaves;	/* the node of each row of stacks */
};

static int tree_add_stack(struct prefix_tree *tree, const struct trace *trace,
			  const struct stack_frames *frames, uint32_t *ret_leaf)
{
	uint32_t node = NO_PARENT;

	for (size_t i = 0; i < frames->nr; i++) {
		const struct trace_node *from = &trace->nodes[frames->nodes[i]];
		uint32_t frame;
		int rc = pair_map_add(&tree->frames, from->function, from->line, &frame);

		if (rc == 0)
			rc = pair_map_add(&tree->nodes, node, frame, &node);
		if (rc < 0)
			return rc;
	}
	*ret_leaf = node;
	return 0;
}

static void tree_release(struct prefix_tree *tree)
{
	pair_map_release(&tree->frames);
	pair_map_release(&tree->nodes);
	free(tree->leaves);
}

static int tree_build(struct prefix_tree *tree, const struct trace *trace,
		      const struct stacks *stacks)
{
	struct stack_frames frames = {0};
	int rc = 0;

	tree->leaves = calloc(stacks->nr_rows + 1, sizeof(*tree->leaves));
	if (!tree->leaves)
		return -ENOMEM;
	for (size_t i = 0; i < stacks->nr_rows && rc == 0; i++) {
		const struct stack_row *row = &stacks->rows[i];

		rc = stack_frames_load(&frames, trace, row->native, row->python);
		rc = rc ? rc : stack_frames_mark(&frames, trace, row->state);
		if (rc == 0)
			rc = tree_add_stack(tree, trace, &frames, &tree->leaves[i]);
	}
	stack_frames_release(&frames);
	return rc;
}

static void write_frames(struct json_stream *json, const struct trace *trace,
			 const struct prefix_tree *tree)
{
	json_begin(json, "frames", '[');
	for (size_t i = 0; i < tree->frames.nr; i++) {
		const struct pair *frame = &tree->frames.pairs[i];
		const struct trace_function *function = &trace->functions[frame->a];

		json_begin(json, NULL, '[');
		json_text(json, NULL, function->name);
		json_text(json, NULL, function->file);
		json_line(json, NULL, frame->b);
		json_text(json, NULL, frame_kind_name(function->kind));
		json_end(json, ']');
	}
	json_end(json, ']');
}

static void write_stacks(struct json_stream *json, const struct prefix_tree *tree,
			 const struct stacks *stacks)
{
	json_begin(json, "nodes", '[');
	for (size_t i = 0; i < tree->nodes.nr; i++) {
		const struct pair *node = &tree->nodes.pairs[i];

		json_begin(json, NULL, '[');
		json_signed(json, NULL, node->a == NO_PARENT ? -1 : (int64_t)node->a);
		json_number(json, NULL, node->b);
		json_end(json, ']');
	}
	json_end(json, ']');
	json_begin(json, "stacks", '[');
	for (size_t i = 0; i < stacks->nr_rows; i++) {
		const struct stack_row *row = &stacks->rows[i];

		json_begin(json, NULL, '[');
		json_number(json, NULL, row->event);
		json_number(json, NULL, row->thread);
		json_number(json, NULL, tree->leaves[i]);
		json_number(json, NULL, row->samples);
		json_number(json, NULL, row->count);
		json_end(json, ']');
	}
	json_end(json, ']');
}

static void write_lists(struct json_stream *json, const struct trace *trace)
{
	json_begin(json, "events", '[');
	for (size_t i = 0; i < trace->nr_events; i++) {
		json_begin(json, NULL, '{');
		json_text(json, "name", trace->events[i].name);
		json_text(json, "unit", trace->events[i].unit);
		json_number(json, "period", trace->events[i].period);
		json_end(json, '}');
	}
	json_end(json, ']');
	json_begin(json, "threads", '[');
	for (size_t i = 0; i < trace->nr_threads; i++) {
		json_begin(json, NULL, '{');
		json_number(json, "pid", trace->threads[i].pid);
		json_number(json, "tid", trace->threads[i].tid);
		json_text(json, "name", trace->threads[i].name);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static int write_document(const struct trace *trace, const struct stacks *stacks, FILE *out)
{
	struct json_stream json = {.out = out, .lines = 1, .in_html = true};
	struct prefix_tree tree = {0};
	char *title = command_line(trace);
	int rc = title ? tree_build(&tree, trace, stacks) : -ENOMEM;

	if (rc == 0) {
		json_begin(&json, NULL, '{');
		json_number(&json, "version", 1);
		json_text(&json, "title", title);
		json_recording(&json, trace);
		rc = json_notices(&json, trace);
		write_lists(&json, trace);
		write_frames(&json, trace, &tree);
		write_stacks(&json, &tree, stacks);
		json_end(&json, '}');
	}
	tree_release(&tree);
	free(title);
	return rc;
}

static int write_page(const struct trace *trace, const char *template, FILE *out,
		      struct errbuf *err)
{
	const char *place = strstr(template, PLACEHOLDER);
	struct profile_filter all = {PROFILE_ALL, PROFILE_ALL, 0, true};
	struct stacks stacks;
	int rc;

	if (!place || strstr(place + 1, PLACEHOLDER))
		return errbuf_set(err, -EINVAL,
				  "The page template flamegraph.html is damaged: it does not "
				  "hold %s exactly once; install pathprof again",
				  PLACEHOLDER);
	rc = stacks_collect(trace, all, true, &stacks);
	if (rc == 0) {
		fwrite(template, 1, (size_t)(place - template), out);
		rc = write_document(trace, &stacks, out);
		fputs(place + strlen(PLACEHOLDER), out);
		stacks_release(&stacks);
	}
	return rc < 0 ? errbuf_set(err, rc, "Cannot write the page: out of memory") : 0;
}

static int flamegraph_write(const struct trace *trace, FILE *out, struct errbuf *err)
{
	char *template;
	int rc = template_read("flamegraph.html", &template, err);

	if (rc < 0)
		return rc;
	rc = write_page(trace, template, out, err);
	free(template);
	return rc;
}

const struct exporter flamegraph_exporter = {
	"flamegraph",
	"one self-contained page with flame graphs, for any browser",
	false,
	flamegraph_write,
};
