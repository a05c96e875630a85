/* SPDX-License-Identifier: MIT */
/* The recording that a command is about: its one operand, or the default. */
#ifndef PATHPROF_TOOL_CLI_RECORDING_H
#define PATHPROF_TOOL_CLI_RECORDING_H

#include "tool/cli/options.h"
#include "tool/trace/trace.h"

#define RECORDING_DEFAULT "pathprof.data"

/**
 * recording_path - the operand that options_parse() found
 * Returns -1 to go on, or the status to exit with: more than one was said to be wrong.
 */
int recording_path(const char *command, int argc, char **argv, int operands, const char **ret_path);

/**
 * recording_check - is the default recording there, where that is meant?
 * Returns -1 to go on, or the status: it was said what to do first.
 */
int recording_check(const char *command, const char *path);

/** recording_open - read it, with a bar if that takes long. -1 to go on, or the status */
int recording_open(const char *command, const struct common_options *common, const char *path,
		   struct trace **ret_trace);

#endif
