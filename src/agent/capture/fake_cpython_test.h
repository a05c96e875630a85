/* SPDX-License-Identifier: MIT */
/*
 * An interpreter made of a table, in the place of core/cpython: tests say what the walk finds and
 * what stands at each address. One for each thread.
 */
#ifndef PATHPROF_AGENT_CAPTURE_FAKE_CPYTHON_TEST_H
#define PATHPROF_AGENT_CAPTURE_FAKE_CPYTHON_TEST_H

#include "core/cpython/cpython.h"
#include "core/event/event.h"

#define FAKE_CODES   64
#define FAKE_FRAMES  1100
#define FAKE_ADDRESS 0x1000 /* of code 0; they are 256 bytes apart */

struct fake_code {
	uint64_t identity; /* 0: unreadable */
	const char *name;
	const char *file;
	const char *line_table;
	uint32_t first_line;
	bool uncopyable; /* gone between reading and copying */
};

struct fake_cpython {
	uint64_t thread_state; /* 0: never ran Python */
	bool holds_lock;
	bool runs_jitted;
	struct cpython_frame frames[FAKE_FRAMES]; /* leaf first */
	size_t nr_frames;
	enum cpython_end end; /* where there is room for all frames */
	struct fake_code codes[FAKE_CODES];
	void (*during_walk)(void); /* called in the walk, once */

	enum cpython_late_found late_found;

	/* what was asked */
	unsigned int late_looks;
	uint32_t tid;
	unsigned int calls; /* of any function */
	unsigned int reads; /* of code objects */
};

extern __thread struct fake_cpython fake;

static inline uint64_t fake_address(uint32_t code)
{
	return FAKE_ADDRESS + 256ull * code;
}

#endif
