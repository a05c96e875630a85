/* SPDX-License-Identifier: MIT */
/* A bar on stderr while something takes longer than a second; only on a terminal. */
#ifndef PATHPROF_TOOL_CLI_PROGRESS_H
#define PATHPROF_TOOL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *label;
	uint64_t start_ns, drawn_ns; /* drawn_ns 0: not drawn yet */
	bool wanted;
};

/** progress_start - @quiet: show nothing */
void progress_start(struct progress *progress, const char *label, bool quiet);

/** progress_show - a trace_progress callback; @progress is a struct progress */
void progress_show(void *progress, uint64_t done, uint64_t total);

/** progress_finish - take the bar away */
void progress_finish(struct progress *progress);

#endif
