/* SPDX-License-Identifier: MIT */
/* The frames of one stack after the other, in memory that grows to the deepest. */
#ifndef PATHPROF_TOOL_RENDER_STACK_FRAMES_H
#define PATHPROF_TOOL_RENDER_STACK_FRAMES_H

#include "tool/analysis/profile.h"

struct stack_frames {
	uint32_t *nodes; /* root first */
	size_t nr, room;
};

/** stack_frames_load - replace the frames by those of this stack. 0 or -ENOMEM; begin zeroed */
int stack_frames_load(struct stack_frames *frames, const struct trace *trace, uint32_t native,
		      uint32_t python);

/** stack_frames_mark - what a thread in this state waited for, as a last frame; none if it ran */
int stack_frames_mark(struct stack_frames *frames, const struct trace *trace, unsigned int state);

void stack_frames_release(struct stack_frames *frames);

#endif
