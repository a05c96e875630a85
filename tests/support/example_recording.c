/* SPDX-License-Identifier: MIT */
/*
 * example-recording DIR [empty|wall]: a small recording of a program `work.py` that never ran.
 *
 *   <module> work.py:9
 *     main work.py:6        cpu-time: 1
 *       burn work.py:2      cpu-time: 5
 *       (hostile) x;y:3     cpu-time: 2, in thread 8
 *
 * wall: wall-time in place of cpu-time, with page-faults beside it.
 *
 *   <module> work.py:9
 *     main work.py:6        waiting: 60 ms
 *       burn work.py:2      on a CPU: 4 with the lock, 1 without; gil-wait: 30 ms; runnable: 10 ms;
 *                           page-faults: 2 with the lock
 *       hang work.py:3      waiting: 250 ms, in thread 8, to the end of the recording
 */
#include <stdio.h>
#include <string.h>

#include "core/event/event.h"
#include "make_recording.h"

#define HOSTILE_NAME "</script>\033[31m;\"\\\n\xe2\x80\xae&\xff"
#define START_NS     1000000000ull
#define MS	     1000000ull

static const char manifest[] =
	"{ \"version\": 1, \"pathprof\": \"0.1.0\", \"complete\": true,\n"
	"  \"command\": [\"python3\", \"work.py\"], \"working_directory\": \"/srv\",\n"
	"  \"host\": \"box\", \"kernel\": \"Linux 6.1\", \"cpu_model\": \"A CPU\", \"cpus\": 2,\n"
	"  \"clock\": { \"name\": \"monotonic\", \"uuid\": \"\",\n"
	"               \"offset_ns\": 1795996799000000000 },\n"
	"  \"start_ns\": 1000000000, \"end_ns\": 1250000000, \"tick_ns\": 4000000,\n"
	"  \"trigger\": \"cpu-timer\", \"root_pid\": 7, \"exit_status\": 0,\n"
	"  \"events\": [{ \"name\": \"cpu-time\", \"unit\": \"ns\", \"period\": 10000000,\n"
	"                \"count\": 0, \"trigger\": \"cpu-timer\" }],\n"
	"  \"interpreters\": [{ \"pid\": 7, \"name\": \"CPython 3.11.2\",\n"
	"                      \"path\": \"/usr/bin/python3\", \"problem\": null }],\n"
	"  \"lost\": { \"buffer_full\": 2 }, \"degraded\": {},\n"
	"  \"overhead\": { \"handler_ns\": 80000, \"recorder_ns\": 2000000 },\n"
	"  \"unseen_cpu_ns\": 0, \"notes\": [] }\n";

static const char wall_manifest[] =
	"{ \"version\": 1, \"pathprof\": \"0.1.0\", \"complete\": true,\n"
	"  \"command\": [\"python3\", \"work.py\"], \"working_directory\": \"/srv\",\n"
	"  \"host\": \"box\", \"kernel\": \"Linux 6.1\", \"cpu_model\": \"A CPU\", \"cpus\": 2,\n"
	"  \"clock\": { \"name\": \"monotonic\", \"uuid\": \"\",\n"
	"               \"offset_ns\": 1795996799000000000 },\n"
	"  \"start_ns\": 1000000000, \"end_ns\": 1250000000, \"tick_ns\": 4000000,\n"
	"  \"trigger\": \"cpu-timer\", \"root_pid\": 7, \"exit_status\": 0,\n"
	"  \"events\": [{ \"name\": \"wall-time\", \"unit\": \"ns\", \"period\": 20000000,\n"
	"                \"count\": 500000000, \"trigger\": \"cpu-timer\" },\n"
	"             { \"name\": \"page-faults\", \"unit\": \"events\", \"period\": 10,\n"
	"                \"count\": 27, \"trigger\": \"perf-sigtrap\", \"user_only\": true }],\n"
	"  \"interpreters\": [{ \"pid\": 7, \"name\": \"CPython 3.11.2\",\n"
	"                      \"path\": \"/usr/bin/python3\", \"problem\": null }],\n"
	"  \"lost\": { \"delayed\": 1 }, \"degraded\": {},\n"
	"  \"overhead\": { \"handler_ns\": 80000, \"recorder_ns\": 2000000 },\n"
	"  \"wall\": { \"event\": \"wall-time\", \"period_ns\": 10000000, \"waits\": 8,\n"
	"            \"waited_ns\": 400000000, \"seen\": 4, \"seen_ns\": 350000000,\n"
	"            \"rejected\": 1 },\n"
	"  \"unseen_cpu_ns\": 0, \"headlines\": [\"Kernel time is not included\"],\n"
	"  \"notes\": [] }\n";

static void make_wall(struct maker *maker)
{
	static const uint32_t on_cpu[] = {6, 6, 3, 6, 6};
	static const struct maker_wait waits[] = {
		{7, 7, 3, WAIT_RUNNABLE, START_NS + 20 * MS, 10 * MS, 10 * MS},
		{7, 7, 3, WAIT_LOCK, START_NS + 50 * MS, 20 * MS, 30 * MS},
		{7, 7, 2, WAIT_OTHER, START_NS + 100 * MS, 60 * MS, 60 * MS},
		{7, 8, 7, WAIT_OTHER, START_NS, 250 * MS, 250 * MS},
	};
	static const struct maker_thread_waits of_main = {7, 7, 7, 150 * MS, 3, 100 * MS, 1};
	static const struct maker_thread_waits of_worker = {7, 8, 1, 250 * MS, 1, 250 * MS, 0};

	maker_code(maker, 5, "hang", "work.py", 1, 20);
	maker_locked_node(maker, 6, 2, 3, 2);
	maker_node(maker, 7, 2, NODE_PYTHON, 5, 3);
	maker_begin(maker, 0, 7, 7, START_NS);
	for (uint32_t i = 0; i < 5; i++)
		maker_sample(maker, 0, 0, START_NS + (i + 1) * 40 * MS, 0, on_cpu[i], 20 * MS);
	for (uint32_t i = 0; i < 2; i++)
		maker_sample(maker, 0, 1, START_NS + (210 + i) * MS, 0, 6, 10);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		maker_wait(maker, &waits[i]);
	maker_thread_waits(maker, &of_main, START_NS + 250 * MS);
	maker_thread_waits(maker, &of_worker, START_NS + 250 * MS);
}

static void make_names(struct maker *maker)
{
	maker_code(maker, 1, "<module>", "work.py", 1, 20);
	maker_code(maker, 2, "main", "work.py", 5, 20);
	maker_code(maker, 3, "burn", "work.py", 1, 20);
	maker_code(maker, 4, HOSTILE_NAME, "x;y", 1, 20);
	maker_node(maker, 1, 0, NODE_PYTHON, 1, 9);
	maker_node(maker, 2, 1, NODE_PYTHON, 2, 2);
	maker_node(maker, 3, 2, NODE_PYTHON, 3, 2);
	maker_node(maker, 4, 2, NODE_PYTHON, 4, 3);
}

static void make_samples(struct maker *maker)
{
	static const uint32_t nodes[] = {3, 3, 2, 3, 3, 3};

	maker_begin(maker, 0, 7, 7, START_NS);
	for (uint32_t i = 0; i < 6; i++)
		maker_sample(maker, 0, 0, START_NS + (i + 1) * 20 * MS, 0, nodes[i], 10 * MS);
	maker_begin(maker, 1, 7, 8, START_NS);
	for (uint32_t i = 0; i < 2; i++)
		maker_sample(maker, 1, 0, START_NS + (i + 1) * 30 * MS, 0, 4, 10 * MS);
}

static void make_threads(struct maker *maker, bool empty, bool wall)
{
	const struct maker_thread main_thread = {
		.pid = 7,
		.tid = 7,
		.start_ns = START_NS,
		.end_ns = START_NS + 250 * MS,
		.cpu_ns = wall ? 100 * MS : 60 * MS,
		.samples = empty  ? 0
			   : wall ? 7
				  : 6,
		.name = "python3",
	};
	const struct maker_thread worker = {
		.pid = 7,
		.tid = 8,
		.start_ns = START_NS,
		.end_ns = START_NS + (wall ? 250 * MS : 100 * MS),
		.cpu_ns = wall ? 0 : 20 * MS,
		.samples = empty || wall ? 0 : 2,
		.name = "worker",
	};

	maker_process(maker, 7, 1, "python3 work.py", "");
	maker_thread(maker, &main_thread);
	maker_thread(maker, &worker);
}

int main(int argc, char **argv)
{
	struct maker *maker = maker_new();
	bool empty = argc > 2 && strcmp(argv[2], "empty") == 0;
	bool wall = argc > 2 && strcmp(argv[2], "wall") == 0;
	int rc;

	if (argc < 2)
		return 2;
	maker_manifest_text(maker, wall ? wall_manifest : manifest);
	make_names(maker);
	if (wall)
		make_wall(maker);
	else if (!empty)
		make_samples(maker);
	make_threads(maker, empty, wall);
	rc = maker_write(maker, argv[1]);
	if (rc)
		fprintf(stderr, "example-recording: %s: %s\n", argv[1], strerror(-rc));
	maker_free(maker);
	return rc ? 1 : 0;
}
