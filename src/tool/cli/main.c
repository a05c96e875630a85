/* SPDX-License-Identifier: MIT */
/* The table of subcommands, and nothing else. */
#include "tool/cli/commands.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/cli/options.h"
#include "tool/cli/output.h"
#include "tool/events/suggest.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static const struct command commands[] = {
	{"record", cmd_record, "Run a program and record where its time goes"},
	{"report", cmd_report, "Show where time went, by function, line, file or call path"},
	{"export", cmd_export, "Write a recording in another tool's format, or as an HTML page"},
	{"archive", cmd_archive, "Make one compressed file of a recording"},
	{"list", cmd_list, "List the events that this machine can count"},
	{"doctor", cmd_doctor, "Say what works here, what does not, and what changes it"},
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
	fputs("Usage: pathprof COMMAND [OPTION...] [ARG...]\n"
	      "       pathprof COMMAND --help\n\n"
	      "Execution-path profiler for Linux.\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fputs("\nExamples:\n"
	      "  pathprof record -- python3 app.py\n"
	      "  pathprof report\n"
	      "  pathprof export --format=flamegraph -o profile.html\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int unknown_command(const char *name)
{
	const char *names[NR_COMMANDS + 1] = {NULL};
	const char *nearest;

	for (size_t i = 0; i < NR_COMMANDS; i++)
		names[i] = commands[i].name;
	nearest = suggest(name, names);
	if (nearest)
		complain(NULL, "unknown command '%s' (did you mean '%s'?); see pathprof --help",
			 name, nearest);
	else
		complain(NULL, "unknown command '%s'; see pathprof --help", name);
	return EXIT_USAGE;
}

static int help_for(const char *name)
{
	const struct command *command = find_command(name);
	char copy[16]; /* of a name in the table */
	char help[] = "--help";
	char *argv[] = {copy, help, NULL};

	if (!command)
		return unknown_command(name);
	snprintf(copy, sizeof(copy), "%s", command->name);
	return command->run(2, argv);
}

/*
 * A standard descriptor that came closed must not become a file of ours, where messages would be
 * written. Close-on-exec: the recorded program finds it closed.
 */
static void hold_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* writing fails as before */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What cannot be written is a failure of every command; one that has failed has said why. */
static int check_output(const char *name, int status)
{
	struct errbuf err;

	if ((status != EXIT_OK && status != EXIT_NO) || output_check(&err) == 0)
		return status;
	complain(find_command(name) ? name : NULL, "%s", err.text);
	return EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	const struct command *command;
	const char *name = argv[1];

	if (strcmp(name, "help") == 0 && argc > 2)
		return help_for(argv[2]);
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_help(stdout);
		return EXIT_OK;
	}
	if (strcmp(name, "--version") == 0) {
		puts("pathprof " PATHPROF_VERSION);
		return EXIT_OK;
	}
	if (name[0] == '-') {
		complain(NULL, "unknown option '%s'; see pathprof --help", name);
		return EXIT_USAGE;
	}
	command = find_command(name);
	return command ? command->run(argc - 1, argv + 1) : unknown_command(name);
}

int main(int argc, char **argv)
{
	hold_standard_descriptors();
	/* All text is UTF-8; of a locale only the widths of characters matter here. */
	if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	return check_output(argv[1], run(argc, argv));
}
