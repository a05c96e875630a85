/* SPDX-License-Identifier: MIT */
/* Inside the room: what the analyses share. */
#ifndef PATHPROF_TOOL_ANALYSIS_ANALYSIS_PRIV_H
#define PATHPROF_TOOL_ANALYSIS_ANALYSIS_PRIV_H

#include "tool/analysis/profile.h"

/*
 * A stack, frame by frame from the leaf: merge.c says how the two chains become one. At least one
 * frame comes: an empty stack is node 0, "[no Python frame]".
 */
struct stack_walk {
	const struct trace_node *nodes;
	uint32_t native, python; /* what is to come */
	bool empty;		 /* nothing came yet */
};

void stack_walk_init(struct stack_walk *walk, const struct trace *trace, uint32_t native,
		     uint32_t python);

/** stack_walk_next - false: the root has been passed */
static inline bool stack_walk_next(struct stack_walk *walk, uint32_t *ret_node)
{
	if (walk->native) {
		*ret_node = walk->native;
		walk->native = walk->nodes[walk->native].parent;
	} else if (walk->python) {
		*ret_node = walk->python;
		walk->python = walk->nodes[walk->python].parent;
	} else if (walk->empty) {
		*ret_node = 0;
	} else {
		return false;
	}
	walk->empty = false;
	return true;
}

static inline bool filter_takes(struct profile_filter filter, const struct trace_sample *sample)
{
	return (filter.event == PROFILE_ALL || filter.event == sample->event) &&
	       (filter.thread == PROFILE_ALL || filter.thread == sample->thread) &&
	       (!filter.states || filter.states >> sample->state & 1);
}

/* What rows are made by. */
struct node_keys {
	uint32_t *of_node;  /* by node: the key */
	uint32_t *function; /* by key: the function, or any function of the file */
	uint32_t *line;	    /* by key: the line where lines are kept apart, else 0 */
	size_t nr_keys;	    /* keys are below */
};

/** node_keys_make - 0 or -ENOMEM; node_keys_release() frees. Cost: about 10 ns a node by line. */
int node_keys_make(const struct trace *trace, enum profile_by by, struct node_keys *ret_keys);
void node_keys_release(struct node_keys *keys);

/**
 * ranks_of_names - the place of each function in the order of names, then files, then lines
 * Returns nr_functions numbers, the caller's to free, or NULL: out of memory.
 */
uint32_t *ranks_of_names(const struct trace *trace);

#endif
