/* SPDX-License-Identifier: MIT */
/*
 * Events by the words of a PMU's driver: "cpu/event=0xc2,umask=1/u", "cpu_core/cycles/".
 * The kernel describes each PMU in sysfs: `type`, the fields of its codes in `format/`, the names
 * of some events in `events/`.
 */
#ifndef PATHPROF_TOOL_EVENTS_PMU_H
#define PATHPROF_TOOL_EVENTS_PMU_H

#include "tool/events/events.h"

#define PMU_ROOT "/sys/bus/event_source/devices"

/**
 * pmu_encode - the encoding of PMU/TERM,TERM../MODIFIERS
 * @root: PMU_ROOT, or what a test puts in its place
 * Returns 0; -ENODEV: no such PMU here; -ENOENT: a term is not known. Both with a sentence.
 */
int pmu_encode(const char *root, const char *name, struct perf_kind *ret_kind, struct errbuf *err);

#endif
