/* SPDX-License-Identifier: MIT */
/* What a standing thread waits for. Private to reader. */
#ifndef PATHPROF_TOOL_READER_WAIT_KIND_H
#define PATHPROF_TOOL_READER_WAIT_KIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the interpreter's lock lies: a futex in here is it. */
struct lock_place {
	uint64_t start, bytes;
};

enum stance {
	STANCE_UNKNOWN, /* /proc does not tell */
	STANCE_RUNS,	/* or is ready to run */
	STANCE_LOCK,	/* waits for the interpreter lock */
	STANCE_WAITS,
};

/**
 * wait_kind_read - what the thread stands in, by /proc/PID/task/TID/syscall
 * @ret_futex: address of the futex that it is blocked on; 0: on none
 * The kernel reads a blocked thread's registers and does not touch it.
 */
enum stance wait_kind_read(pid_t pid, uint32_t tid, const struct lock_place *lock,
			   uint64_t *ret_futex);

#endif
