/* SPDX-License-Identifier: MIT */
/* When threads of a process leave and take CPUs: the kernel's switch records. Private to reader. */
#ifndef PATHPROF_TOOL_READER_SWITCHES_H
#define PATHPROF_TOOL_READER_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/errbuf.h"

enum switch_kind {
	SWITCH_IN,
	SWITCH_OUT,
	SWITCH_PREEMPTED, /* out, and ready to go on */
	SWITCH_FORK,	  /* the thread was made */
	SWITCH_EXIT,
};

struct switch_record {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t tid;
	enum switch_kind kind;
};

struct switches; /* switches.c */

/**
 * switches_open - records of every thread that @pid has now and will have
 * Returns 0, or a negative errno with a sentence: perf events are refused, or their memory is.
 */
int switches_open(pid_t pid, struct switches **ret_switches, struct errbuf *err);

/** switches_free - NULL is allowed */
void switches_free(struct switches *switches);

/**
 * switches_take - what was recorded since the last call, sorted by time
 * @ret_records: valid until the next call
 * @ret_lapped: true: the rings were too short, and there were more records
 */
size_t switches_take(struct switches *switches, const struct switch_record **ret_records,
		     bool *ret_lapped);

/**
 * switches_moved - was anything of @tid recorded since the last switches_take()?
 * Whoever read the thread's memory before this call, and after a switches_take() that said the
 * thread is off its CPU, knows by `false` that it stood still meanwhile.
 */
bool switches_moved(struct switches *switches, uint32_t tid);

#endif
