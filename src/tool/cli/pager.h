/* SPDX-License-Identifier: MIT */
/*
 * Long output through a pager, as git does it: $PATHPROF_PAGER, else $PAGER, else less; empty or
 * "cat" means none; only where stdout is a terminal, and not with --no-pager.
 */
#ifndef PATHPROF_TOOL_CLI_PAGER_H
#define PATHPROF_TOOL_CLI_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

#include "tool/cli/options.h"

struct pager {
	pid_t pid;	     /* 0: none */
	int screen;	     /* what was stdout; valid with a pager */
	const char *command; /* borrowed from the environment */
};

/**
 * pager_start - from here on stdout goes to the pager, if there is to be one
 * Ask about the terminal (width, colour) before. A pager that cannot be started is no error.
 */
void pager_start(struct pager *pager, const struct common_options *common);

/**
 * pager_finish - end the output and wait until the reader has left the pager
 * A reader who leaves early is no write error. Returns false where the shell could not run the
 * pager: then stdout is the terminal again, and what was written has to be written anew.
 */
bool pager_finish(struct pager *pager);

#endif
