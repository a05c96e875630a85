/* SPDX-License-Identifier: MIT */
#include "tool/cli/recording.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tool/cli/commands.h"
#include "tool/cli/progress.h"

int recording_path(const char *command, int argc, char **argv, int operands, const char **ret_path)
{
	if (argc - operands > 1) {
		complain(command,
			 "one recording at a time: '%s' is one too many; "
			 "see pathprof %s --help",
			 argv[operands + 1], command);
		return EXIT_USAGE;
	}
	*ret_path = argc > operands ? argv[operands] : RECORDING_DEFAULT;
	return -1;
}

int recording_check(const char *command, const char *path)
{
	if (strcmp(path, RECORDING_DEFAULT) != 0 || access(path, F_OK) == 0 || errno != ENOENT)
		return -1;
	complain(command,
		 "There is no recording '%s' here: run 'pathprof record -- COMMAND' first, "
		 "or name a recording",
		 path);
	return EXIT_FAILED;
}

int recording_open(const char *command, const struct common_options *common, const char *path,
		   struct trace **ret_trace)
{
	struct progress progress;
	struct errbuf err;
	int rc = recording_check(command, path);

	if (rc != -1)
		return rc;
	progress_start(&progress, "Reading the recording", common->quiet);
	rc = trace_open(path, progress_show, &progress, ret_trace, &err);
	progress_finish(&progress);
	if (rc == 0)
		return -1;
	complain(command, "%s", err.text);
	return EXIT_FAILED;
}
