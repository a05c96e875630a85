/* SPDX-License-Identifier: MIT */
/* pathprof report: what a recording holds, as text for people or JSON for scripts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool/cli/commands.h"
#include "tool/cli/output.h"
#include "tool/cli/pager.h"
#include "tool/cli/recording.h"
#include "tool/render/render.h"

#define GO_ON		  (-1)
#define NOT_GIVEN	  UINT64_MAX
#define LIMIT_DEFAULT	  30 /* rows: about a screen */
#define MIN_SHARE_UNSET	  -1.0
#define MIN_SHARE_DEFAULT 0.5 /* percent */
#define WIDTH_DEFAULT	  80
#define WIDTH_MIN	  40 /* narrower terminals break lines themselves */

/* The command line, as it was given. */
struct report {
	struct common_options common;
	const char *by, *event, *source, *path, *state;
	uint32_t states;
	bool split_states;
	uint64_t limit;
	double min_share; /* percent */
	bool json, threads, tree, inverted;
};

static int usage(const char *sentence)
{
	complain("report", "%s; see pathprof report --help", sentence);
	return EXIT_USAGE;
}

static int parse(int argc, char **argv, struct report *report)
{
	const struct option_spec options[] = {
		{0, "by", OPTION_ONCE, "LIST",
		 "Tables: function (the default), line, file; several with commas", &report->by},
		{0, "tree", OPTION_FLAG, NULL, "The tree of calls instead of tables",
		 &report->tree},
		{0, "inverted", OPTION_FLAG, NULL,
		 "The tree from the innermost functions up to their callers", &report->inverted},
		{0, "threads", OPTION_FLAG, NULL, "Each thread as well", &report->threads},
		{0, "event", OPTION_ONCE, "NAME", "Only this event of the recording",
		 &report->event},
		{0, "state", OPTION_ONCE, "LIST",
		 "Only threads that were running, gil (running with the interpreter lock), "
		 "gil-wait (waiting for it), runnable (ready, without a CPU), waiting, "
		 "unseen (not running, but nobody looked); several with commas",
		 &report->state},
		{0, "split-state", OPTION_FLAG, NULL, "Each of these states as well",
		 &report->split_states},
		{0, "source", OPTION_ONCE, "FILE",
		 "The text of this source file, with what fell on its lines", &report->source},
		{0, "limit", OPTION_NUMBER, "N", "Rows of a table: 30; 0: all", &report->limit},
		{0, "min-share", OPTION_DOUBLE, "PERCENT",
		 "Fold branches of the tree below this share: 0.5", &report->min_share},
		{0, "json", OPTION_FLAG, NULL, "Everything as one JSON document", &report->json},
		{0},
	};
	const struct command_spec command = {
		.name = "report",
		.usage = "[OPTION...] [DIR]",
		.description =
			"Show where the time of a recording went, or whatever event it counted. "
			"DIR "
			"is the\nrecording's directory or an archive of it, pathprof.data where "
			"none "
			"is given.\nThe report begins with what was lost or could not be seen.",
		.examples = "  pathprof report\n"
			    "  pathprof report --tree --min-share=2%\n"
			    "  pathprof report --by=line,file --limit=10 slow.data\n"
			    "  pathprof report --source=parser.py\n"
			    "  pathprof report --json | jq '.functions[0]'",
		.options = options,
	};
	int operands, status = options_parse(&command, argc, argv, &report->common, &operands);

	if (status != GO_ON)
		return status;
	return recording_path("report", argc, argv, operands, &report->path);
}

static int parse_by(const char *list, struct text_options *text)
{
	if (!list) {
		text->by_function = true;
		return GO_ON;
	}
	for (;;) {
		size_t length = strcspn(list, ",");

		if (length == 8 && strncmp(list, "function", length) == 0)
			text->by_function = true;
		else if (length == 4 && strncmp(list, "line", length) == 0)
			text->by_line = true;
		else if (length == 4 && strncmp(list, "file", length) == 0)
			text->by_file = true;
		else
			return usage("--by takes function, line, file, or several with commas");
		if (!list[length])
			return GO_ON;
		list += length + 1;
	}
}

/* Words of --state; "running" has "gil" in it. */
static int parse_states(struct report *report)
{
	const char *list = report->state;

	while (list && *list) {
		size_t length = strcspn(list, ",");
		unsigned int state = 0;

		while (state < NR_SAMPLE_STATES && (strlen(state_key(state)) != length ||
						    strncmp(state_key(state), list, length) != 0))
			state++;
		if (state == NR_SAMPLE_STATES)
			return usage("--state takes running, gil, gil-wait, runnable, waiting, "
				     "unseen, or several with commas");
		report->states |= 1u << state;
		if (state == STATE_RUNNING)
			report->states |= 1u << STATE_LOCKED;
		list += length + (list[length] == ',');
	}
	return report->state && !report->states ? usage("--state takes the name of a state")
						: GO_ON;
}

static int check(const struct report *report, const struct text_options *text)
{
	bool tree = report->tree || report->inverted;

	if (report->json &&
	    (report->by || tree || report->threads || report->event || report->source ||
	     report->limit != NOT_GIVEN || report->min_share >= 0))
		return usage("--json is always the whole document: no choice goes with it but "
			     "--state and --split-state");
	if (report->source && (report->by || tree))
		return usage("--source goes neither with --by nor with a tree");
	if (tree && text->by_file)
		return usage("a tree is by function or by line, not by file");
	if (report->limit != NOT_GIVEN && (tree || report->source))
		return usage("--limit is for tables: a tree is cut by --min-share, a source is "
			     "whole");
	if (report->min_share >= 0 && !tree)
		return usage("--min-share goes with --tree or --inverted; tables are cut by "
			     "--limit");
	if (report->min_share > 100)
		return usage("--min-share takes at most 100%");
	return GO_ON;
}

static unsigned int terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if ((width == 0 || width > 10000) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	if (width == 0 || width > 10000)
		width = WIDTH_DEFAULT;
	return width < WIDTH_MIN ? WIDTH_MIN : (unsigned int)width;
}

static int choose(const struct report *report, struct text_options *text)
{
	int status = parse_by(report->by, text);
	uint64_t limit = report->limit == NOT_GIVEN ? LIMIT_DEFAULT : report->limit;

	if (status == GO_ON)
		status = check(report, text);
	text->color = color_wanted(&report->common, STDOUT_FILENO);
	text->width = terminal_width();
	text->limit = limit > UINT32_MAX ? 0 : (unsigned int)limit;
	text->per_thread = report->threads;
	text->tree = report->tree || report->inverted;
	text->inverted = report->inverted;
	text->min_share = (report->min_share < 0 ? MIN_SHARE_DEFAULT : report->min_share) / 100;
	text->source = report->source;
	text->event = report->event;
	text->states = report->states;
	text->split_states = report->split_states;
	return status;
}

static int write_report(const struct report *report, const struct text_options *text,
			const struct trace *trace, bool paged)
{
	struct json_options json = {report->states, report->split_states};
	struct output output;
	struct errbuf err;
	int rc = output_open(NULL, &output, &err);

	if (rc == 0)
		rc = report->json ? json_write_states(trace, &json, output.file, &err)
				  : text_write(trace, text, output.file, &err);
	if (rc == 0)
		rc = output_commit(&output, &err);
	/* A reader who has left the pager has seen enough. */
	if (rc == 0 || (rc == -EPIPE && paged))
		return EXIT_OK;
	complain("report", "%s", err.text);
	/* What was asked for is not in the recording. */
	return rc == -ENOENT || rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

int cmd_report(int argc, char **argv)
{
	struct report report = {.limit = NOT_GIVEN, .min_share = MIN_SHARE_UNSET};
	struct text_options text = {0};
	struct pager pager = {0};
	struct trace *trace;
	int status = parse(argc, argv, &report);

	if (status == GO_ON)
		status = parse_states(&report);
	if (status == GO_ON)
		status = choose(&report, &text);
	if (status == GO_ON)
		status = recording_open("report", &report.common, report.path, &trace);
	if (status != GO_ON)
		return status;
	pager_start(&pager, &report.common);
	status = write_report(&report, &text, trace, pager.pid != 0);
	if (!pager_finish(&pager)) {
		complain("report", "the pager '%s' cannot be run: see PAGER and PATHPROF_PAGER",
			 pager.command);
		status = write_report(&report, &text, trace, false);
	}
	trace_free(trace);
	return status;
}
