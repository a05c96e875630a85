/* SPDX-License-Identifier: MIT */
/* Profiles, trees and stacks of recordings made by hand, against sums made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "make_recording.h"
#include "read_made.h"
#include "tool/analysis/profile.h"

#define T0 1000000000ull

static const struct profile_filter everything = {PROFILE_ALL, PROFILE_ALL};

/*
 * Codes: 1 main (a.py), 2 work (a.py), 3 leaf (b.py).
 * Nodes: 1 main:1 > 2 work:11 > 3 work:12 > 4 leaf:21; 1 main:1 > 5 leaf:22; 6 [libx.so]
 */
static struct maker *small_maker(void)
{
	struct maker *maker = maker_new();

	maker_manifest(maker, true, 2, 4000000);
	maker_code(maker, 1, "main", "a.py", 1, 8);
	maker_code(maker, 2, "work", "a.py", 11, 8);
	maker_code(maker, 3, "leaf", "b.py", 21, 8);
	maker_node(maker, 1, 0, NODE_PYTHON, 1, 1);
	maker_node(maker, 2, 1, NODE_PYTHON, 2, 1);
	maker_node(maker, 3, 2, NODE_PYTHON, 2, 2);
	maker_node(maker, 4, 3, NODE_PYTHON, 3, 1);
	maker_node(maker, 5, 1, NODE_PYTHON, 3, 2);
	maker_module(maker, 1, "/lib/libx.so");
	maker_node(maker, 6, 0, NODE_NATIVE, 1, 1);
	maker_begin(maker, 0, 1, 1, T0);
	maker_sample(maker, 0, 0, T0 + 1, 0, 3, 10); /* main > work > work */
	maker_sample(maker, 0, 0, T0 + 2, 0, 4, 20); /* main > work > work > leaf */
	maker_sample(maker, 0, 0, T0 + 3, 0, 4, 30);
	maker_sample(maker, 0, 1, T0 + 4, 0, 4, 1); /* a page fault there */
	maker_begin(maker, 1, 1, 2, T0);
	maker_sample(maker, 1, 0, T0 + 5, 0, 5, 40); /* main > leaf */
	maker_sample(maker, 1, 0, T0 + 6, 0, 0, 50); /* nothing */
	maker_sample(maker, 1, 0, T0 + 7, 6, 5, 60); /* main > leaf > [libx.so] */
	return maker;
}

static const struct profile_row *find_row(const struct trace *trace, const struct profile *profile,
					  uint32_t event, const char *name, uint32_t line)
{
	for (size_t i = 0; i < profile->nr_rows; i++) {
		const struct profile_row *row = &profile->rows[i];

		if (row->event == event && row->line == line &&
		    !strcmp(trace->functions[row->function].name, name))
			return row;
	}
	return NULL;
}

static void check_row(const struct profile_row *row, uint64_t self, uint64_t total,
		      uint64_t self_count, uint64_t total_count)
{
	assert_non_null(row);
	assert_int_equal(row->cost.self, self);
	assert_int_equal(row->cost.total, total);
	assert_int_equal(row->cost.self_count, self_count);
	assert_int_equal(row->cost.total_count, total_count);
}

static void test_profile__recursion_counts_once(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);
	struct profile profile;

	(void)state;
	assert_int_equal(profile_flat(trace, everything, PROFILE_BY_FUNCTION, false, &profile), 0);
	check_row(find_row(trace, &profile, 0, "work", 0), 1, 3, 10, 60);
	check_row(find_row(trace, &profile, 0, "main", 0), 0, 5, 0, 160);
	check_row(find_row(trace, &profile, 0, "leaf", 0), 3, 4, 90, 150);
	check_row(find_row(trace, &profile, 0, "[no Python frame]", 0), 1, 1, 50, 50);
	check_row(find_row(trace, &profile, 0, "[libx.so]", 0), 1, 1, 60, 60);
	check_row(find_row(trace, &profile, 1, "work", 0), 0, 1, 0, 1);
	for (size_t i = 1; i < profile.nr_rows; i++) {
		const struct profile_row *a = &profile.rows[i - 1], *b = &profile.rows[i];

		assert_true(a->event < b->event ||
			    (a->event == b->event && a->cost.self >= b->cost.self));
	}
	profile_release(&profile);
	trace_free(trace);
	maker_free(maker);
}

static void test_profile__lines_and_files(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);
	struct profile profile;

	(void)state;
	assert_int_equal(profile_flat(trace, everything, PROFILE_BY_LINE, false, &profile), 0);
	check_row(find_row(trace, &profile, 0, "work", 11), 0, 3, 0, 60);
	check_row(find_row(trace, &profile, 0, "work", 12), 1, 3, 10, 60);
	check_row(find_row(trace, &profile, 0, "leaf", 21), 2, 2, 50, 50);
	check_row(find_row(trace, &profile, 0, "leaf", 22), 1, 2, 40, 100);
	profile_release(&profile);
	assert_int_equal(profile_flat(trace, (struct profile_filter){0, PROFILE_ALL},
				      PROFILE_BY_FILE, false, &profile),
			 0);
	for (size_t i = 0; i < profile.nr_rows; i++) {
		const char *file = trace->functions[profile.rows[i].function].file;

		if (file && !strcmp(file, "a.py"))
			check_row(&profile.rows[i], 1, 5, 10, 160);
		if (file && !strcmp(file, "b.py"))
			check_row(&profile.rows[i], 3, 4, 90, 150);
	}
	assert_int_equal(profile.nr_rows, 4);
	profile_release(&profile);
	trace_free(trace);
	maker_free(maker);
}

static void test_profile__threads_and_filters(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);
	struct profile profile;

	(void)state;
	assert_int_equal(profile_flat(trace, everything, PROFILE_BY_FUNCTION, true, &profile), 0);
	for (size_t i = 0; i < profile.nr_rows; i++) {
		const struct profile_row *row = &profile.rows[i];

		assert_true(row->thread < 2);
		if (row->event || strcmp(trace->functions[row->function].name, "main"))
			continue;
		assert_int_equal(row->cost.total, row->thread ? 2 : 3);
	}
	profile_release(&profile);
	assert_int_equal(profile_flat(trace, (struct profile_filter){0, 1}, PROFILE_BY_FUNCTION,
				      false, &profile),
			 0);
	check_row(find_row(trace, &profile, 0, "main", 0), 0, 2, 0, 100);
	assert_null(find_row(trace, &profile, 0, "work", 0));
	profile_release(&profile);
	trace_free(trace);
	maker_free(maker);
}

static void check_tree(const struct call_tree *tree)
{
	uint64_t self = 0;

	for (size_t i = 0; i < tree->nr_nodes; i++) {
		const struct call_node *node = &tree->nodes[i];
		uint64_t sum = node->self, count = node->self_count, last = UINT64_MAX;

		self += node->self;
		for (uint32_t child = node->first_child; child;
		     child = tree->nodes[child].next_sibling) {
			assert_int_equal(tree->nodes[child].parent, i);
			assert_true(tree->nodes[child].total <= last);
			last = tree->nodes[child].total;
			sum += tree->nodes[child].total;
			count += tree->nodes[child].total_count;
		}
		assert_int_equal(node->total, sum);
		assert_int_equal(node->total_count, count);
	}
	assert_int_equal(tree->nodes[0].total, self);
}

/* "name total/self" of each node below @at, in order, brackets around children. */
static void print_tree(const struct trace *trace, const struct call_tree *tree, uint32_t at,
		       char *text)
{
	for (uint32_t child = tree->nodes[at].first_child; child;
	     child = tree->nodes[child].next_sibling) {
		const struct call_node *node = &tree->nodes[child];

		sprintf(text + strlen(text), " %s %d/%d", trace->functions[node->function].name,
			(int)node->total, (int)node->self);
		if (!node->first_child)
			continue;
		strcat(text, " (");
		print_tree(trace, tree, child, text);
		strcat(text, " )");
	}
}

static void test_call_tree__both_directions(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);
	struct profile_filter cpu = {0, PROFILE_ALL};
	struct call_tree tree;
	char text[1024] = "";

	(void)state;
	assert_int_equal(call_tree_build(trace, cpu, CALL_TREE_TOP_DOWN, false, &tree), 0);
	check_tree(&tree);
	assert_int_equal(tree.nodes[0].total_count, 210);
	print_tree(trace, &tree, 0, text);
	assert_string_equal(text, " main 5/0 ( work 3/0 ( work 3/1 ( leaf 2/2 ) ) leaf 2/1 ("
				  " [libx.so] 1/1 ) ) [no Python frame] 1/1");
	call_tree_release(&tree);
	text[0] = 0;
	assert_int_equal(call_tree_build(trace, cpu, CALL_TREE_BOTTOM_UP, false, &tree), 0);
	check_tree(&tree);
	print_tree(trace, &tree, 0, text);
	assert_string_equal(text, " leaf 3/0 ( work 2/0 ( work 2/0 ( main 2/2 ) ) main 1/1 )"
				  " [libx.so] 1/0 ( leaf 1/0 ( main 1/1 ) )"
				  " [no Python frame] 1/1"
				  " work 1/0 ( work 1/0 ( main 1/1 ) )");
	call_tree_release(&tree);
	trace_free(trace);
	maker_free(maker);
}

static void test_call_tree__lines_kept_apart(void **state)
{
	struct maker *maker = maker_new();
	struct call_tree tree;
	struct trace *trace;

	(void)state;
	maker_code(maker, 1, "main", "a.py", 1, 8);
	maker_node(maker, 1, 0, NODE_PYTHON, 1, 1);
	maker_node(maker, 2, 0, NODE_PYTHON, 1, 5);
	maker_begin(maker, 0, 1, 1, T0);
	maker_sample(maker, 0, 0, T0, 0, 1, 1);
	maker_sample(maker, 0, 0, T0, 0, 2, 1);
	trace = read_made(maker);
	assert_int_equal(call_tree_build(trace, everything, CALL_TREE_TOP_DOWN, false, &tree), 0);
	assert_int_equal(tree.nr_nodes, 2);
	call_tree_release(&tree);
	assert_int_equal(call_tree_build(trace, everything, CALL_TREE_TOP_DOWN, true, &tree), 0);
	assert_int_equal(tree.nr_nodes, 3);
	assert_int_equal(tree.nodes[tree.nodes[0].first_child].line, 1);
	call_tree_release(&tree);
	trace_free(trace);
	maker_free(maker);
}

static void test_stacks__fold_and_merge(void **state)
{
	struct maker *maker = small_maker();
	struct trace *trace = read_made(maker);
	struct stacks stacks;
	uint32_t frames[4];

	(void)state;
	assert_int_equal(stacks_collect(trace, everything, false, &stacks), 0);
	assert_int_equal(stacks.nr_rows, 6);
	assert_int_equal(stacks.rows[1].samples, 2);
	assert_int_equal(stacks.rows[1].count, 50);
	assert_int_equal(stacks.rows[1].thread, PROFILE_ALL);
	stacks_release(&stacks);
	assert_int_equal(stacks_frames(trace, 0, 4, frames, 4), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(frames[i], i + 1);
	frames[2] = 99;
	assert_int_equal(stacks_frames(trace, 0, 4, frames, 2),
			 4); /* only what there is room for */
	assert_int_equal(frames[2], 99);
	assert_int_equal(stacks_frames(trace, 6, 5, frames, 4), 3);
	assert_int_equal(frames[0], 1);
	assert_int_equal(frames[1], 5);
	assert_int_equal(frames[2], 6);
	assert_int_equal(stacks_frames(trace, 0, 0, frames, 4), 1);
	assert_int_equal(frames[0], 0);
	trace_free(trace);
	maker_free(maker);
}

static void test_profile__sums_agree_on_many_stacks(void **state)
{
	struct maker_load load = maker_load_default();
	struct maker *maker = maker_new();
	struct profile profile;
	struct call_tree tree;
	struct trace *trace;

	(void)state;
	load.threads = 5;
	load.events = 2;
	maker_load(maker, &load);
	trace = read_made(maker);
	assert_int_equal(trace->nr_problems, 0);
	for (int by = PROFILE_BY_FUNCTION; by <= PROFILE_BY_FILE; by++) {
		uint64_t self = 0;

		assert_int_equal(
			profile_flat(trace, everything, (enum profile_by)by, true, &profile), 0);
		for (size_t i = 0; i < profile.nr_rows; i++)
			self += profile.rows[i].cost.self;
		assert_int_equal(self, load.samples);
		profile_release(&profile);
	}
	for (int by_line = 0; by_line < 2; by_line++) {
		assert_int_equal(
			call_tree_build(trace, everything, CALL_TREE_TOP_DOWN, by_line, &tree), 0);
		check_tree(&tree);
		assert_int_equal(tree.nodes[0].total, load.samples);
		call_tree_release(&tree);
		assert_int_equal(
			call_tree_build(trace, everything, CALL_TREE_BOTTOM_UP, by_line, &tree), 0);
		check_tree(&tree);
		call_tree_release(&tree);
	}
	trace_free(trace);
	maker_free(maker);
}

static void test_profile__nothing_recorded(void **state)
{
	struct maker *maker = maker_new();
	struct trace *trace = read_made(maker);
	struct profile profile;
	struct call_tree tree;
	struct stacks stacks;

	(void)state;
	assert_int_equal(profile_flat(trace, everything, PROFILE_BY_LINE, true, &profile), 0);
	assert_int_equal(profile.nr_rows, 0);
	profile_release(&profile);
	assert_int_equal(call_tree_build(trace, everything, CALL_TREE_BOTTOM_UP, true, &tree), 0);
	assert_int_equal(tree.nr_nodes, 1);
	call_tree_release(&tree);
	assert_int_equal(stacks_collect(trace, everything, true, &stacks), 0);
	assert_int_equal(stacks.nr_rows, 0);
	stacks_release(&stacks);
	trace_free(trace);
	maker_free(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profile__recursion_counts_once),
		cmocka_unit_test(test_profile__lines_and_files),
		cmocka_unit_test(test_profile__threads_and_filters),
		cmocka_unit_test(test_call_tree__both_directions),
		cmocka_unit_test(test_call_tree__lines_kept_apart),
		cmocka_unit_test(test_stacks__fold_and_merge),
		cmocka_unit_test(test_profile__sums_agree_on_many_stacks),
		cmocka_unit_test(test_profile__nothing_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
