/* SPDX-License-Identifier: MIT */
#include "tool/cli/recording.h"

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

int recording_open(const char *command, const struct common_options *common, const char *path,
		   struct trace **ret_trace)
{
	struct progress progress;
	struct errbuf err;
	int rc;

	progress_start(&progress, "Reading the recording", common->quiet);
	rc = trace_open(path, progress_show, &progress, ret_trace, &err);
	progress_finish(&progress);
	if (rc == 0)
		return -1;
	complain(command, "%s", err.text);
	return EXIT_FAILED;
}
