/* SPDX-License-Identifier: MIT */
/*
 * The subcommands. To add one, `foo`:
 *   1. src/tool/cli/foo.c with cmd_foo(), its own options table and help text
 *   2. its line in the table of main.c and its declaration here
 *   3. docs/man/pathprof-foo.1, and the completion in docs/completion/
 *   4. tests/run/foo_*.py
 */
#ifndef PATHPROF_TOOL_CLI_COMMANDS_H
#define PATHPROF_TOOL_CLI_COMMANDS_H

enum exit_status {
	EXIT_OK = 0,
	EXIT_NO = 1,	      /* a question answered "no" */
	EXIT_USAGE = 2,	      /* the command line is wrong */
	EXIT_FAILED = 125,    /* pathprof itself failed */
	EXIT_NOT_RUN = 126,   /* record: the command cannot be run */
	EXIT_NOT_FOUND = 127, /* record: the command is not found */
};

/* Each takes its own arguments, argv[0] being the subcommand's name, and returns the status. */
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_archive(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
