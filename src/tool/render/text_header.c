/* SPDX-License-Identifier: MIT */
/* What was recorded, how, and what of it was lost or never seen. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/render/json_parts.h"
#include "tool/render/notices.h"
#include "tool/render/text_priv.h"

#define LABEL_COLUMNS 11 /* "Recording  " */

/* A labelled line, which breaks between words where the terminal is narrow. */
static int field(const struct text *text, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int field(const struct text *text, const char *label, const char *format, ...)
{
	char *line = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&line, format, args);
	va_end(args);
	if (length < 0)
		return -ENOMEM;
	fprintf(text->out, "%-*s", LABEL_COLUMNS, label);
	display_paragraph(text->out, line, LABEL_COLUMNS, text->options->width);
	free(line);
	return 0;
}

static int write_command(const struct text *text)
{
	char *line = command_line(text->trace);

	if (!line)
		return -ENOMEM;
	fprintf(text->out, "%-*s", LABEL_COLUMNS, "Command");
	display_write(text->out, line,
		      text->options->width ? text->options->width - LABEL_COLUMNS : SIZE_MAX,
		      DISPLAY_CUT_END);
	putc('\n', text->out);
	free(line);
	return 0;
}

static int write_host(const struct text *text)
{
	const struct trace *trace = text->trace;
	const char *parts[] = {trace->host, trace->kernel, trace->cpu_model};
	char line[512] = "not known", cpus[32] = "";
	size_t used = 0;

	for (size_t i = 0; i < 3 && used < sizeof(line); i++) {
		if (parts[i] && *parts[i])
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
						 used ? ", " : "", parts[i]);
	}
	if (trace->nr_cpus)
		snprintf(cpus, sizeof(cpus), ", %u %s", trace->nr_cpus,
			 trace->nr_cpus == 1 ? "CPU" : "CPUs");
	return field(text, "Host", "%s%s", line, cpus);
}

static int write_when(const struct text *text)
{
	const struct trace *trace = text->trace;
	uint64_t duration_ns =
		trace->end_ns > trace->start_ns ? trace->end_ns - trace->start_ns : 0;
	char date[64] = "";
	struct tm local;

	/* Without the clock's offset from the calendar only the duration is known. */
	if (trace->clock_offset_ns) {
		int64_t start_ns = (int64_t)(trace->start_ns + (uint64_t)trace->clock_offset_ns);
		time_t seconds = (time_t)(start_ns / 1000000000);

		if (localtime_r(&seconds, &local))
			strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S %z, ", &local);
	}
	return field(text, "When", "%s%s%s", date, quantity_time(duration_ns).text,
		     trace->live ? " by now" : "");
}

/* Since the start of the program; 0 for what cannot be. */
static uint64_t since_start(const struct trace *trace, uint64_t time_ns)
{
	return time_ns > trace->start_ns ? time_ns - trace->start_ns : 0;
}

static int write_window(const struct text *text)
{
	const struct trace *trace = text->trace;
	const struct trace_window *window = &trace->window;

	if (!window->given)
		return 0;
	/* A manifest of the start knows no begin; the samples know more. */
	if (!window->begin_ns && trace->nr_samples == 0)
		return field(text, "Window", "none%s: sampling %s %s after the start (--delay)",
			     trace->ended ? "" : " by now",
			     trace->ended ? "was to begin" : "begins",
			     quantity_time(window->delay_ns).text);
	if (!window->end_ns)
		return field(text, "Window", "from %s after the start on",
			     quantity_time(window->begin_ns ? since_start(trace, window->begin_ns)
							    : window->delay_ns)
				     .text);
	return field(text, "Window",
		     "from %s to %s after the start; counts and losses are of it alone",
		     quantity_time(since_start(trace, window->begin_ns)).text,
		     quantity_time(since_start(trace, window->end_ns)).text);
}

static int write_event(const struct text *text, uint32_t index)
{
	const struct trace_event *event = &text->trace->events[index];
	struct total total = totals_of(&text->totals, index, PROFILE_ALL);
	bool is_time = unit_is_time(event), has_trigger = event->trigger && *event->trigger;
	char counted[64] = "", jitter[64] = "", samples[TEXT_SAMPLES_BYTES];

	text_samples(text, index, PROFILE_ALL, 0, samples);
	if (event->jitter)
		snprintf(jitter, sizeof(jitter), " on average (+/- %s at random)",
			 is_time ? quantity_period(event->jitter).text
				 : quantity_exact(event->jitter).text);
	if (event->count)
		snprintf(counted, sizeof(counted), " of %s counted",
			 is_time ? quantity_time(event->count).text
				 : quantity_exact(event->count).text);
	return field(text, index == 0 ? "Event" : "", "%s, a sample every %s%s%s%s: %s, ~%s%s",
		     event->name,
		     is_time ? quantity_period(event->period).text
			     : quantity_exact(event->period).text,
		     jitter, has_trigger ? ", by " : "", has_trigger ? event->trigger : "", samples,
		     quantity_of(total.count, is_time).text, counted);
}

static int write_samples(const struct text *text)
{
	const struct trace *trace = text->trace;
	uint64_t lost = lost_total(trace), recorded = 0;

	for (size_t i = 0; i < trace->nr_processes; i++)
		recorded += trace->processes[i].recorded;
	return field(text, "Samples", "%s in %s %s of %s %s, %s lost",
		     quantity_exact(trace->nr_samples - trace->nr_waits).text,
		     quantity_exact(trace->nr_threads).text,
		     trace->nr_threads == 1 ? "thread" : "threads", quantity_exact(recorded).text,
		     recorded == 1 ? "process" : "processes",
		     lost	    ? quantity_exact(lost).text
		     : trace->ended ? "none"
				    : "not known how many");
}

/* Of all waiting: what has a stack, and what the shares below are estimated from. */
static int write_waits(const struct text *text)
{
	const struct trace_wall *wall = &text->trace->wall;

	if (!wall->period_ns || !text->trace->ended)
		return 0;
	return field(text, "Waits", "%s in %s; %s were looked at, which took %s of it%s",
		     quantity_time(wall->waited_ns).text, quantity_exact(wall->waits).text,
		     quantity_exact(wall->seen).text,
		     quantity_percent(wall->seen_ns, wall->waited_ns).text,
		     wall->seen < wall->waits ? " and stand for the others" : "");
}

/* What the threads did, of an event that is recorded with its waits. */
static int write_state_totals(const struct text *text)
{
	const struct trace *trace = text->trace;
	uint32_t event = trace->wall.event;
	struct total all = totals_of_states(&text->totals, event, PROFILE_ALL, 0);
	char line[256] = "";
	size_t used = 0;

	if (!trace->nr_waits)
		return 0;
	for (unsigned int state = 0; state < NR_SAMPLE_STATES && used < sizeof(line); state++) {
		struct total of = totals_of_states(&text->totals, event, PROFILE_ALL, 1u << state);

		if (of.count)
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s ~%s (%s)",
						 used ? ", " : "", state_key(state),
						 quantity_time(of.count).text,
						 quantity_percent(of.count, all.count).text);
	}
	return field(text, "States", "%s", line);
}

static int write_overhead(const struct text *text)
{
	const struct trace *trace = text->trace;
	char share[64] = "";
	uint64_t cpu_ns = 0;

	for (size_t i = 0; i < trace->nr_threads; i++)
		cpu_ns += trace->threads[i].cpu_ns;
	if (trace->handler_ns == 0 && trace->recorder_ns == 0)
		return 0;
	if (cpu_ns)
		snprintf(share, sizeof(share), " (%s of its CPU time)",
			 quantity_percent(trace->handler_ns, cpu_ns).text);
	return field(text, "Overhead", "%s in the program%s, %s in the recorder",
		     quantity_time(trace->handler_ns).text, share,
		     quantity_time(trace->recorder_ns).text);
}

static int write_notices(const struct text *text)
{
	struct notices notices;
	int rc = notices_collect(text->trace, &notices);

	if (rc < 0)
		return rc;
	if (notices.nr > text->trace->nr_headlines)
		fputs("\nLost or not seen\n", text->out);
	for (size_t i = text->trace->nr_headlines; i < notices.nr; i++) {
		fputs("  ", text->out);
		display_paragraph(text->out, notices.sentences[i], 2, text->options->width);
	}
	notices_release(&notices);
	return 0;
}

/* A report without samples is a question: these are the answers. */
static void write_why_empty(const struct text *text)
{
	static const char not_begun[] = "There are no samples: record with a shorter --delay.";
	static const char why[] =
		"There are no samples. Either the program ended before it had used one period of "
		"CPU time (or caused one period of the event), or it hardly ran: waiting, for "
		"disks, "
		"locks or other programs, uses none. Record for longer, or with a shorter period.";
	static const char why_window[] =
		"There are no samples. In the window that --delay and --duration left the program "
		"either used less than one period of CPU time (or caused less than one period of "
		"the event), or it hardly ran: waiting, for disks, locks or other programs, uses "
		"none. Record a longer window, or with a shorter period.";
	const struct trace_window *window = &text->trace->window;

	putc('\n', text->out);
	if (window->given && !window->begin_ns)
		display_paragraph(text->out, not_begun, 0, text->options->width);
	else
		display_paragraph(text->out, window->given ? why_window : why, 0,
				  text->options->width);
}

/* The first lines of the report: they change what all others mean. */
static int write_headlines(const struct text *text)
{
	struct notices notices;
	int rc = notices_collect(text->trace, &notices);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < text->trace->nr_headlines && i < notices.nr; i++)
		display_paragraph(text->out, notices.sentences[i], 0, text->options->width);
	if (text->trace->nr_headlines)
		putc('\n', text->out);
	notices_release(&notices);
	return 0;
}

int text_header(const struct text *text)
{
	int rc = write_headlines(text);

	rc = rc ? rc : write_command(text);

	rc = rc ? rc : write_host(text);
	rc = rc ? rc : write_when(text);
	rc = rc ? rc : write_window(text);
	for (uint32_t i = 0; i < text->trace->nr_events && !rc; i++)
		rc = write_event(text, i);
	rc = rc ? rc : write_samples(text);
	rc = rc ? rc : write_waits(text);
	rc = rc ? rc : write_state_totals(text);
	rc = rc ? rc : write_overhead(text);
	rc = rc ? rc : write_notices(text);
	/* Of one that is not complete the notices have said why. */
	if (rc == 0 && text->trace->nr_samples == 0 && text->trace->complete)
		write_why_empty(text);
	return rc;
}
