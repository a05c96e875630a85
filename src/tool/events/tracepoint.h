/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints as events: "syscalls:sys_enter_openat".
 *
 * Their numbers are in tracefs. Which of them may signal the thread that meets them is a question
 * of what the thread does then: it must not be waiting, and what the signal itself does must not
 * meet the tracepoint again without end.
 */
#ifndef PATHPROF_TOOL_EVENTS_TRACEPOINT_H
#define PATHPROF_TOOL_EVENTS_TRACEPOINT_H

#include "tool/events/events.h"

/** tracepoint_is_name - has it the form GROUP:NAME, in the letters that tracepoints have? */
bool tracepoint_is_name(const char *name);

/** tracepoint_refuse - 0, or -ENOTSUP with a sentence: it belongs to waiting */
int tracepoint_refuse(const char *name, struct errbuf *err);

/**
 * tracepoint_number - what perf_event_open(2) takes as its config
 * Returns 0; -ENOENT: no such tracepoint; another negative errno: tracefs cannot be read. All
 * with a sentence.
 */
int tracepoint_number(const char *name, uint64_t *ret_number, struct errbuf *err);

/**
 * tracepoint_period_min - the shortest period that does not keep itself going
 * The signal's own way through the kernel meets many tracepoints, some of them a few times.
 */
uint64_t tracepoint_period_min(const char *name);

#endif
