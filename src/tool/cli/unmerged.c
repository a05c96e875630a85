/* SPDX-License-Identifier: MIT */
/* Lets the table of main.c link until every command's branch is merged; then it goes. */
#include "tool/cli/commands.h"

#include "tool/cli/options.h"

#define UNMERGED(name)                                              \
	__attribute__((weak)) int cmd_##name(int argc, char **argv) \
	{                                                           \
		(void)argc;                                         \
		complain(argv[0], "not part of this build");        \
		return EXIT_FAILED;                                 \
	}

UNMERGED(record)
UNMERGED(list)
UNMERGED(doctor)
