/* SPDX-License-Identifier: MIT */
/*
 * A tick becomes a sample. The heart of the agent; never sees a siginfo, so that tests tick by
 * hand.
 */
#ifndef PATHPROF_AGENT_CAPTURE_CAPTURE_H
#define PATHPROF_AGENT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cpython/cpython.h"
#include "core/memory/memory.h"

/* What the handler needs; made before the first tick, constant afterwards but where @late says. */
struct capture {
	struct memory memory;
	struct cpython cpython;
	struct cpython_late late; /* an interpreter may be loaded yet: found in the handler */
	uint32_t no_interpreter;  /* an interpreter is there but cannot be read: degraded */
};

struct tick {
	uint64_t time_ns;    /* MONOTONIC, taken first in the handler */
	const void *context; /* ucontext_t of the interrupted code, NULL for hand-made ticks */
	uint32_t event;	     /* index of the event */
	uint32_t overrun;    /* ticks merged into this one, beyond it */
	uint64_t count;	     /* the sample's weight */
	bool faults_blocked; /* the interrupted mask blocks SIGSEGV or SIGBUS */
};

/**
 * capture_tick - walk, intern, append
 * @slot: the calling thread's slot
 *
 * Every tick ends as a sample or as a counted loss. No allocation, no lock, no system call but a
 * futex wake when a packet is full; less than 1 KiB of stack. Signal-safe.
 */
void capture_tick(struct capture *capture, struct slot *slot, const struct tick *tick);

#endif
