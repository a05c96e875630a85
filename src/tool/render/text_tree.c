/* SPDX-License-Identifier: MIT */
/*
 * Call trees:
 *
 *    Self%     ~Self  Total%    ~Total  Call path
 *     0.0%      0 ns  100.0%    10.0 s  <module>  app.py:1
 *     0.0%      0 ns  100.0%    10.0 s  main  app.py:90
 *    30.0%    3.00 s   30.0%    3.00 s  +- read  app.py:20
 *     0.0%      0 ns   70.0%    7.00 s  `- parse  app.py:40
 *    70.0%    7.00 s   70.0%    7.00 s     tokens  app.py:60
 *
 * (with box-drawing characters). Only a fork in the path moves to the right: a path of a thousand
 * frames without one is a straight column. What is lighter than the smallest share is one line.
 */
#include <errno.h>
#include <stdlib.h>

#include "tool/render/text_priv.h"

#define BRANCHES_MAX 40 /* forks drawn; deeper ones are drawn as if they were at this one */

#define ROOM_LEAST 10 /* columns for a name, however deep */

/* A walk over a tree: where it is, and for each fork above, whether another branch follows. */
struct walk {
	const struct text *text;
	const struct section *section;
	const struct call_tree *tree;
	uint32_t *forks;   /* for each node, the number of forks above it */
	uint64_t smallest; /* counts below this are folded */
	bool continues[BRANCHES_MAX + 1];
};

static bool is_shown(const struct walk *walk, uint32_t node)
{
	return walk->tree->nodes[node].total_count >= walk->smallest;
}

/* Children are sorted by total: the shown ones come first. */
static uint32_t next_shown(const struct walk *walk, uint32_t node)
{
	uint32_t next = walk->tree->nodes[node].next_sibling;

	return next && is_shown(walk, next) ? next : 0;
}

static uint32_t first_shown(const struct walk *walk, uint32_t node)
{
	uint32_t child = walk->tree->nodes[node].first_child;

	return child && is_shown(walk, child) ? child : 0;
}

/* Does the path fork below this node, into shown branches or the line of folded ones? */
static bool forks_below(const struct walk *walk, uint32_t node)
{
	uint32_t child = walk->tree->nodes[node].first_child;

	return child && walk->tree->nodes[child].next_sibling;
}

static unsigned int drawn(uint32_t forks)
{
	return forks < BRANCHES_MAX ? forks : BRANCHES_MAX;
}

/* From the leaves up, the whole is each leaf's own: "self" would say nothing. */
static void write_numbers(const struct walk *walk, const struct cost *cost)
{
	if (!walk->text->options->inverted) {
		text_numbers(walk->text, walk->section, cost);
		return;
	}
	text_percent(walk->text, cost->total_count, walk->section->whole.count);
	fprintf(walk->text->out, " %9s  ",
		quantity_of(cost->total_count, walk->section->is_time).text);
}

/* The lines to the left of a node; returns their columns. */
static size_t write_branches(const struct walk *walk, uint32_t forks, bool begins, bool last)
{
	static const char *const lines[] = {"   ", "\xe2\x94\x82  "};
	static const char *const corners[] = {"\xe2\x94\x9c\xe2\x94\x80 ",
					      "\xe2\x94\x94\xe2\x94\x80 "};
	unsigned int nr = drawn(forks);

	text_dim(walk->text);
	for (unsigned int i = 1; i < nr; i++)
		fputs(lines[walk->continues[i]], walk->text->out);
	if (nr > 0)
		fputs(begins ? corners[last] : lines[walk->continues[nr]], walk->text->out);
	text_plain(walk->text);
	return 3 * (size_t)nr;
}

/* The width of the text right of the branches; SIZE_MAX: no limit. */
static size_t room_after(const struct walk *walk, size_t branches)
{
	size_t width = walk->text->options->width;
	size_t used =
		branches + (walk->text->options->inverted ? NUMBER_COLUMNS / 2 : NUMBER_COLUMNS);

	if (width == 0)
		return SIZE_MAX;
	return width > used + ROOM_LEAST ? width - used : ROOM_LEAST;
}

static void write_node(struct walk *walk, uint32_t index, bool begins)
{
	const struct call_node *node = &walk->tree->nodes[index];
	const struct trace_function *function = &walk->text->trace->functions[node->function];
	struct cost cost = {node->self, node->total, node->self_count, node->total_count};
	bool last = !node->next_sibling;
	size_t room, used;

	if (begins)
		walk->continues[drawn(walk->forks[index])] = !last;
	write_numbers(walk, &cost);
	room = room_after(walk, write_branches(walk, walk->forks[index], begins, last));
	used = display_write(walk->text->out, function->name, room, DISPLAY_CUT_MIDDLE);
	if (function->file && (room == SIZE_MAX || room > used + 2 + 12)) {
		fputs("  ", walk->text->out);
		text_place(walk->text, function->file, node->line ? node->line : function->line,
			   room == SIZE_MAX ? room : room - used - 2);
	}
	putc('\n', walk->text->out);
}

/* One line for the children of @parent that are too light. */
static void write_folded(struct walk *walk, uint32_t parent)
{
	struct cost cost = {0};
	uint32_t forks = walk->forks[parent] + forks_below(walk, parent);
	size_t nr = 0;

	for (uint32_t child = walk->tree->nodes[parent].first_child; child;
	     child = walk->tree->nodes[child].next_sibling) {
		if (is_shown(walk, child))
			continue;
		cost.self_count += walk->tree->nodes[child].self_count;
		cost.total_count += walk->tree->nodes[child].total_count;
		nr++;
	}
	if (nr == 0)
		return;
	write_numbers(walk, &cost);
	write_branches(walk, forks, forks_below(walk, parent), true);
	text_dim(walk->text);
	fprintf(walk->text->out, "(%s %s below --min-share)", quantity_exact(nr).text,
		nr == 1 ? "branch" : "branches");
	text_plain(walk->text);
	putc('\n', walk->text->out);
}

/* After a node without shown children: up to the next branch, or 0 at the end. */
static uint32_t next_branch(struct walk *walk, uint32_t node)
{
	while (node) {
		uint32_t next = next_shown(walk, node), parent = walk->tree->nodes[node].parent;

		if (next)
			return next;
		write_folded(walk, parent);
		node = parent;
	}
	return 0;
}

static void write_tree(struct walk *walk)
{
	uint32_t node = first_shown(walk, 0);

	if (!node)
		write_folded(walk, 0);
	while (node) {
		uint32_t parent = walk->tree->nodes[node].parent, child;
		bool begins = forks_below(walk, parent);

		walk->forks[node] = walk->forks[parent] + begins;
		write_node(walk, node, begins);
		child = first_shown(walk, node);
		if (!child && walk->tree->nodes[node].first_child)
			write_folded(walk, node);
		node = child ? child : next_branch(walk, node);
	}
}

int text_tree(const struct text *text, const struct section *section)
{
	const struct text_options *options = text->options;
	struct profile_filter filter = {section->event, section->thread, section->states, true};
	struct walk walk = {.text = text, .section = section};
	struct call_tree tree;
	int rc;

	rc = call_tree_build(text->trace, filter,
			     options->inverted ? CALL_TREE_BOTTOM_UP : CALL_TREE_TOP_DOWN,
			     options->by_line && !options->by_function, &tree);
	if (rc < 0)
		return rc;
	walk.tree = &tree;
	walk.smallest = (uint64_t)(options->min_share * (double)section->whole.count);
	walk.forks = calloc(tree.nr_nodes, sizeof(*walk.forks));
	if (walk.forks) {
		putc('\n', text->out);
		if (!options->inverted)
			text_number_heads(text);
		fprintf(text->out, options->inverted ? "Total%%    ~Total  Function, called by\n"
						     : "Call path\n");
		write_tree(&walk);
	}
	rc = walk.forks ? 0 : -ENOMEM;
	free(walk.forks);
	call_tree_release(&tree);
	return rc;
}
