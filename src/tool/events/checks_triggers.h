/* SPDX-License-Identifier: MIT */
/* The rungs of the ladder, and events on request, as `pathprof doctor` shows them. */
#ifndef PATHPROF_TOOL_EVENTS_CHECKS_TRIGGERS_H
#define PATHPROF_TOOL_EVENTS_CHECKS_TRIGGERS_H

#include "tool/events/events.h"

/** checks_triggers - one call of @fn a check; @sigtrap: what perf_probe_sigtrap() said */
void checks_triggers(enum perf_sigtrap sigtrap, check_fn fn, void *user);

#endif
