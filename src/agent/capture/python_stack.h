/* SPDX-License-Identifier: MIT */
/* A walked Python stack becomes a node. Private to capture/. */
#ifndef PATHPROF_AGENT_CAPTURE_PYTHON_STACK_H
#define PATHPROF_AGENT_CAPTURE_PYTHON_STACK_H

#include "agent/capture/capture.h"

/* What a stack was interned to. */
struct python_chain {
	uint32_t node;	   /* 0: the thread has no Python frames */
	uint32_t degraded; /* 1 << enum degraded_reason, for each that holds */
};

/**
 * python_stack_intern - the chain of the frames in slot->walk
 * @nr_frames: frames in slot->walk, leaf first; at most FRAMES_MAX
 * @end: how the walk ended; decides about a marker at the root
 *
 * Uses and updates slot->stack, which holds the thread's last stack. Returns false where the table
 * is full; *ret_chain is then untouched. Signal-safe.
 */
bool python_stack_intern(struct capture *capture, struct slot *slot, size_t nr_frames,
			 enum cpython_end end, struct python_chain *ret_chain);

/** python_stack_unreadable - the chain of a stack that must not be read. Signal-safe. */
bool python_stack_unreadable(struct capture *capture, enum degraded_reason reason,
			     struct python_chain *ret_chain);

#endif
