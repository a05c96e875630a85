/* SPDX-License-Identifier: MIT */
/* pathprof export: a recording in another tool's format. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/cli/commands.h"
#include "tool/cli/output.h"
#include "tool/cli/recording.h"
#include "tool/render/render.h"

#define GO_ON	    (-1)
#define DESCRIPTION 2048 /* bytes: a paragraph and the table of formats */

struct export
{
	struct common_options common;
	const char *format, *output, *event, *path;
};

static void describe(char *text, size_t room)
{
	size_t used = (size_t)snprintf(
		text, room,
		"Write a recording in another tool's format. DIR is the recording's directory or "
		"an "
		"archive of\nit, pathprof.data where none is given. Without -o, formats that are "
		"text go to standard output.\n\nFormats:");

	for (size_t i = 0; exporters[i] && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "\n  %-11s %s",
					 exporters[i]->name, exporters[i]->description);
}

static int parse(int argc, char **argv, struct export *export)
{
	char description[DESCRIPTION];
	const struct option_spec options[] = {
		{0, "format", OPTION_STRING, "FORMAT", "One of the formats above", &export->format},
		{0, "event", OPTION_ONCE, "NAME", "Only this event of the recording",
		 &export->event},
		{'o', "output", OPTION_STRING, "FILE",
		 "Write to this file, which is whole or not there; -: standard output",
		 &export->output},
		{0},
	};
	const struct command_spec command = {
		.name = "export",
		.usage = "--format=FORMAT [-o FILE] [DIR]",
		.description = description,
		.examples = "  pathprof export --format=flamegraph -o profile.html\n"
			    "  pathprof export --format=speedscope -o profile.speedscope.json\n"
			    "  pathprof export --format=collapsed | flamegraph.pl >profile.svg",
		.options = options,
	};
	int operands, status;

	describe(description, sizeof(description));
	status = options_parse(&command, argc, argv, &export->common, &operands);
	if (status != GO_ON)
		return status;
	return recording_path("export", argc, argv, operands, &export->path);
}

static int find_exporter(const char *name, const struct exporter **ret_exporter)
{
	char names[256] = "";
	size_t used = 0;

	for (size_t i = 0; exporters[i]; i++) {
		if (name && strcmp(name, exporters[i]->name) == 0) {
			*ret_exporter = exporters[i];
			return GO_ON;
		}
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 i ? ", " : "", exporters[i]->name);
	}
	if (name)
		complain("export", "unknown format '%s'; the formats are %s", name, names);
	else
		complain("export",
			 "which format? --format=FORMAT with one of %s; "
			 "see pathprof export --help",
			 names);
	return EXIT_USAGE;
}

static bool to_stdout(const struct export *export)
{
	return !export->output || strcmp(export->output, "-") == 0;
}

/* The formats have no place for losses; the page has. */
static void say_losses(const struct export *export, const struct exporter *exporter,
		       const struct trace *trace)
{
	if (export->common.quiet || !exporter->to_terminal)
		return;
	if (trace->nr_lost > 0 || trace->nr_problems > 0 || !trace->complete)
		complain("export", "the recording is not whole, which this format does not show: "
				   "see pathprof report");
}

static int keep_event(const struct export *export, struct trace *trace)
{
	struct errbuf err;

	if (!export->event || !trace_keep_event(trace, export->event, &err))
		return GO_ON;
	complain("export", "%s", err.text);
	return EXIT_USAGE;
}

static int write_export(const struct export *export, const struct exporter *exporter,
			const struct trace *trace)
{
	struct output output;
	struct errbuf err;
	int rc = output_open(export->output, &output, &err);

	if (rc == 0)
		rc = output_end(&output, exporter->write(trace, output.file, &err), &err);
	if (rc == 0)
		return EXIT_OK;
	complain("export", "%s", err.text);
	return EXIT_FAILED;
}

int cmd_export(int argc, char **argv)
{
	struct export export = {0};
	const struct exporter *exporter = NULL;
	struct trace *trace;
	int status = parse(argc, argv, &export);

	if (status == GO_ON)
		status = find_exporter(export.format, &exporter);
	if (status != GO_ON)
		return status;
	if (!exporter->to_terminal && to_stdout(&export) && isatty(STDOUT_FILENO)) {
		complain("export", "%s is not for a terminal: name a file with -o", exporter->name);
		return EXIT_USAGE;
	}
	status = recording_open("export", &export.common, export.path, &trace);
	if (status != GO_ON)
		return status;
	status = keep_event(&export, trace);
	if (status == GO_ON) {
		say_losses(&export, exporter, trace);
		status = write_export(&export, exporter, trace);
	}
	trace_free(trace);
	return status;
}
