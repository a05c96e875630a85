/* SPDX-License-Identifier: MIT */
/* The Python stack of another process's thread, from outside. Private to reader. */
#ifndef PATHPROF_TOOL_READER_STACK_H
#define PATHPROF_TOOL_READER_STACK_H

#include "core/cpython/remote.h"
#include "core/memory/memory.h"

/* A code object met in one look. */
struct stack_code {
	uint64_t address;
	uint64_t identity;	  /* 0: unreadable */
	uint32_t id;		  /* in the definition table; 0: it is not there yet */
	struct cpython_code code; /* where it is not; its bytes are in the look's room, at: */
	const uint8_t *text;	  /* name, file, line table */
};

/* One look at a thread: room for it is kept from look to look. */
struct stack {
	pid_t pid;
	struct cpython cpython;
	struct cpython_remote remote;
	struct cpython_remote_stack walk;
	uint8_t *room; /* for copies of names and line tables */
	size_t used;
	size_t nr_codes;
	struct cpython_frame frames[FRAMES_MAX]; /* leaf first */
	uint32_t code_of[FRAMES_MAX];		 /* by frame: index in codes */
	struct stack_code codes[FRAMES_MAX];
};

/** stack_new - room to look at @pid; NULL: out of memory */
struct stack *stack_new(pid_t pid);
void stack_free(struct stack *stack);

/** stack_interpreter - whose stacks are read from now on */
void stack_interpreter(struct stack *stack, const struct memory_interpreter *interpreter);

/**
 * stack_read - copy the thread's frames, what identifies their code, and what the table lacks
 * @state: the thread state that the last look found, checked first; 0: none; updated
 * What was read is of one moment only if the thread stood still, which the caller checks before
 * stack_intern(). Returns 0, -EFAULT: the process cannot be read.
 */
int stack_read(struct stack *stack, struct memory *memory, uint32_t tid, uint64_t *state);

/** stack_waits_for_lock - cpython_remote_waits_for_lock() of the look at hand */
bool stack_waits_for_lock(struct stack *stack, uint64_t state, uint64_t futex);

/**
 * stack_intern - the chain of the stack that was read
 * Returns 0 with *ret_node 0 where the thread has no Python frames; -ENOSPC: the table is full.
 */
int stack_intern(struct stack *stack, struct memory *memory, uint32_t *ret_node);

#endif
