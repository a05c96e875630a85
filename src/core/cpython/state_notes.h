/* SPDX-License-Identifier: MIT */
/*
 * Whose the thread states are that a scan came by: a program's hundred threads are then found with
 * one scan, and not with one each.
 */
#ifndef PATHPROF_CORE_CPYTHON_STATE_NOTES_H
#define PATHPROF_CORE_CPYTHON_STATE_NOTES_H

#include <stdint.h>

#define STATE_NOTES 1024 /* by thread id, which programs get one after the other */

/* Zeroed at first; of one target. */
struct state_notes {
	uint32_t scan; /* number of the last one */
	struct {
		uint32_t tid, scan;
		uint64_t state; /* 0: the thread has several */
	} of[STATE_NOTES];
};

#endif
