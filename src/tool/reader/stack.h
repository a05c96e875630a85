/* SPDX-License-Identifier: MIT */
/* The Python stack of another process's thread, from outside. Private to reader. */
#ifndef PATHPROF_TOOL_READER_STACK_H
#define PATHPROF_TOOL_READER_STACK_H

#include "core/base/load.h"
#include "core/cpython/cpython.h"
#include "core/memory/memory.h"

/* A code object met in one look. */
struct stack_code {
	uint64_t address;
	uint64_t copy;	   /* address of our copy of it; 0: unreadable */
	uint64_t identity; /* 0: unreadable */
	uint32_t id;	   /* in the definition table, once interned */
};

/* One look at a thread: room for it is kept from look to look. */
struct stack {
	struct reader reader;
	struct cpython cpython;
	uint8_t *room; /* for the copies of one look */
	size_t used;
	enum cpython_end end;
	bool lock_is_held;
	size_t nr_frames, nr_codes;
	struct cpython_frame frames[FRAMES_MAX]; /* leaf first */
	uint32_t code_of[FRAMES_MAX];		 /* by frame: index in codes */
	struct stack_code codes[FRAMES_MAX];
};

/* What a look at a thread leaves for the next one: both are checked, or only save time. */
struct stack_memo {
	uint64_t state; /* the interpreter's state of the thread; 0: not known */
	uint32_t nr_pages;
	uint64_t pages[LOAD_PAGES_NAMED];
};

/** stack_new - room to look at @pid; NULL: out of memory */
struct stack *stack_new(pid_t pid);
void stack_free(struct stack *stack);

/**
 * stack_interpreter - whose stacks are read from now on
 * Returns false where the interpreter's layout is not known, or there is none.
 */
bool stack_interpreter(struct stack *stack, const struct memory_interpreter *interpreter);

/**
 * stack_read - copy the thread's frames and what identifies their code
 * @memo: of the last look at this thread; zeroed: none
 * What was read is of one moment only if the thread stood still, which the caller checks before
 * stack_intern(). Returns 0, -EFAULT: the process cannot be read.
 */
int stack_read(struct stack *stack, uint32_t tid, struct stack_memo *memo);

/**
 * stack_lock_is_held - did any thread hold the interpreter lock when the stack was read?
 * While none does, none waits for it. True where that is not known.
 */
bool stack_lock_is_held(const struct stack *stack);

/**
 * stack_intern - the chain of the stack that was read
 * Returns 0 with *ret_node 0 where the thread has no Python frames; -ENOSPC: the table is full.
 */
int stack_intern(struct stack *stack, struct memory *memory, uint32_t *ret_node);

#endif
