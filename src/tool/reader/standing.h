/* SPDX-License-Identifier: MIT */
/* Does a thread stand, and did it run since? By /proc alone. Private to reader. */
#ifndef PATHPROF_TOOL_READER_STANDING_H
#define PATHPROF_TOOL_READER_STANDING_H

#include "tool/reader/wait_kind.h"

struct standing {
	enum stance stance;
	uint64_t turns; /* on a CPU that the thread had: equal numbers, it did not run between */
};

/** standing_read - false: the thread is gone, or /proc tells nothing */
bool standing_read(pid_t pid, uint32_t tid, const struct lock_place *lock,
		   struct standing *ret_standing);

/** standing_threads - call @each with every thread of @pid; false: there is no such process */
bool standing_threads(pid_t pid, void (*each)(void *user, uint32_t tid), void *user);

#endif
