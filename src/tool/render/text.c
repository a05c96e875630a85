/* SPDX-License-Identifier: MIT */
/*
 * The text report: header and notices, then for each event (and thread, where they are kept apart)
 * a section: its tables, its tree, or one file's source. What is estimated is marked with '~':
 * times and counts are, being samples times the period.
 */
#include <errno.h>
#include <string.h>

#include "tool/render/text_priv.h"

static int find_event(const struct text *text, uint32_t *ret_event)
{
	*ret_event = PROFILE_ALL;
	if (!text->options->event)
		return 0;
	return trace_find_event(text->trace, text->options->event, ret_event, text->err);
}

static void section_title(const struct text *text, const struct section *section)
{
	const struct trace_event *event = &text->trace->events[section->event];
	struct total all = totals_of(&text->totals, section->event, PROFILE_ALL);

	putc('\n', text->out);
	display_write(text->out, event->name, SIZE_MAX, DISPLAY_CUT_END);
	if (section->thread != PROFILE_ALL) {
		const struct trace_thread *thread = &text->trace->threads[section->thread];

		fprintf(text->out, ", thread %u ", thread->tid);
		display_write(text->out, thread->name ? thread->name : "", SIZE_MAX,
			      DISPLAY_CUT_END);
		fprintf(text->out, " (%s of the event)",
			quantity_percent(section->whole.count, all.count).text);
	}
	fprintf(text->out, ": %s %s, ~%s\n", quantity_exact(section->whole.samples).text,
		section->whole.samples == 1 ? "sample" : "samples",
		quantity_of(section->whole.count, section->is_time).text);
}

static int section_tables(const struct text *text, const struct section *section)
{
	const struct text_options *options = text->options;
	int rc = 0;

	if (options->by_function)
		rc = text_table(text, section, PROFILE_BY_FUNCTION);
	if (rc == 0 && options->by_line)
		rc = text_table(text, section, PROFILE_BY_LINE);
	if (rc == 0 && options->by_file)
		rc = text_table(text, section, PROFILE_BY_FILE);
	return rc;
}

static int write_section(const struct text *text, uint32_t event, uint32_t thread)
{
	struct section section = {
		.event = event,
		.thread = thread,
		.is_time = unit_is_time(&text->trace->events[event]),
		.whole = totals_of(&text->totals, event, thread),
	};

	if (section.whole.samples == 0)
		return 0;
	section_title(text, &section);
	if (text->options->source)
		return text_source(text, &section);
	if (text->options->tree)
		return text_tree(text, &section);
	return section_tables(text, &section);
}

static int write_sections(const struct text *text, uint32_t wanted)
{
	int rc = 0;

	for (uint32_t event = 0; event < text->trace->nr_events && rc == 0; event++) {
		if (wanted != PROFILE_ALL && wanted != event)
			continue;
		rc = write_section(text, event, PROFILE_ALL);
		if (!text->options->per_thread)
			continue;
		for (uint32_t thread = 0; thread < text->trace->nr_threads && rc == 0; thread++)
			rc = write_section(text, event, thread);
	}
	return rc;
}

int text_write(const struct trace *trace, const struct text_options *options, FILE *out,
	       struct errbuf *err)
{
	struct text text = {.trace = trace, .options = options, .out = out, .err = err};
	uint32_t event;
	int rc;

	if (err)
		err->text[0] = 0;
	rc = find_event(&text, &event);
	if (rc == 0 && options->source)
		rc = text_source_find(&text);
	if (rc < 0)
		return rc;
	rc = totals_collect(trace, &text.totals);
	if (rc == 0)
		rc = text_header(&text);
	if (rc == 0)
		rc = write_sections(&text, event);
	totals_release(&text.totals);
	if (rc == -ENOMEM && err && !err->text[0])
		errbuf_set(err, rc, "Cannot write the report: out of memory");
	return rc;
}
