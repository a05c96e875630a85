/* SPDX-License-Identifier: MIT */
/*
 *   <module> main.py:5
 *     Parser.parse parser.py:44
 *       decode decoder.py:12            cpu-time: 4 main (1 after the others); page-faults: 1 main
 *       Parser.parse parser.py:47       cpu-time: 2 main
 *       read (native)                   cpu-time: 1 worker
 *     (hostile) a;b:3                   cpu-time: 1 main
 *   [no Python frame]                   cpu-time: 1 worker
 */
#include <string.h>

#include "tool/render/example_trace_test.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MS	      1000000ull
#define START_NS      (1000 * 1000 * MS)

static const char *const command[] = {"python3", "main.py", "--all"};
static const char *const notes[] = {"Native frames were not recorded."};

static const struct trace_event event_values[] = {
	{"cpu-time", "ns", 10 * MS, 0, "cpu-timer"},
	{"page-faults", "events", 100, 12345, "perf-sigtrap"},
};

static const struct trace_thread thread_values[] = {
	{100, 100, "main", START_NS, START_NS + 200 * MS, 90 * MS, 8, 2, 0, 3},
	{100, 101, "\xe5\xb7\xa5\xe4\xbd\x9c worker", START_NS, START_NS + 100 * MS, 20 * MS, 2, 0,
	 0, 1},
};

static const struct trace_process process_values[] = {
	{100, 1, "python3 main.py --all", true, NULL},
	{102, 100, "/bin/true", false, "it is linked statically"},
};

static const struct trace_count lost_values[] = {{"buffer_full", 2}};
static const struct trace_count degraded_values[] = {{"truncated", 1}};

static const struct trace_interpreter interpreter_values[] = {
	{100, "CPython 3.11.2", "/usr/bin/python3.11", NULL},
};

static const struct trace_function function_values[] = {
	{"[unknown]", NULL, 0, FRAME_MARKER},
	{"[no Python frame]", NULL, 0, FRAME_MARKER},
	{"<module>", "/srv/app/main.py", 1, FRAME_PYTHON},
	{"Parser.parse", "/srv/app/parser.py", 40, FRAME_PYTHON},
	{"decode", "/usr/lib/python3.11/json/decoder.py", 10, FRAME_PYTHON},
	{"read", "/lib/libc.so.6", 0, FRAME_NATIVE},
	{HOSTILE_NAME, "a;b\n.py", 3, FRAME_PYTHON},
};

static const struct trace_node node_values[] = {
	{0, 1, 0, FRAME_MARKER, 0, 1},	{0, 2, 5, FRAME_PYTHON, 0, 1},
	{1, 3, 44, FRAME_PYTHON, 0, 1}, {2, 4, 12, FRAME_PYTHON, 0, 1},
	{2, 3, 47, FRAME_PYTHON, 0, 1}, {1, 6, 3, FRAME_PYTHON, 0, 1},
	{0, 5, 0, FRAME_NATIVE, 0, 1},
};

static const struct trace_sample sample_values[] = {
	{START_NS + 10 * MS, 0, 0, 0, 3, 10 * MS}, {START_NS + 20 * MS, 0, 0, 0, 3, 10 * MS},
	{START_NS + 30 * MS, 0, 0, 0, 3, 10 * MS}, {START_NS + 40 * MS, 0, 0, 0, 4, 10 * MS},
	{START_NS + 50 * MS, 0, 0, 0, 4, 10 * MS}, {START_NS + 60 * MS, 0, 0, 0, 5, 10 * MS},
	{START_NS + 70 * MS, 0, 0, 0, 3, 10 * MS}, {START_NS + 15 * MS, 1, 0, 6, 2, 10 * MS},
	{START_NS + 25 * MS, 1, 0, 0, 0, 10 * MS}, {START_NS + 33 * MS, 0, 1, 0, 3, 100},
};

/* Copies, so that a test may change what it likes; static, so that nothing is to be freed. */
struct trace *example_trace(void)
{
	static struct trace_event events[LENGTH(event_values)];
	static struct trace_thread threads[LENGTH(thread_values)];
	static struct trace_process processes[LENGTH(process_values)];
	static struct trace_count lost[LENGTH(lost_values)], degraded[LENGTH(degraded_values)];
	static struct trace_interpreter interpreters[LENGTH(interpreter_values)];
	static struct trace_function functions[LENGTH(function_values)];
	static struct trace_node nodes[LENGTH(node_values)];
	static struct trace_sample samples[LENGTH(sample_values)];
	static struct trace trace;

	trace = (struct trace){
		.command = command,
		.nr_command = LENGTH(command),
		.working_directory = "/srv/app",
		.host = "box",
		.kernel = "Linux 6.1",
		.cpu_model = "A CPU",
		.nr_cpus = 2,
		.clock = "monotonic",
		.version = "0.1.0",
		.trigger = "cpu-timer",
		.start_ns = START_NS,
		.end_ns = START_NS + 200 * MS,
		.tick_ns = 4 * MS,
		.complete = true,
		.ended = true,
		.handler_ns = 110000,
		.recorder_ns = 5 * MS,
		.unseen_cpu_ns = 30 * MS,
		.events = memcpy(events, event_values, sizeof(events)),
		.nr_events = LENGTH(events),
		.threads = memcpy(threads, thread_values, sizeof(threads)),
		.nr_threads = LENGTH(threads),
		.processes = memcpy(processes, process_values, sizeof(processes)),
		.nr_processes = LENGTH(processes),
		.interpreters = memcpy(interpreters, interpreter_values, sizeof(interpreters)),
		.nr_interpreters = LENGTH(interpreters),
		.lost = memcpy(lost, lost_values, sizeof(lost)),
		.nr_lost = LENGTH(lost),
		.degraded = memcpy(degraded, degraded_values, sizeof(degraded)),
		.nr_degraded = LENGTH(degraded),
		.functions = memcpy(functions, function_values, sizeof(functions)),
		.nr_functions = LENGTH(functions),
		.nodes = memcpy(nodes, node_values, sizeof(nodes)),
		.nr_nodes = LENGTH(nodes),
		.samples = memcpy(samples, sample_values, sizeof(samples)),
		.nr_samples = LENGTH(samples),
		.notes = notes,
		.nr_notes = LENGTH(notes),
		.clock_offset_ns = 1795996800ll * 1000000000 - (int64_t)START_NS,
	};
	return &trace;
}

FILE *written_open(struct written *written)
{
	written->text = NULL;
	written->file = open_memstream(&written->text, &written->length);
	return written->file;
}

const char *written_close(struct written *written)
{
	fclose(written->file);
	return written->text;
}
