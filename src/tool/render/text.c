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

/* ", gil and waiting" where a section is of some states only. */
static void write_states(const struct text *text, uint32_t states)
{
	unsigned int nr = 0;

	for (unsigned int state = 0; state < NR_SAMPLE_STATES; state++) {
		if (!(states >> state & 1))
			continue;
		fprintf(text->out, "%s%s", nr++ ? "+" : ", ", state_key(state));
	}
}

void text_samples(const struct text *text, uint32_t event, uint32_t thread, uint32_t states,
		  char ret_text[TEXT_SAMPLES_BYTES])
{
	const uint32_t every = (1u << NR_SAMPLE_STATES) - 1, waiting = every << STATE_LOCK & every;
	uint32_t wanted = states ? states : every;
	uint64_t samples = 0, waits = 0;

	if (wanted & ~waiting)
		samples = totals_of_states(&text->totals, event, thread, wanted & ~waiting).samples;
	if (wanted & waiting)
		waits = totals_of_states(&text->totals, event, thread, wanted & waiting).samples;
	if (!waits)
		snprintf(ret_text, TEXT_SAMPLES_BYTES, "%s %s", quantity_exact(samples).text,
			 samples == 1 ? "sample" : "samples");
	else if (!samples)
		snprintf(ret_text, TEXT_SAMPLES_BYTES, "%s %s", quantity_exact(waits).text,
			 waits == 1 ? "wait" : "waits");
	else
		snprintf(ret_text, TEXT_SAMPLES_BYTES, "%s %s and %s %s",
			 quantity_exact(samples).text, samples == 1 ? "sample" : "samples",
			 quantity_exact(waits).text, waits == 1 ? "wait" : "waits");
}

static void section_title(const struct text *text, const struct section *section)
{
	const struct trace_event *event = &text->trace->events[section->event];
	struct total all = totals_of(&text->totals, section->event, PROFILE_ALL);
	char samples[TEXT_SAMPLES_BYTES];

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
	write_states(text, section->states);
	text_samples(text, section->event, section->thread, section->states, samples);
	fprintf(text->out, ": %s, ~%s\n", samples,
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

static int write_section(const struct text *text, uint32_t event, uint32_t thread, uint32_t states)
{
	struct section section = {
		.event = event,
		.thread = thread,
		.states = states,
		.is_time = unit_is_time(&text->trace->events[event]),
		.whole = totals_of_states(&text->totals, event, thread, states),
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

/* An event or a thread of it, then, where that is wanted, each state. */
static int write_state_sections(const struct text *text, uint32_t event, uint32_t thread)
{
	uint32_t states = text->options->states;
	/* One state is all of the section already. */
	bool split = text->options->split_states && (!states || states & (states - 1));
	int rc = write_section(text, event, thread, states);

	for (unsigned int state = 0; state < NR_SAMPLE_STATES && !rc; state++) {
		if (split && (!states || states >> state & 1))
			rc = write_section(text, event, thread, 1u << state);
	}
	return rc;
}

static int write_sections(const struct text *text, uint32_t wanted)
{
	int rc = 0;

	for (uint32_t event = 0; event < text->trace->nr_events && rc == 0; event++) {
		if (wanted != PROFILE_ALL && wanted != event)
			continue;
		rc = write_state_sections(text, event, PROFILE_ALL);
		if (!text->options->per_thread)
			continue;
		for (uint32_t thread = 0; thread < text->trace->nr_threads && rc == 0; thread++)
			rc = write_state_sections(text, event, thread);
	}
	return rc;
}

/* Only some states are wanted, and nothing was in one of them. */
static void write_why_none(const struct text *text, uint32_t event)
{
	uint32_t states = text->options->states;
	bool waits = false;

	if (!states || totals_of_states(&text->totals, event, PROFILE_ALL, states).samples)
		return;
	for (unsigned int state = 0; state < NR_SAMPLE_STATES; state++)
		waits |= (states >> state & 1) && state_is_wait(state);
	fprintf(text->out, "\nNothing was in %s%s.\n",
		states & (states - 1) ? "one of these states" : "that state",
		waits && !text->trace->wall.period_ns
			? "; waiting is recorded with pathprof record --wall"
			: "");
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
	if (rc == 0)
		write_why_none(&text, event);
	totals_release(&text.totals);
	if (rc == -ENOMEM && err && !err->text[0])
		errbuf_set(err, rc, "Cannot write the report: out of memory");
	return rc;
}
