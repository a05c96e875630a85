/* SPDX-License-Identifier: MIT */
/*
 * One stack of a sample's two chains.
 *
 * A sample has a native chain (all native frames of the thread, the interpreter's own among them)
 * and a Python chain. Until native frames are recorded and can be told apart, the native ones stand
 * below the Python ones, as what the innermost Python frame called:
 *
 *     root   python:  module > run > parse        native:  read > ksys_read
 *     merged          module > run > parse > read > ksys_read   leaf
 *
 * A stack without any frame is node 0, "[no Python frame]".
 */
#include "tool/analysis/analysis_priv.h"

void stack_walk_init(struct stack_walk *walk, const struct trace *trace, uint32_t native,
		     uint32_t python)
{
	*walk = (struct stack_walk){
		.nodes = trace->nodes, .native = native, .python = python, .empty = true};
}

size_t stacks_frames(const struct trace *trace, uint32_t native, uint32_t python, uint32_t *frames,
		     size_t max)
{
	size_t depth = 0, at = 0;
	struct stack_walk walk;
	uint32_t node;

	stack_walk_init(&walk, trace, native, python);
	while (stack_walk_next(&walk, &node))
		depth++;
	stack_walk_init(&walk, trace, native, python);
	for (; stack_walk_next(&walk, &node); at++)
		if (depth - 1 - at < max)
			frames[depth - 1 - at] = node;
	return depth;
}
