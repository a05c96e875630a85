/* SPDX-License-Identifier: MIT */
/*
 * A line of JSON per distinct stack, root first, for jq, DuckDB, pandas:
 *
 *   {"event": "cpu-time", "pid": 7, "tid": 7, "frames": [{"function": "main", "file": "app.py",
 *    "kind": "python", "line": 12}], "samples": 3, "count": 30000000}
 *
 * and "state" before "samples" where the recording tells it (--wall, or a known interpreter lock).
 */
#include "tool/render/exporters.h"
#include "tool/render/json_parts.h"
#include "tool/render/phrases.h"
#include "tool/render/stack_frames.h"

/* A frame up to its line, which is not the function's. */
static void write_function(FILE *out, const struct trace_function *function)
{
	struct json_stream json = {.out = out};

	json_begin(&json, NULL, '{');
	json_text(&json, "function", function->name);
	json_text(&json, "file", function->file);
	json_text(&json, "kind", frame_kind_name(function->kind));
}

static void write_frames(struct json_stream *json, const struct trace *trace,
			 const struct phrases *functions, const struct stack_frames *frames)
{
	json_begin(json, "frames", '[');
	for (size_t i = 0; i < frames->nr; i++) {
		const struct trace_node *node = &trace->nodes[frames->nodes[i]];

		json_part(json);
		phrases_write(functions, node->function, json->out);
		json->level++;
		json_line(json, "line", node->line);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void write_row(const struct trace *trace, const struct stack_row *row,
		      const struct phrases *functions, const struct stack_frames *frames, FILE *out)
{
	struct json_stream json = {.out = out};

	json_begin(&json, NULL, '{');
	json_text(&json, "event", trace->events[row->event].name);
	json_number(&json, "pid", trace->threads[row->thread].pid);
	json_number(&json, "tid", trace->threads[row->thread].tid);
	write_frames(&json, trace, functions, frames);
	if (trace->knows_lock || trace->nr_waits)
		json_text(&json, "state", state_key(row->state));
	json_number(&json, "samples", row->samples);
	json_number(&json, "count", row->count);
	json_end(&json, '}');
	putc_unlocked('\n', out);
}

static int write_rows(const struct trace *trace, const struct stacks *stacks,
		      const struct phrases *functions, FILE *out)
{
	struct stack_frames frames = {0};
	int rc = 0;

	for (size_t i = 0; i < stacks->nr_rows && rc == 0; i++) {
		const struct stack_row *row = &stacks->rows[i];

		rc = stack_frames_load(&frames, trace, row->native, row->python);
		if (rc == 0)
			write_row(trace, row, functions, &frames, out);
	}
	stack_frames_release(&frames);
	return rc;
}

static int jsonl_write(const struct trace *trace, FILE *out, struct errbuf *err)
{
	struct profile_filter all = {PROFILE_ALL, PROFILE_ALL, 0, true};
	struct phrases functions = {0};
	struct stacks stacks;
	int rc = stacks_collect(trace, all, true, &stacks);

	if (rc == 0) {
		rc = phrases_make(trace, write_function, &functions);
		if (rc == 0)
			rc = write_rows(trace, &stacks, &functions, out);
		phrases_release(&functions);
		stacks_release(&stacks);
	}
	return rc < 0 ? errbuf_set(err, rc, "Cannot fold the stacks: out of memory") : 0;
}

const struct exporter jsonl_exporter = {
	"jsonl",
	"a line of JSON per call path, thread and event: jq, DuckDB, pandas",
	true,
	jsonl_write,
};
