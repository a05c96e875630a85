/* SPDX-License-Identifier: MIT */
/* What a recording lost and could not see, as sentences that begin every report. */
#ifndef PATHPROF_TOOL_RENDER_NOTICES_H
#define PATHPROF_TOOL_RENDER_NOTICES_H

#include "tool/analysis/profile.h"

struct notices {
	char **sentences;
	size_t nr;
};

/** notices_collect - the gravest first. 0 or -ENOMEM. notices_release() frees */
int notices_collect(const struct trace *trace, struct notices *ret_notices);
void notices_release(struct notices *notices);

#endif
