/* SPDX-License-Identifier: MIT */
/*
 * Annotated source:
 *
 *   Self%     ~Self  Total%    ~Total   Line  Source of app/parser.py
 *                                         39
 *                                         40  def parse(text):
 *   61.0%    6.10 s   61.0%    6.10 s     41      return json.loads(text)
 *
 * Lines far from any sample are left out. The text is today's file: when it changed after the
 * recording, is gone, or is shorter than the lines recorded, that is said.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/render/source_file.h"
#include "tool/render/text_priv.h"

#define CONTEXT_LINES 5 /* shown around each line with samples */

/* A line's cost: several functions may share a line. */
struct line_cost {
	uint32_t line;
	struct cost cost;
};

struct annotation {
	struct line_cost *costs; /* by line */
	size_t nr_costs;
	struct source_file file;
};

/* Is this the file that was asked for: by its whole path, or by the end of it? */
static bool is_wanted(const char *file, const char *wanted)
{
	size_t length = strlen(file), nr_wanted = strlen(wanted);

	if (length < nr_wanted || strcmp(file + length - nr_wanted, wanted) != 0)
		return false;
	return length == nr_wanted || file[length - nr_wanted - 1] == '/';
}

int text_source_find(struct text *text)
{
	const char *wanted = text->options->source, *found = NULL;

	for (size_t i = 0; i < text->trace->nr_functions; i++) {
		const char *file = text->trace->functions[i].file;

		if (!file || !is_wanted(file, wanted))
			continue;
		/* The whole path wins over ends of others. */
		if (strcmp(file, wanted) == 0) {
			found = file;
			break;
		}
		if (found && strcmp(found, file) != 0)
			return errbuf_set(text->err, -EINVAL,
					  "'%s' is the end of several files' names, such as '%s' "
					  "and '%s': give more of it",
					  wanted, found, file);
		found = file;
	}
	if (!found)
		return errbuf_set(text->err, -ENOENT, "The recording has no file named '%s'",
				  wanted);
	text->source_path = found;
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line_cost *left = a, *right = b;

	return (left->line > right->line) - (left->line < right->line);
}

static void add_cost(struct cost *sum, const struct cost *cost)
{
	sum->self += cost->self;
	sum->total += cost->total;
	sum->self_count += cost->self_count;
	sum->total_count += cost->total_count;
}

static int gather_costs(const struct text *text, const struct profile *profile,
			struct annotation *annotation)
{
	struct line_cost *costs = calloc(profile->nr_rows + 1, sizeof(*costs));
	size_t nr = 0, kept = 0;

	if (!costs)
		return -ENOMEM;
	for (size_t i = 0; i < profile->nr_rows; i++) {
		const struct profile_row *row = &profile->rows[i];
		const char *file = text->trace->functions[row->function].file;

		if (file && strcmp(file, text->source_path) == 0)
			costs[nr++] = (struct line_cost){row->line, row->cost};
	}
	qsort(costs, nr, sizeof(*costs), compare_lines);
	for (size_t i = 0; i < nr; i++) {
		if (kept > 0 && costs[kept - 1].line == costs[i].line)
			add_cost(&costs[kept - 1].cost, &costs[i].cost);
		else
			costs[kept++] = costs[i];
	}
	annotation->costs = costs;
	annotation->nr_costs = kept;
	return 0;
}

static void say_state(const struct text *text, const struct annotation *annotation, int loaded)
{
	const struct trace *trace = text->trace;
	uint32_t last = annotation->costs[annotation->nr_costs - 1].line;
	char sentence[256] = "";

	if (loaded < 0)
		snprintf(sentence, sizeof(sentence),
			 "The source cannot be read here: %s. Its lines "
			 "are shown by number.",
			 loaded == -EINVAL ? "it is no regular file" : strerror(-loaded));
	else if (trace->clock_offset_ns &&
		 annotation->file.modified_ns > (int64_t)trace->start_ns + trace->clock_offset_ns)
		snprintf(sentence, sizeof(sentence),
			 "The source was changed after the recording "
			 "began: the lines may be others.");
	else if (last > annotation->file.nr_lines)
		snprintf(sentence, sizeof(sentence),
			 "The source has %zu lines now, and samples fell "
			 "on line %" PRIu32 ": it is not what ran.",
			 annotation->file.nr_lines, last);
	if (sentence[0])
		display_paragraph(text->out, sentence, 0, text->options->width);
}

static void write_line(const struct text *text, const struct section *section,
		       const struct annotation *annotation, uint32_t line, const struct cost *cost)
{
	size_t width = text->options->width;
	const char *source = line > 0 && line <= annotation->file.nr_lines
				     ? annotation->file.lines[line - 1]
				     : NULL;

	if (cost)
		text_numbers(text, section, cost);
	else
		display_pad(text->out, NUMBER_COLUMNS);
	fprintf(text->out, "%6" PRIu32, line);
	if (source && source[0]) {
		fputs("  ", text->out);
		display_write(text->out, source,
			      width == 0		    ? SIZE_MAX
			      : width > NUMBER_COLUMNS + 18 ? width - NUMBER_COLUMNS - 8
							    : 10,
			      DISPLAY_CUT_END);
	}
	putc('\n', text->out);
}

/* The lines around the costs; a gap is one line. */
static void write_lines(const struct text *text, const struct section *section,
			const struct annotation *annotation)
{
	uint64_t next = 1; /* the first line not yet written */

	for (size_t i = 0; i < annotation->nr_costs; i++) {
		uint32_t line = annotation->costs[i].line;
		uint64_t from = line > CONTEXT_LINES ? line - CONTEXT_LINES : 1, until;

		/* Without a text, or past its end, only lines with samples say something. */
		if (line > annotation->file.nr_lines)
			from = line;
		if (from > next && i > 0 && annotation->file.nr_lines > 0) {
			display_pad(text->out, NUMBER_COLUMNS);
			fputs("     .\n", text->out);
		}
		for (next = from > next ? from : next; next < line; next++)
			write_line(text, section, annotation, (uint32_t)next, NULL);
		write_line(text, section, annotation, line, &annotation->costs[i].cost);
		until = (uint64_t)line + CONTEXT_LINES;
		if (i + 1 < annotation->nr_costs && annotation->costs[i + 1].line <= until)
			until = annotation->costs[i + 1].line - 1;
		for (next = (uint64_t)line + 1; next <= until && next <= annotation->file.nr_lines;
		     next++)
			write_line(text, section, annotation, (uint32_t)next, NULL);
	}
}

static void annotate(const struct text *text, const struct section *section,
		     struct annotation *annotation)
{
	int loaded;

	if (annotation->nr_costs == 0) {
		display_paragraph(text->out, "No sample fell on this file.", 0, 0);
		return;
	}
	loaded = source_file_load(text->trace->working_directory, text->source_path,
				  &annotation->file);
	say_state(text, annotation, loaded);
	text_number_heads(text);
	fputs("  Line  ", text->out);
	display_write(text->out, text->source_path, SIZE_MAX, DISPLAY_CUT_END);
	putc('\n', text->out);
	write_lines(text, section, annotation);
	source_file_release(&annotation->file);
}

int text_source(const struct text *text, const struct section *section)
{
	struct profile_filter filter = {section->event, section->thread};
	struct annotation annotation = {0};
	struct profile profile;
	int rc = profile_flat(text->trace, filter, PROFILE_BY_LINE, false, &profile);

	if (rc < 0)
		return rc;
	rc = gather_costs(text, &profile, &annotation);
	if (rc == 0) {
		putc('\n', text->out);
		annotate(text, section, &annotation);
	}
	free(annotation.costs);
	profile_release(&profile);
	return rc;
}
