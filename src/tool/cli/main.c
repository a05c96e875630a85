/* SPDX-License-Identifier: MIT */
/* The table of subcommands, and nothing else. */
#include "tool/cli/commands.h"

#include <stdio.h>

int main(void)
{
	return EXIT_USAGE;
}
