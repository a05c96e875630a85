/* SPDX-License-Identifier: MIT */
#include "tool/render/json_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tool/render/notices.h"

const char *frame_kind_name(unsigned int kind)
{
	static const char *const names[] = {
		[FRAME_PYTHON] = "python",
		[FRAME_NATIVE] = "native",
		[FRAME_KERNEL] = "kernel",
		[FRAME_MARKER] = "marker",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "marker";
}

/* Was this interpreter's name met before? Programs have few; a fork per request has many. */
static bool is_repeated(const struct trace *trace, size_t index)
{
	const char *name = trace->interpreters[index].name;

	for (size_t i = 0; i < index && i < 64; i++) {
		const char *other = trace->interpreters[i].name;

		if (name && other && strcmp(name, other) == 0)
			return true;
	}
	return !name;
}

/* Only where --delay or --duration made one. */
static void json_window(struct json_stream *json, const struct trace_window *window)
{
	if (!window->given)
		return;
	json_begin(json, "window", '{');
	json_number(json, "delay_ns", window->delay_ns);
	json_number(json, "duration_ns", window->duration_ns);
	json_number(json, "begin_ns", window->begin_ns);
	json_number(json, "end_ns", window->end_ns);
	json_end(json, '}');
}

void json_recording(struct json_stream *json, const struct trace *trace)
{
	json_begin(json, "recording", '{');
	json_begin(json, "command", '[');
	for (size_t i = 0; i < trace->nr_command; i++)
		json_text(json, NULL, trace->command[i]);
	json_end(json, ']');
	json_text(json, "host", trace->host);
	json_number(json, "start_ns", trace->start_ns);
	json_number(json, "end_ns", trace->end_ns);
	json_text(json, "clock", trace->clock);
	json_text(json, "trigger", trace->trigger);
	json_begin(json, "interpreter", '[');
	for (size_t i = 0; i < trace->nr_interpreters; i++) {
		if (!is_repeated(trace, i))
			json_text(json, NULL, trace->interpreters[i].name);
	}
	json_end(json, ']');
	json_bool(json, "complete", trace->complete);
	json_bool(json, "live", trace->live);
	json_window(json, &trace->window);
	json_end(json, '}');
}

int json_notices(struct json_stream *json, const struct trace *trace)
{
	struct notices notices;
	int rc = notices_collect(trace, &notices);

	if (rc < 0)
		return rc;
	json_begin(json, "notices", '[');
	for (size_t i = 0; i < notices.nr; i++)
		json_text(json, NULL, notices.sentences[i]);
	json_end(json, ']');
	notices_release(&notices);
	return 0;
}

char *command_line(const struct trace *trace)
{
	char *line = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&line, &length);

	if (!out)
		return NULL;
	for (size_t i = 0; i < trace->nr_command; i++)
		fprintf(out, "%s%s", i ? " " : "", trace->command[i]);
	if (fclose(out) != 0) {
		free(line);
		return NULL;
	}
	return line;
}
