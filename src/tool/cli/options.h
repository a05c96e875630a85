/* SPDX-License-Identifier: MIT */
/*
 * Option parsing for every subcommand: a table per command, from which parsing, --help and the
 * check of the man pages come. Options that every command has (-q, -v, --color, --no-pager,
 * --help, --version) are added by options_parse().
 */
#ifndef PATHPROF_TOOL_CLI_OPTIONS_H
#define PATHPROF_TOOL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/errbuf.h"

enum option_type {
	OPTION_FLAG,	/* bool *: set to true */
	OPTION_STRING,	/* const char **: borrowed from argv; given twice: the last */
	OPTION_ONCE,	/* as OPTION_STRING, but given twice is an error; starts as NULL */
	OPTION_NUMBER,	/* uint64_t *: decimal, k/M/G multiply by 1000 */
	OPTION_COUNT,	/* as OPTION_NUMBER, but not 0 */
	OPTION_BYTES,	/* uint64_t *: K/M/G multiply by 1024 */
	OPTION_SECONDS, /* uint64_t *: nanoseconds, from decimal seconds; suffix ms, s, m, h */
	OPTION_DOUBLE,	/* double *: percent sign allowed and dropped */
	OPTION_LIST,	/* struct option_list *: texts in their order, borrowed from argv */
};

#define OPTION_LIST_MAX 64

struct option_list {
	const char *texts[OPTION_LIST_MAX];
	unsigned int nr;
};

struct option_spec {
	char short_name; /* 0: none */
	const char *long_name;
	enum option_type type;
	const char *argument; /* for the help: "DIR"; NULL for flags */
	const char *help;
	void *value;
};

enum color_mode {
	COLOR_AUTO,
	COLOR_ALWAYS,
	COLOR_NEVER,
};

struct common_options {
	bool quiet;
	unsigned int verbose;
	enum color_mode color; /* NO_COLOR is taken into account by color_wanted() */
	bool no_pager;
};

struct command_spec {
	const char *name;		   /* "record" */
	const char *usage;		   /* "[OPTION...] -- COMMAND [ARG...]" */
	const char *description;	   /* a paragraph */
	const char *examples;		   /* ends the help; NULL: none */
	const struct option_spec *options; /* ends with long_name NULL */
	bool stop_at_operand;		   /* the first operand ends the options (record) */
};

/**
 * options_parse - parse argv by the command's table
 * @ret_operands: index in argv of the first operand (argv is permuted, "--" dropped)
 * Returns -1 to go on; else the exit status to return with (help or version was printed, or a
 * usage error was said on stderr).
 */
int options_parse(const struct command_spec *command, int argc, char **argv,
		  struct common_options *ret_common, int *ret_operands);

/** color_wanted - shall output on this descriptor be coloured? */
bool color_wanted(const struct common_options *common, int fd);

/** complain - "pathprof COMMAND: SENTENCE" on stderr */
void complain(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
