/* SPDX-License-Identifier: MIT */
/* pathprof archive: one compressed file of a recording. */
#include "tool/trace/archive.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tool/cli/commands.h"
#include "tool/cli/output.h"
#include "tool/cli/recording.h"

#define GO_ON (-1)

static int parse(int argc, char **argv, const char **ret_output, const char **ret_path)
{
	const struct option_spec options[] = {
		{'o', "output", OPTION_STRING, "FILE",
		 "The archive, which is whole or not there; -: standard output", ret_output},
		{0},
	};
	const struct command_spec command = {
		.name = "archive",
		.usage = "-o FILE [DIR]",
		.description =
			"Make one compressed file of a recording, to keep or to send. Every "
			"command reads it\nin the place of DIR, which is pathprof.data where "
			"none is given and stays as it is.",
		.examples = "  pathprof archive -o slow.pathprof\n"
			    "  pathprof report slow.pathprof",
		.options = options,
	};
	struct common_options common;
	int operands, status = options_parse(&command, argc, argv, &common, &operands);

	if (status != GO_ON)
		return status;
	if (!*ret_output) {
		complain("archive", "which file? -o FILE; see pathprof archive --help");
		return EXIT_USAGE;
	}
	return recording_path("archive", argc, argv, operands, ret_path);
}

static int write_archive(const char *path, const char *name)
{
	struct output output;
	struct errbuf err;
	int rc = output_open(name, &output, &err);

	if (rc == 0)
		rc = output_end(&output, archive_write(path, fileno(output.file), &err), &err);
	if (rc == 0)
		return EXIT_OK;
	complain("archive", "%s", err.text);
	return EXIT_FAILED;
}

int cmd_archive(int argc, char **argv)
{
	const char *output = NULL, *path;
	int status = parse(argc, argv, &output, &path);

	if (status == GO_ON)
		status = recording_check("archive", path);
	if (status != GO_ON)
		return status;
	if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO)) {
		complain("archive", "an archive is not for a terminal: name a file with -o");
		return EXIT_USAGE;
	}
	return write_archive(path, output);
}
