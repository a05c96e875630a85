/* SPDX-License-Identifier: MIT */
/*
 * Long output through a pager, as git does it: $PATHPROF_PAGER, else $PAGER, else less; empty or
 * "cat" means none; only where stdout is a terminal, and not with --no-pager.
 */
#ifndef PATHPROF_TOOL_CLI_PAGER_H
#define PATHPROF_TOOL_CLI_PAGER_H

#include <sys/types.h>

#include "tool/cli/options.h"

struct pager {
	pid_t pid; /* 0: none */
};

/**
 * pager_start - from here on stdout goes to the pager, if there is to be one
 * Ask about the terminal (width, colour) before. A pager that cannot be started is no error.
 */
void pager_start(struct pager *pager, const struct common_options *common);

/**
 * pager_finish - end the output and wait until the reader has left the pager
 * A reader who leaves early is no write error.
 */
void pager_finish(struct pager *pager);

#endif
