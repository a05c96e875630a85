/* SPDX-License-Identifier: MIT */
/*
 * Flat profiles: what fell on each function, line or file.
 *
 * Stacks are folded first; then each distinct stack is walked once, leaf to root, and gives its
 * whole weight to every key it meets, once: a key remembers the last stack that met it.
 * A key is a number per node: equal numbers are one row.
 * Cost: about 20 ns a sample, 5 ns a frame of a distinct stack, sorting the rows.
 */
#include "tool/analysis/analysis_priv.h"

#include <errno.h>
#include <stdlib.h>

struct tally {
	struct cost cost;
	uint32_t stack;	 /* the last that met it, + 1 */
	uint32_t listed; /* it is in `touched` */
};

struct flat {
	const struct trace *trace;
	struct stacks stacks;
	struct node_keys keys;
	struct tally *tallies; /* by key */
	uint32_t *touched;     /* keys of the group at hand */
	size_t nr_touched;
	struct profile profile;
	size_t room;
	uint32_t *ranks;
};

static int prepare(struct flat *flat, enum profile_by by)
{
	int rc = node_keys_make(flat->trace, by, &flat->keys);

	if (rc)
		return rc;
	flat->tallies = calloc(flat->keys.nr_keys + 1, sizeof(*flat->tallies));
	flat->touched = calloc(flat->keys.nr_keys + 1, sizeof(*flat->touched));
	flat->ranks = ranks_of_names(flat->trace);
	return flat->tallies && flat->touched && flat->ranks ? 0 : -ENOMEM;
}

static void add_stack(struct flat *flat, const struct stack_row *row, uint32_t stack)
{
	struct stack_walk walk;
	bool leaf = true;
	uint32_t node;

	stack_walk_init(&walk, flat->trace, row->native, row->python);
	while (stack_walk_next(&walk, &node)) {
		uint32_t key = flat->keys.of_node[node];
		struct tally *tally = &flat->tallies[key];

		if (leaf) {
			tally->cost.self += row->samples;
			tally->cost.self_count += row->count;
			leaf = false;
		}
		if (tally->stack == stack)
			continue;
		tally->stack = stack;
		tally->cost.total += row->samples;
		tally->cost.total_count += row->count;
		if (!tally->listed) {
			tally->listed = 1;
			flat->touched[flat->nr_touched++] = key;
		}
	}
}

/* Turn the group's tallies into rows and make them ready for the next group. */
static int emit_rows(struct flat *flat, uint32_t event, uint32_t thread)
{
	struct profile *profile = &flat->profile;

	if (profile->nr_rows + flat->nr_touched > flat->room) {
		size_t room = 2 * flat->room + flat->nr_touched;
		struct profile_row *rows = reallocarray(profile->rows, room, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		profile->rows = rows;
		flat->room = room;
	}
	for (size_t i = 0; i < flat->nr_touched; i++) {
		uint32_t key = flat->touched[i];
		struct tally *tally = &flat->tallies[key];

		profile->rows[profile->nr_rows++] = (struct profile_row){
			.event = event,
			.thread = thread,
			.function = flat->keys.function[key],
			.line = flat->keys.line[key],
			.cost = tally->cost,
		};
		tally->cost = (struct cost){0};
		tally->listed = 0;
	}
	flat->nr_touched = 0;
	return 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct stack_row *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_rows(const void *a, const void *b, void *user)
{
	const struct profile_row *x = a, *y = b;
	const uint32_t *ranks = user;

	if (x->event != y->event)
		return compare_numbers(x->event, y->event);
	if (x->thread != y->thread)
		return compare_numbers(x->thread, y->thread);
	if (x->cost.self_count != y->cost.self_count)
		return compare_numbers(y->cost.self_count, x->cost.self_count);
	if (x->cost.total_count != y->cost.total_count)
		return compare_numbers(y->cost.total_count, x->cost.total_count);
	if (x->cost.self != y->cost.self)
		return compare_numbers(y->cost.self, x->cost.self);
	if (x->cost.total != y->cost.total)
		return compare_numbers(y->cost.total, x->cost.total);
	if (x->function != y->function)
		return compare_numbers(ranks[x->function], ranks[y->function]);
	return compare_numbers(x->line, y->line);
}

/* Rows of every (event, thread) group, whose stacks must stand together. */
static int add_groups(struct flat *flat, bool per_thread)
{
	struct stacks *stacks = &flat->stacks;
	const struct stack_row *row = stacks->rows;
	int rc = 0;

	if (stacks->nr_rows && (per_thread || flat->trace->nr_events > 1))
		qsort(stacks->rows, stacks->nr_rows, sizeof(*stacks->rows), compare_groups);
	for (size_t i = 0; i < stacks->nr_rows && !rc; i++) {
		add_stack(flat, &row[i], (uint32_t)i + 1);
		if (i + 1 == stacks->nr_rows || compare_groups(&row[i], &row[i + 1]))
			rc = emit_rows(flat, row[i].event, row[i].thread);
	}
	return rc;
}

int profile_flat(const struct trace *trace, struct profile_filter filter, enum profile_by by,
		 bool per_thread, struct profile *ret_profile)
{
	struct flat flat = {.trace = trace};
	int rc;

	rc = stacks_collect(trace, filter, per_thread, &flat.stacks);
	rc = rc ? rc : prepare(&flat, by);
	rc = rc ? rc : add_groups(&flat, per_thread);
	if (!rc && flat.profile.nr_rows)
		qsort_r(flat.profile.rows, flat.profile.nr_rows, sizeof(*flat.profile.rows),
			compare_rows, flat.ranks);
	if (rc)
		profile_release(&flat.profile);
	else
		*ret_profile = flat.profile;
	stacks_release(&flat.stacks);
	node_keys_release(&flat.keys);
	free(flat.tallies);
	free(flat.touched);
	free(flat.ranks);
	return rc;
}

void profile_release(struct profile *profile)
{
	free(profile->rows);
	*profile = (struct profile){0};
}
