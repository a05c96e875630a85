/* SPDX-License-Identifier: MIT */
/*
 * Annotated source:
 *
 *   Self%     ~Self  Total%    ~Total   Line  Source of app/parser.py
 *                                         39
 *                                         40  def parse(text):
 *   61.0%    6.10 s   61.0%    6.10 s     41      return json.loads(text)
 *
 * Lines far from any sample are left out; "..." stands for them. The text is today's file: when it
 * changed after the recording, is gone, or is shorter than the lines recorded, that is said.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/render/source_file.h"
#include "tool/render/stack_frames.h"
#include "tool/render/text_priv.h"

#define CONTEXT_LINES 5 /* shown around each line with samples */

/* A line's cost: several functions may share a line. */
struct line_cost {
	uint32_t line;
	size_t stamp; /* of the stack that was added last */
	struct cost cost;
};

struct annotation {
	struct line_cost *costs; /* by line */
	size_t nr_costs;
	struct stack_frames frames;
	struct source_file file;
};

/* Is this the file that was asked for: by its whole path, or by the end of it, "./" or not? */
static bool is_wanted(const char *file, const char *wanted)
{
	size_t length = strlen(file), nr_wanted;

	while (strncmp(wanted, "./", 2) == 0)
		wanted += 2;
	nr_wanted = strlen(wanted);
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

/* For each function, whether it is of the file. NULL: out of memory. */
static bool *find_functions(const struct text *text)
{
	const struct trace *trace = text->trace;
	bool *is_ours = calloc(trace->nr_functions + 1, sizeof(*is_ours));

	for (size_t i = 0; is_ours && i < trace->nr_functions; i++) {
		const char *file = trace->functions[i].file;

		is_ours[i] = file && strcmp(file, text->source_path) == 0;
	}
	return is_ours;
}

/* A row for each line that any node of the file stands on, by line. */
static int gather_lines(const struct trace *trace, const bool *is_ours,
			struct annotation *annotation)
{
	struct line_cost *costs = calloc(trace->nr_nodes + 1, sizeof(*costs));
	size_t nr = 0, kept = 0;

	if (!costs)
		return -ENOMEM;
	for (size_t i = 0; i < trace->nr_nodes; i++) {
		if (is_ours[trace->nodes[i].function] && trace->nodes[i].line)
			costs[nr++].line = trace->nodes[i].line;
	}
	qsort(costs, nr, sizeof(*costs), compare_lines);
	for (size_t i = 0; i < nr; i++) {
		if (kept == 0 || costs[kept - 1].line != costs[i].line)
			costs[kept++].line = costs[i].line;
	}
	annotation->costs = costs;
	annotation->nr_costs = kept;
	return 0;
}

static void add_stack(const struct annotation *annotation, const struct trace *trace,
		      const bool *is_ours, const struct stack_row *row, size_t stamp)
{
	const struct stack_frames *frames = &annotation->frames;

	for (size_t i = 0; i < frames->nr; i++) {
		const struct trace_node *node = &trace->nodes[frames->nodes[i]];
		struct line_cost key = {.line = node->line}, *found;

		if (!is_ours[node->function] || !node->line)
			continue;
		found = bsearch(&key, annotation->costs, annotation->nr_costs,
				sizeof(*annotation->costs), compare_lines);
		if (found->stamp != stamp) {
			found->cost.total += row->samples;
			found->cost.total_count += row->count;
		}
		found->stamp = stamp;
		if (i + 1 == frames->nr) {
			found->cost.self += row->samples;
			found->cost.self_count += row->count;
		}
	}
}

/* Keep the lines that something of this section fell on. */
static void keep_used(struct annotation *annotation)
{
	size_t kept = 0;

	for (size_t i = 0; i < annotation->nr_costs; i++) {
		if (annotation->costs[i].cost.total > 0)
			annotation->costs[kept++] = annotation->costs[i];
	}
	annotation->nr_costs = kept;
}

/* Not from the flat profile: a line that stands twice in a stack, in a function and in the
 * generator on the same line, counts once. */
static int gather_costs(const struct text *text, const struct section *section,
			struct annotation *annotation)
{
	struct profile_filter filter = {section->event, section->thread, section->states, false};
	bool *is_ours = find_functions(text);
	struct stacks stacks = {0};
	int rc = is_ours ? gather_lines(text->trace, is_ours, annotation) : -ENOMEM;

	if (rc == 0)
		rc = stacks_collect(text->trace, filter, false, &stacks);
	for (size_t i = 0; i < stacks.nr_rows && rc == 0; i++) {
		rc = stack_frames_load(&annotation->frames, text->trace, stacks.rows[i].native,
				       stacks.rows[i].python);
		if (rc == 0)
			add_stack(annotation, text->trace, is_ours, &stacks.rows[i], i + 1);
	}
	keep_used(annotation);
	stack_frames_release(&annotation->frames);
	if (stacks.rows)
		stacks_release(&stacks);
	free(is_ours);
	return rc;
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

static void write_gap(const struct text *text)
{
	display_pad(text->out, NUMBER_COLUMNS);
	fputs("   ...\n", text->out);
}

/* The lines around the costs; what is left out, at the ends too, is one line. */
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
		if (from > next && annotation->file.nr_lines >= next)
			write_gap(text);
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
	if (next <= annotation->file.nr_lines)
		write_gap(text);
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
	struct annotation annotation = {0};
	int rc = gather_costs(text, section, &annotation);

	if (rc == 0) {
		putc('\n', text->out);
		annotate(text, section, &annotation);
	}
	free(annotation.costs);
	return rc;
}
