/* SPDX-License-Identifier: MIT */
/*
 * A line of JSON per distinct stack, root first, for jq, DuckDB, pandas:
 *
 *   {"event": "cpu-time", "pid": 7, "tid": 7, "frames": [{"function": "main", "file": "app.py",
 *    "line": 12, "kind": "python"}], "samples": 3, "count": 30000000}
 */
#include "tool/render/exporters.h"
#include "tool/render/json_parts.h"
#include "tool/render/stack_frames.h"

static void write_frames(struct json_stream *json, const struct trace *trace,
			 const struct stack_frames *frames)
{
	json_begin(json, "frames", '[');
	for (size_t i = 0; i < frames->nr; i++) {
		struct frame frame = trace_frame(trace, frames->nodes[i]);

		json_begin(json, NULL, '{');
		json_text(json, "function", frame.function);
		json_text(json, "file", frame.file);
		json_line(json, "line", frame.line);
		json_text(json, "kind", frame_kind_name(frame.kind));
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void write_row(const struct trace *trace, const struct stack_row *row,
		      const struct stack_frames *frames, FILE *out)
{
	struct json_stream json = {.out = out};

	json_begin(&json, NULL, '{');
	json_text(&json, "event", trace->events[row->event].name);
	json_number(&json, "pid", trace->threads[row->thread].pid);
	json_number(&json, "tid", trace->threads[row->thread].tid);
	write_frames(&json, trace, frames);
	json_number(&json, "samples", row->samples);
	json_number(&json, "count", row->count);
	json_end(&json, '}');
	putc_unlocked('\n', out);
}

static int jsonl_write(const struct trace *trace, FILE *out, struct errbuf *err)
{
	struct profile_filter all = {PROFILE_ALL, PROFILE_ALL};
	struct stack_frames frames = {0};
	struct stacks stacks;
	int rc = stacks_collect(trace, all, true, &stacks);

	if (rc < 0)
		return errbuf_set(err, rc, "Cannot fold the stacks: out of memory");
	for (size_t i = 0; i < stacks.nr_rows && rc == 0; i++) {
		rc = stack_frames_load(&frames, trace, stacks.rows[i].native,
				       stacks.rows[i].python);
		if (rc == 0)
			write_row(trace, &stacks.rows[i], &frames, out);
	}
	stack_frames_release(&frames);
	stacks_release(&stacks);
	return rc < 0 ? errbuf_set(err, rc, "Cannot unfold a stack: out of memory") : 0;
}

const struct exporter jsonl_exporter = {
	"jsonl",
	"a line of JSON per call path, thread and event: jq, DuckDB, pandas",
	true,
	jsonl_write,
};
