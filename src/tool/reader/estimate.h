/* SPDX-License-Identifier: MIT */
/* What waits that were not looked at are told as. Private to reader. */
#ifndef PATHPROF_TOOL_READER_ESTIMATE_H
#define PATHPROF_TOOL_READER_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event/event.h"

#define ESTIMATE_LENGTHS 24 /* octaves: below 2 us, below 4 us, .., 8 s and more */

/* What a look found. */
struct estimate_place {
	uint32_t python; /* a node */
	enum wait_kind kind;
};

/* Waits of one sort: as long, and begun alike. */
struct estimate_sort {
	uint64_t unseen_ns;	    /* of those not looked at since the last that was */
	struct estimate_place last; /* that was; kind 0: none */
};

/* Waits of a thread, or of threads that have ended: [preempted][length]. Zero: none yet. */
struct estimate {
	struct estimate_sort sorts[2][ESTIMATE_LENGTHS];
};

/** estimate_unseen - a wait has ended that was not looked at */
void estimate_unseen(struct estimate *estimate, bool preempted, uint64_t length_ns);

/**
 * estimate_seen - a wait has ended that was looked at
 * @ended: of threads that have ended; the first look of a sort stands for theirs, too
 * Returns what it stands for, in ns: its own length or more.
 */
uint64_t estimate_seen(struct estimate *estimate, struct estimate *ended, bool preempted,
		       uint64_t length_ns, const struct estimate_place *place);

/**
 * estimate_finish - a thread has ended: give out what no look stands for
 * @ended: takes what none of its looks can stand for; NULL: they are given out, too
 * @each: told a time and its place, in which python is 0 where nothing is known of it
 */
void estimate_finish(struct estimate *estimate, struct estimate *ended,
		     void (*each)(void *user, const struct estimate_place *place, uint64_t count),
		     void *user);

#endif
