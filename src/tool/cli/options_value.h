/* SPDX-License-Identifier: MIT */
/* The values of options: from the text on the command line to numbers. */
#ifndef PATHPROF_TOOL_CLI_OPTIONS_VALUE_H
#define PATHPROF_TOOL_CLI_OPTIONS_VALUE_H

#include "tool/cli/options.h"

/**
 * option_value_parse - store what the text says into *@value, whose C type @type defines
 * Returns NULL, or what a value of that type looks like ("a number, such as ..."), *@value then
 * being untouched. Not for OPTION_FLAG.
 */
const char *option_value_parse(enum option_type type, const char *text, void *value);

#endif
