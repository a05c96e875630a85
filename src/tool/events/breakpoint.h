/* SPDX-License-Identifier: MIT */
/* Breakpoints as events. */
#ifndef PATHPROF_TOOL_EVENTS_BREAKPOINT_H
#define PATHPROF_TOOL_EVENTS_BREAKPOINT_H

#include "tool/events/events.h"

/**
 * breakpoint_encode - the encoding of a name that begins with EVENT_BREAKPOINT
 * Returns 0, or -ENOENT with a sentence.
 */
int breakpoint_encode(const char *name, struct perf_kind *ret_kind, struct errbuf *err);

#endif
