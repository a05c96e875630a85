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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/cpython/remote.h"
#include "core/cpython/world_for_tests.h"

#define PROBE		__attribute__((visibility("default")))
#define FRAMES_MAX	8192
#define COLD_BYTES	(64 << 20) /* more than the last cache holds */
#define BENCHMARK_DEPTH 32

PROBE int probe_find(char *sentence, size_t size);
PROBE uint32_t probe_version(void);
PROBE int probe_walk(size_t max, char *text, size_t size);
PROBE int probe_walk_from_outside(size_t max, char *text, size_t size);
PROBE double probe_benchmark_from_outside(int rounds, unsigned int depth, bool identify,
					  double *ret_calls);
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

/* One look, from the thread itself or, where there is a remote, from another process. */
struct look {
	struct cpython cpython;
	struct cpython_remote *remote;
	uint32_t tid;
	struct cpython_frame frames[FRAMES_MAX];
	size_t nr_frames;
	enum cpython_end end;
	bool holds_lock;
};

static bool look_copy(struct look *look, uint64_t address, void *to, size_t length)
{
	return look->remote ? cpython_remote_copy(look->remote, address, to, length)
			    : cpython_copy(address, to, length);
}

static bool look_read_code(struct look *look, uint64_t address, struct cpython_code *ret_code)
{
	return look->remote
		       ? cpython_remote_read_code(look->remote, &look->cpython, address, ret_code)
		       : cpython_read_code(&look->cpython, address, ret_code);
}

static void look_walk(struct look *look, size_t max, uint64_t hint)
{
	struct cpython_remote_stack stack = {.frames = look->frames, .max = max};
	uint64_t state;

	if (look->remote) {
		state = cpython_remote_thread_state(look->remote, &look->cpython, look->tid, hint,
						    &look->holds_lock);
		cpython_remote_walk(look->remote, &look->cpython, state, &stack);
		look->nr_frames = stack.nr_frames;
		look->end = stack.end;
		return;
	}
	state = cpython_thread_state(&look->cpython, look->tid, &look->holds_lock);
	look->nr_frames = cpython_walk(&look->cpython, state, look->frames, max, &look->end);
}

/* As UTF-8; the caller frees. */
static char *copy_text(struct look *look, const struct cpython_text *text)
{
	size_t bytes = (size_t)text->length * text->width;
	uint8_t *characters = malloc(bytes + 1);
	char *utf8 = NULL;

	if (characters && look_copy(look, text->address, characters, bytes))
		utf8 = cpython_text_utf8(characters, text->length, text->width);
	free(characters);
	return utf8;
}

static uint32_t line_of(struct look *look, const struct cpython_code *code, uint32_t position)
{
	uint8_t *table = malloc(code->line_table_length + 1);
	uint32_t line = 0;

	if (table && look_copy(look, code->line_table, table, code->line_table_length))
		line = cpython_line(code->line_table_kind, table, code->line_table_length,
				    code->first_line, position);
	free(table);
	return line;
}

static void write_frame(FILE *to, struct look *look, const struct cpython_frame *frame)
{
	struct cpython_code code;
	char *file, *name;

	if (!look_read_code(look, frame->code_address, &code)) {
		fprintf(to, "unreadable code\n");
		return;
	}
	file = copy_text(look, &code.file);
	name = copy_text(look, &code.name);
	fprintf(to, "%s\t%s\t%u\t%u\n", file ? file : "?", name ? name : "?",
		line_of(look, &code, frame->position), frame->entry);
	free(file);
	free(name);
}

/* The end of the walk and whether the lock was held on the first line, then file, name, line and
 * entry mark of each frame. */
static int write_look(struct look *look, size_t max, char *text, size_t size)
{
	FILE *to = max <= FRAMES_MAX ? fmemopen(text, size, "w") : NULL;

	if (!to)
		return -1;
	look_walk(look, max, 0);
	fprintf(to, "%d\t%d\n", look->end, look->holds_lock);
	for (size_t i = 0; i < look->nr_frames; i++)
		write_frame(to, look, &look->frames[i]);
	return fclose(to);
}

static struct look *look_new(void)
{
	struct look *look = calloc(1, sizeof(*look));

	if (!look || cpython_find(&look->cpython, NULL)) {
		free(look);
		return NULL;
	}
	look->tid = (uint32_t)gettid();
	return look;
}

PROBE int probe_walk(size_t max, char *text, size_t size)
{
	struct look *look = look_new();
	int rc = look ? write_look(look, max, text, size) : -1;

	free(look);
	return rc;
}

/* Runs @see in a child process, which looks at this thread while it waits. */
static int from_outside(void (*see)(struct look *look, void *argument), void *argument)
{
	struct look *look = look_new();
	int status = -1;
	pid_t child;

	if (!look)
		return -1;
	look->remote = calloc(1, sizeof(*look->remote));
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* for YAMA; fails without it */
	child = look->remote ? fork() : -1;
	if (!child) {
		cpython_remote_begin(look->remote, getppid());
		see(look, argument);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	free(look->remote);
	free(look);
	return status ? -1 : 0;
}

struct outside_text {
	char *text; /* shared with the child */
	size_t size, max;
};

static void see_text(struct look *look, void *argument)
{
	struct outside_text *outside = argument;

	if (write_look(look, outside->max, outside->text, outside->size))
		_exit(1);
}

static void *map_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

PROBE int probe_walk_from_outside(size_t max, char *text, size_t size)
{
	struct outside_text outside = {.text = map_shared(size), .size = size, .max = max};
	int rc;

	if (!outside.text)
		return -1;
	rc = from_outside(see_text, &outside);
	memcpy(text, outside.text, size);
	munmap(outside.text, size);
	return rc;
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

struct outside_times {
	double *times; /* shared with the child */
	int rounds;
	unsigned int depth;
	bool identify;
};

static void see_times(struct look *look, void *argument)
{
	struct outside_times *outside = argument;
	uint64_t hint = cpython_remote_thread_state(look->remote, &look->cpython, look->tid, 0,
						    &look->holds_lock);

	for (int i = 0; i < outside->rounds; i++) {
		struct cpython_file_memo memo = {0};
		double start = now_ns();

		cpython_remote_begin(look->remote, getppid());
		look_walk(look, outside->depth, hint);
		for (size_t j = 0; outside->identify && j < look->nr_frames; j++)
			if (!cpython_remote_identify(look->remote, &look->cpython,
						     look->frames[j].code_address, &memo))
				_exit(1);
		outside->times[i] = now_ns() - start;
		if (look->nr_frames != outside->depth)
			_exit(1);
	}
	outside->times[outside->rounds] = (double)look->remote->blocks.nr_calls / outside->rounds;
}

/* Median time in ns of looking at the topmost @depth frames of this thread from another process,
 * and the calls of process_vm_readv() that one look takes. 0: it failed. */
PROBE double probe_benchmark_from_outside(int rounds, unsigned int depth, bool identify,
					  double *ret_calls)
{
	size_t bytes = ((size_t)rounds + 1) * sizeof(double);
	struct outside_times outside = {
		.times = map_shared(bytes), .rounds = rounds, .depth = depth, .identify = identify};
	double median = 0;

	if (!outside.times)
		return 0;
	if (!from_outside(see_times, &outside)) {
		*ret_calls = outside.times[rounds];
		qsort(outside.times, (size_t)rounds, sizeof(double), by_value);
		median = outside.times[rounds / 2];
	}
	munmap(outside.times, bytes);
	return median;
}
