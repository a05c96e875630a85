/* SPDX-License-Identifier: MIT */
/*
 * A library that a test's program loads into its interpreter: looks by hand, without a signal.
 * What it returns is what a recording would hold, so that the program can compare it with what it
 * knows about itself. For tests alone.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/cpython/world_for_tests.h"

#define PROBE		__attribute__((visibility("default")))
#define FRAMES_MAX	8192
#define COLD_BYTES	(64 << 20) /* more than the last cache holds */
#define BENCHMARK_DEPTH 32

PROBE int probe_find(char *sentence, size_t size);
PROBE uint32_t probe_version(void);
PROBE int probe_walk(size_t max, char *text, size_t size);
PROBE uint64_t probe_identity(uint64_t code);
PROBE uint64_t probe_state_in_thread(void);
PROBE void probe_call(void (*function)(void));
PROBE int probe_fault(uint64_t address);
PROBE double probe_benchmark(int rounds, int cold);

PROBE int probe_find(char *sentence, size_t size)
{
	struct cpython cpython;
	struct errbuf err = {.text = ""};
	int rc = cpython_find(&cpython, &err);

	snprintf(sentence, size, "%s", err.text);
	return rc;
}

PROBE uint32_t probe_version(void)
{
	struct cpython cpython;

	return cpython_find(&cpython, NULL) ? 0 : cpython.version;
}

/* As UTF-8; the caller frees. */
static char *copy_text(const struct cpython_text *text)
{
	size_t bytes = (size_t)text->length * text->width;
	uint8_t *characters = malloc(bytes + 1);
	char *utf8 = NULL;

	if (characters && cpython_copy(text->address, characters, bytes))
		utf8 = cpython_text_utf8(characters, text->length, text->width);
	free(characters);
	return utf8;
}

static uint32_t line_of(const struct cpython_code *code, uint32_t position)
{
	uint8_t *table = malloc(code->line_table_length + 1);
	uint32_t line = 0;

	if (table && cpython_copy(code->line_table, table, code->line_table_length))
		line = cpython_line(code->line_table_kind, table, code->line_table_length,
				    code->first_line, position);
	free(table);
	return line;
}

static void write_frame(FILE *to, const struct cpython *cpython, const struct cpython_frame *frame)
{
	struct cpython_code code;
	char *file, *name;

	if (!cpython_read_code(cpython, frame->code_address, &code)) {
		fprintf(to, "unreadable code\n");
		return;
	}
	file = copy_text(&code.file);
	name = copy_text(&code.name);
	fprintf(to, "%s\t%s\t%u\t%u\n", file ? file : "?", name ? name : "?",
		line_of(&code, frame->position), frame->entry);
	free(file);
	free(name);
}

/* The end of the walk on the first line, then file, name, line and entry mark of each frame. */
PROBE int probe_walk(size_t max, char *text, size_t size)
{
	struct cpython_frame *frames;
	struct cpython cpython;
	enum cpython_end end;
	size_t nr_frames;
	uint64_t state;
	bool holds_lock;
	FILE *to;

	if (max > FRAMES_MAX || cpython_find(&cpython, NULL))
		return -1;
	to = fmemopen(text, size, "w");
	if (!to)
		return -1;
	frames = calloc(FRAMES_MAX, sizeof(*frames));
	if (!frames) {
		fclose(to);
		return -1;
	}
	state = cpython_thread_state(&cpython, (uint32_t)gettid(), &holds_lock);
	nr_frames = cpython_walk(&cpython, state, frames, max, &end);
	fprintf(to, "%d\n", end);
	for (size_t i = 0; i < nr_frames; i++)
		write_frame(to, &cpython, &frames[i]);
	free(frames);
	return fclose(to);
}

PROBE uint64_t probe_identity(uint64_t code_address)
{
	struct cpython_file_memo memo = {0};
	struct cpython cpython;

	return cpython_find(&cpython, NULL) ? 0 : cpython_identify(&cpython, code_address, &memo);
}

static void *state_here(void *ret_state)
{
	struct cpython cpython;
	bool holds_lock;

	if (!cpython_find(&cpython, NULL))
		*(uint64_t *)ret_state =
			cpython_thread_state(&cpython, (uint32_t)gettid(), &holds_lock);
	return NULL;
}

/* The thread state that a thread which never ran Python has. */
PROBE uint64_t probe_state_in_thread(void)
{
	uint64_t state = UINT64_MAX;
	pthread_t thread;

	if (!pthread_create(&thread, NULL, state_here, &state))
		pthread_join(thread, NULL);
	return state;
}

PROBE void probe_call(void (*function)(void))
{
	function();
}

/* Read a thread state and a code object at an address where there is none: 0 when both refuse. */
PROBE int probe_fault(uint64_t address)
{
	struct sigaction action = {.sa_sigaction = world_on_fault,
				   .sa_flags = SA_SIGINFO | SA_NODEFER};
	struct sigaction segv, bus;
	struct cpython_file_memo memo = {0};
	struct cpython_frame frame;
	struct cpython_code code;
	struct cpython cpython;
	enum cpython_end end;
	int wrong;

	if (cpython_find(&cpython, NULL))
		return -1;
	sigaction(SIGSEGV, &action, &segv);
	sigaction(SIGBUS, &action, &bus);
	wrong = cpython_walk(&cpython, address, &frame, 1, &end) != 0;
	wrong += end != CPYTHON_END_UNREADABLE;
	wrong += cpython_read_code(&cpython, address, &code);
	wrong += cpython_identify(&cpython, address, &memo) != 0;
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return wrong;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* One sample's reading: state, 32 frames, 32 code objects. Returns the time in ns, 0: too few. */
static double read_once(const struct cpython *cpython, uint32_t tid)
{
	struct cpython_frame frames[BENCHMARK_DEPTH];
	struct cpython_file_memo memo = {0};
	enum cpython_end end;
	bool holds_lock;
	double start = now_ns();
	uint64_t state = cpython_thread_state(cpython, tid, &holds_lock);
	size_t nr_frames = cpython_walk(cpython, state, frames, BENCHMARK_DEPTH, &end);

	for (size_t i = 0; i < nr_frames; i++)
		if (!cpython_identify(cpython, frames[i].code_address, &memo))
			return 0;
	return nr_frames == BENCHMARK_DEPTH ? now_ns() - start : 0;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Median time in ns of reading the calling thread's topmost 32 frames; @cold: caches emptied. */
PROBE double probe_benchmark(int rounds, int cold)
{
	uint32_t tid = (uint32_t)gettid();
	struct cpython cpython;
	uint8_t *other;
	double *times, median;

	if (cpython_find(&cpython, NULL))
		return 0;
	times = calloc((size_t)rounds, sizeof(*times));
	if (!times)
		return 0;
	other = cold ? malloc(COLD_BYTES) : NULL;
	for (int i = 0; i < rounds; i++) {
		if (other)
			memset(other, i, COLD_BYTES);
		__asm__ volatile("" : : "r"(other) : "memory");
		times[i] = read_once(&cpython, tid);
	}
	qsort(times, (size_t)rounds, sizeof(*times), by_value);
	median = times[rounds / 2];
	free(times);
	free(other);
	return median;
}
