/* SPDX-License-Identifier: MIT */
/* How much fell on each event and thread: what every percentage is a share of. */
#ifndef PATHPROF_TOOL_RENDER_TOTALS_H
#define PATHPROF_TOOL_RENDER_TOTALS_H

#include "tool/analysis/profile.h"

struct total {
	uint64_t samples, count;
};

struct totals {
	struct total *cells; /* [state][event][thread], then one more column: every thread */
	size_t nr_events, nr_threads;
	uint32_t states; /* that totals_of() counts: 1 << enum sample_state each; 0: all */
};

/** totals_collect - one pass over the samples. 0 or -ENOMEM. totals_release() frees */
int totals_collect(const struct trace *trace, struct totals *ret_totals);
void totals_release(struct totals *totals);

/** totals_of - what fell on an event in a thread; PROFILE_ALL sums */
struct total totals_of(const struct totals *totals, uint32_t event, uint32_t thread);

/** totals_of_states - the same of the states in @states; 0: all */
struct total totals_of_states(const struct totals *totals, uint32_t event, uint32_t thread,
			      uint32_t states);

/** lost_total - overflows that left no sample, of all reasons */
uint64_t lost_total(const struct trace *trace);

/** unit_is_time - are counts of this event nanoseconds? */
bool unit_is_time(const struct trace_event *event);

#endif
