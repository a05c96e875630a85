/* SPDX-License-Identifier: MIT */
#include "tool/render/stack_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stack_frames_load(struct stack_frames *frames, const struct trace *trace, uint32_t native,
		      uint32_t python)
{
	size_t depth = stacks_frames(trace, native, python, frames->nodes, frames->room);

	if (depth > frames->room) {
		size_t room = 2 * depth;
		uint32_t *nodes = realloc(frames->nodes, room * sizeof(*nodes));

		if (!nodes)
			return -ENOMEM;
		frames->nodes = nodes;
		frames->room = room;
		depth = stacks_frames(trace, native, python, nodes, room);
	}
	frames->nr = depth;
	return 0;
}

int stack_frames_mark(struct stack_frames *frames, const struct trace *trace, unsigned int state)
{
	uint32_t *nodes;

	if (!trace->state_nodes[state])
		return 0;
	if (frames->nr == frames->room) {
		nodes = realloc(frames->nodes, 2 * (frames->room + 1) * sizeof(*nodes));
		if (!nodes)
			return -ENOMEM;
		frames->nodes = nodes;
		frames->room = 2 * (frames->room + 1);
	}
	frames->nodes[frames->nr++] = trace->state_nodes[state];
	return 0;
}

void stack_frames_release(struct stack_frames *frames)
{
	free(frames->nodes);
	memset(frames, 0, sizeof(*frames));
}
