/* SPDX-License-Identifier: MIT */
/*
 * Call trees.
 *
 * Top-down: the chains of a trace are a tree already, but one whose nodes differ by the place of
 * the call; a call node stands for all trace nodes with the same function (and line) under the same
 * parent. Each trace node is mapped to its call node once, so the cost is that of the nodes, not of
 * the stacks. Native frames, which stand below, are looked up frame by frame.
 *
 * Bottom-up: made from the top-down tree, whose nodes with `self` are the distinct stacks.
 *
 * In both, parents come before their children, so totals are summed in one pass from the end, and
 * for every node total = self + the sum of the children's totals.
 * Cost: about 50 ns a trace node or, bottom-up, a frame of a distinct stack.
 */
#include "tool/analysis/analysis_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool/trace/map.h"

struct growing {
	struct call_tree tree;
	uint32_t *keys; /* by call node: its key */
	size_t room;
	struct map children; /* parent << 32 | key: call node */
	const struct node_keys *names;
};

struct folding {
	const struct trace *trace;
	struct growing *growing;
	uint32_t *of_node; /* by trace node: its call node; 0: none yet */
	uint32_t *path;	   /* trace nodes, leaf first, that have no call node yet */
	size_t path_room;
};

static int grow(struct growing *growing)
{
	size_t room = growing->room ? 2 * growing->room : 256;
	struct call_node *nodes = reallocarray(growing->tree.nodes, room, sizeof(*nodes));
	uint32_t *keys;

	if (nodes)
		growing->tree.nodes = nodes;
	keys = reallocarray(growing->keys, room, sizeof(*keys));
	if (keys)
		growing->keys = keys;
	if (!nodes || !keys || room > UINT32_MAX)
		return -ENOMEM;
	growing->room = room;
	return 0;
}

static int add_node(struct growing *growing, uint32_t parent, uint32_t key)
{
	struct call_tree *tree = &growing->tree;

	if (tree->nr_nodes == growing->room && grow(growing))
		return -ENOMEM;
	growing->keys[tree->nr_nodes] = key;
	tree->nodes[tree->nr_nodes++] = (struct call_node){
		.parent = parent,
		.function = growing->names->function[key],
		.line = growing->names->line[key],
	};
	return 0;
}

/* The child of a call node by its key, made where it is new. */
static int find_child(struct growing *growing, uint32_t parent, uint32_t key, uint32_t *ret_child)
{
	uint32_t next = (uint32_t)growing->tree.nr_nodes;
	uint32_t *child = map_at(&growing->children, (uint64_t)parent << 32 | key, next);

	if (!child || (*child == next && add_node(growing, parent, key)))
		return -ENOMEM;
	*ret_child = *child;
	return 0;
}

/* The root: totals of everything, no function. */
static int growing_init(struct growing *growing, const struct node_keys *names)
{
	*growing = (struct growing){.names = names};
	if (add_node(growing, 0, 0))
		return -ENOMEM;
	growing->tree.nodes[0] = (struct call_node){0};
	return 0;
}

static void growing_release(struct growing *growing)
{
	call_tree_release(&growing->tree);
	free(growing->keys);
	map_release(&growing->children);
}

static int push(struct folding *folding, size_t at, uint32_t node)
{
	size_t room = folding->path_room ? 2 * folding->path_room : 256;
	uint32_t *path;

	if (at == folding->path_room) {
		path = reallocarray(folding->path, room, sizeof(*path));
		if (!path)
			return -ENOMEM;
		folding->path = path;
		folding->path_room = room;
	}
	folding->path[at] = node;
	return 0;
}

/* Go from call node @at down the first @length trace nodes of the path, the last one first. */
static int descend(struct folding *folding, uint32_t at, size_t length, bool remember,
		   uint32_t *ret_at)
{
	const struct node_keys *names = folding->growing->names;

	while (length--) {
		uint32_t node = folding->path[length];

		if (find_child(folding->growing, at, names->of_node[node], &at))
			return -ENOMEM;
		if (remember)
			folding->of_node[node] = at;
	}
	*ret_at = at;
	return 0;
}

/* The call node of a Python chain; the empty one is the root. */
static int fold_python(struct folding *folding, uint32_t node, uint32_t *ret_at)
{
	size_t length = 0;

	for (; node && !folding->of_node[node]; node = folding->trace->nodes[node].parent)
		if (push(folding, length++, node))
			return -ENOMEM;
	return descend(folding, node ? folding->of_node[node] : 0, length, true, ret_at);
}

static int fold_stack(struct folding *folding, const struct stack_row *row)
{
	struct call_node *node;
	size_t length = 0;
	uint32_t at;

	if (fold_python(folding, row->python, &at))
		return -ENOMEM;
	if (folding->trace->state_nodes[row->state] &&
	    push(folding, length++, folding->trace->state_nodes[row->state]))
		return -ENOMEM;
	for (uint32_t native = row->native; native; native = folding->trace->nodes[native].parent)
		if (push(folding, length++, native))
			return -ENOMEM;
	if (!row->python && !row->native && push(folding, length++, 0))
		return -ENOMEM;
	if (descend(folding, at, length, false, &at))
		return -ENOMEM;
	node = &folding->growing->tree.nodes[at];
	node->self += row->samples;
	node->self_count += row->count;
	return 0;
}

static int build_top_down(struct growing *growing, const struct trace *trace,
			  struct profile_filter filter)
{
	struct folding folding = {.trace = trace, .growing = growing};
	struct stacks stacks = {0};
	int rc = stacks_collect(trace, filter, false, &stacks);

	folding.of_node = calloc(trace->nr_nodes + 1, sizeof(*folding.of_node));
	if (!folding.of_node)
		rc = -ENOMEM;
	for (size_t i = 0; i < stacks.nr_rows && !rc; i++)
		rc = fold_stack(&folding, &stacks.rows[i]);
	stacks_release(&stacks);
	free(folding.of_node);
	free(folding.path);
	return rc;
}

static int build_bottom_up(struct growing *growing, const struct growing *top_down)
{
	const struct call_node *nodes = top_down->tree.nodes;

	for (size_t i = 1; i < top_down->tree.nr_nodes; i++) {
		struct call_node *end;
		uint32_t at = 0;

		if (!nodes[i].self)
			continue;
		for (uint32_t from = (uint32_t)i; from; from = nodes[from].parent)
			if (find_child(growing, at, top_down->keys[from], &at))
				return -ENOMEM;
		end = &growing->tree.nodes[at];
		end->self += nodes[i].self;
		end->self_count += nodes[i].self_count;
	}
	return 0;
}

static void sum_totals(struct call_tree *tree)
{
	struct call_node *nodes = tree->nodes;

	for (size_t i = tree->nr_nodes; i-- > 0;) {
		nodes[i].total += nodes[i].self;
		nodes[i].total_count += nodes[i].self_count;
		if (!i)
			break;
		nodes[nodes[i].parent].total += nodes[i].total;
		nodes[nodes[i].parent].total_count += nodes[i].total_count;
	}
}

struct order {
	const struct call_node *nodes;
	const uint32_t *ranks;
	bool by_count; /* waits weigh differently, however many samples they are */
};

static int compare_siblings(const void *a, const void *b, void *user)
{
	const struct order *order = user;
	const struct call_node *x = &order->nodes[*(const uint32_t *)a];
	const struct call_node *y = &order->nodes[*(const uint32_t *)b];
	uint32_t x_rank = order->ranks[x->function], y_rank = order->ranks[y->function];

	if (order->by_count && x->total_count != y->total_count)
		return x->total_count > y->total_count ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x_rank != y_rank)
		return x_rank < y_rank ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* Nodes in the order of their parents, and siblings sorted; then linked. */
static void link_sorted(struct call_tree *tree, struct order *order, uint32_t *starts,
			uint32_t *sorted)
{
	struct call_node *nodes = tree->nodes;

	for (size_t i = 1; i < tree->nr_nodes; i++)
		starts[nodes[i].parent + 1]++;
	for (size_t i = 0; i < tree->nr_nodes; i++)
		starts[i + 1] += starts[i];
	for (size_t i = 1; i < tree->nr_nodes; i++)
		sorted[starts[nodes[i].parent]++] = (uint32_t)i; /* a start becomes an end */
	for (size_t i = 0; i < tree->nr_nodes; i++) {
		uint32_t start = i ? starts[i - 1] : 0, end = starts[i];

		if (end - start > 1)
			qsort_r(sorted + start, end - start, sizeof(*sorted), compare_siblings,
				order);
		for (uint32_t at = end; at-- > start;) {
			nodes[sorted[at]].next_sibling = nodes[i].first_child;
			nodes[i].first_child = sorted[at];
		}
	}
}

static int link_children(struct call_tree *tree, const struct trace *trace, bool by_count)
{
	uint32_t *starts = calloc(tree->nr_nodes + 2, sizeof(*starts));
	uint32_t *sorted = calloc(tree->nr_nodes + 1, sizeof(*sorted));
	uint32_t *ranks = ranks_of_names(trace);
	struct order order = {.nodes = tree->nodes, .ranks = ranks, .by_count = by_count};
	int rc = -ENOMEM;

	if (starts && sorted && ranks) {
		link_sorted(tree, &order, starts, sorted);
		rc = 0;
	}
	free(starts);
	free(sorted);
	free(ranks);
	return rc;
}

int call_tree_build(const struct trace *trace, struct profile_filter filter,
		    enum call_tree_direction direction, bool by_line, struct call_tree *ret_tree)
{
	struct growing top_down = {0}, bottom_up = {0}, *wanted = &top_down;
	struct node_keys names = {0};
	int rc;

	rc = node_keys_make(trace, by_line ? PROFILE_BY_LINE : PROFILE_BY_FUNCTION, &names);
	rc = rc ? rc : growing_init(&top_down, &names);
	rc = rc ? rc : build_top_down(&top_down, trace, filter);
	if (!rc && direction == CALL_TREE_BOTTOM_UP) {
		wanted = &bottom_up;
		rc = growing_init(&bottom_up, &names);
		rc = rc ? rc : build_bottom_up(&bottom_up, &top_down);
	}
	if (!rc) {
		sum_totals(&wanted->tree);
		rc = link_children(&wanted->tree, trace, trace->nr_waits > 0);
	}
	if (!rc) {
		*ret_tree = wanted->tree;
		wanted->tree = (struct call_tree){0};
	}
	growing_release(&top_down);
	growing_release(&bottom_up);
	node_keys_release(&names);
	return rc;
}

void call_tree_release(struct call_tree *tree)
{
	free(tree->nodes);
	*tree = (struct call_tree){0};
}
