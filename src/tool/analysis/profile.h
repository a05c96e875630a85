/* SPDX-License-Identifier: MIT */
/*
 * Flat profiles and call trees: pure functions from a trace to results.
 *
 * self: samples whose innermost frame it is; total: samples with it anywhere in the stack, once a
 * sample however often it recurs. _count is the estimated number of the event (ns for time).
 */
#ifndef PATHPROF_TOOL_ANALYSIS_PROFILE_H
#define PATHPROF_TOOL_ANALYSIS_PROFILE_H

#include "tool/trace/trace.h"

struct cost {
	uint64_t self, total;		  /* samples */
	uint64_t self_count, total_count; /* of the event */
};

#define PROFILE_ALL UINT32_MAX

/* Which samples count. */
struct profile_filter {
	uint32_t event;	 /* index; PROFILE_ALL: every event */
	uint32_t thread; /* index; PROFILE_ALL: every thread */
};

enum profile_by {
	PROFILE_BY_FUNCTION,
	PROFILE_BY_LINE, /* file, line and function */
	PROFILE_BY_FILE,
};

struct profile_row {
	uint32_t event;
	uint32_t thread;   /* PROFILE_ALL unless rows are split by thread */
	uint32_t function; /* index; for BY_FILE any function of the file */
	uint32_t line;	   /* BY_LINE: the line; else 0 */
	struct cost cost;
};

/* Rows sorted by event, then (if split) thread, then self, then total, descending, then name. */
struct profile {
	struct profile_row *rows;
	size_t nr_rows;
};

/**
 * profile_flat - a table of rows
 * @per_thread: split rows by thread as well
 * Returns 0 or -ENOMEM. profile_release() frees.
 */
int profile_flat(const struct trace *trace, struct profile_filter filter, enum profile_by by,
		 bool per_thread, struct profile *ret_profile);
void profile_release(struct profile *profile);

/* A call tree node; children linked by index, 0 is the root and "no node". */
struct call_node {
	uint32_t parent, first_child, next_sibling;
	uint32_t function; /* index in trace->functions; 0 for the root */
	uint32_t line;	   /* where lines are kept apart: the frame's line; else 0 */
	uint64_t self, total, self_count, total_count;
};

struct call_tree {
	struct call_node *nodes; /* nodes[0] is the root: totals of everything */
	size_t nr_nodes;
};

enum call_tree_direction {
	CALL_TREE_TOP_DOWN,  /* root: outermost frame first */
	CALL_TREE_BOTTOM_UP, /* root's children: innermost frames, below them their callers; self of
			      * a node: stacks whose outermost frame it is, so total = self +
			      * children */
};

/**
 * call_tree_build - children sorted by total, descending, then name
 * @by_line: keep lines of one function apart
 * Depth is bounded only by the stacks: nothing here recurses. Returns 0 or -ENOMEM.
 */
int call_tree_build(const struct trace *trace, struct profile_filter filter,
		    enum call_tree_direction direction, bool by_line, struct call_tree *ret_tree);
void call_tree_release(struct call_tree *tree);

/* A distinct stack with what fell on it, for exports that want whole stacks. */
struct stack_row {
	uint32_t event, thread; /* thread PROFILE_ALL unless split */
	uint32_t native, python;
	uint64_t samples, count;
};

struct stacks {
	struct stack_row *rows; /* in order of first appearance */
	size_t nr_rows;
};

/**
 * stacks_collect - fold samples into distinct stacks
 * stacks_frames - the frames of a stack, root first, native and Python merged
 *   @frames: node ids, room for @max; returns the whole depth, of which at most @max were written
 */
int stacks_collect(const struct trace *trace, struct profile_filter filter, bool per_thread,
		   struct stacks *ret_stacks);
void stacks_release(struct stacks *stacks);
size_t stacks_frames(const struct trace *trace, uint32_t native, uint32_t python, uint32_t *frames,
		     size_t max);

/* A thread that moves in step with the scheduler's tick: its CPU-timer samples mislead. */
struct in_step {
	uint32_t thread;
	double wakes_per_second;
	double expected_samples; /* cpu_ns / period */
	uint64_t samples;	 /* of the CPU timer */
};

/**
 * in_step_find - threads whose ticks and CPU time differ beyond theory, or that wake in step
 * Only for CPU-timer recordings. Returns the number found, at most @max written.
 */
size_t in_step_find(const struct trace *trace, struct in_step *ret_threads, size_t max);

#endif
