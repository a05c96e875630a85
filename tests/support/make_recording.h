/* SPDX-License-Identifier: MIT */
/*
 * Recordings made by hand, for tests, fuzzing and benchmarks: no program is run for them.
 *
 * A maker collects definitions and packets in memory and writes them as files. It checks
 * nothing: damaged recordings are made with it too. Out of memory ends the program.
 */
#ifndef PATHPROF_TESTS_SUPPORT_MAKE_RECORDING_H
#define PATHPROF_TESTS_SUPPORT_MAKE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAKER_STREAMS_MAX 1024

/* Bytes that grow. */
struct maker_bytes {
	uint8_t *at;
	size_t length, room;
};

struct maker_stream {
	struct maker_bytes bytes;
	size_t packet_at; /* offset of the open packet */
	bool open;
	uint64_t now_ns;
	uint64_t packet_seq_num;
};

struct maker {
	struct maker_stream definitions;
	struct maker_stream streams[MAKER_STREAMS_MAX]; /* ust/slot_NNNN */
	struct maker_stream waits;			/* ust/waits; none: no such file */
	char *manifest;
};

struct maker_thread {
	uint32_t pid, tid;
	uint64_t start_ns, end_ns, cpu_ns, samples, lost, overrun, voluntary_switches;
	const char *name;
};

struct maker_wait {
	uint32_t pid, tid, python;
	uint8_t kind; /* enum wait_kind */
	uint64_t start_ns, duration_ns, count;
};

/* Of one thread, whether they have a stack or not. */
struct maker_thread_waits {
	uint32_t pid, tid;
	uint64_t waits, waited_ns, seen, seen_ns, rejected;
};

struct maker *maker_new(void);
void maker_free(struct maker *maker);

/** maker_manifest - a whole manifest with @nr_events events: cpu-time, page-faults, event-2, .. */
void maker_manifest(struct maker *maker, bool complete, uint32_t nr_events, uint64_t period_ns);

/** maker_manifest_text - this text as it stands */
void maker_manifest_text(struct maker *maker, const char *text);

/**
 * maker_code - a code of @nr_lines lines: position p stands at line @first_line + p - 1
 * maker_node, maker_thread, maker_process - the other definitions
 */
void maker_code(struct maker *maker, uint32_t id, const char *name, const char *file,
		uint32_t first_line, uint32_t nr_lines);
void maker_node(struct maker *maker, uint32_t id, uint32_t parent, uint8_t kind, uint32_t owner,
		uint64_t position);
/** maker_locked_node - a node of Python's whose samples are of threads with the interpreter lock */
void maker_locked_node(struct maker *maker, uint32_t id, uint32_t parent, uint32_t code,
		       uint64_t position);
void maker_module(struct maker *maker, uint32_t id, const char *path);
void maker_thread(struct maker *maker, const struct maker_thread *thread);
void maker_process(struct maker *maker, uint32_t pid, uint32_t ppid, const char *command,
		   const char *reason);

/**
 * maker_begin - begin a packet; an open one is ended
 * maker_sample - append a sample to the open packet
 * maker_end - fill in the packet's sizes and times
 */
void maker_begin(struct maker *maker, uint32_t slot, uint32_t pid, uint32_t tid, uint64_t begin_ns);
void maker_sample(struct maker *maker, uint32_t slot, uint32_t event, uint64_t time_ns,
		  uint32_t native, uint32_t python, uint64_t count);
void maker_end(struct maker *maker, uint32_t slot);

/** maker_wait, maker_thread_waits - append to the waits, in the order of the waits' ends */
void maker_wait(struct maker *maker, const struct maker_wait *wait);
void maker_thread_waits(struct maker *maker, const struct maker_thread_waits *waits,
			uint64_t time_ns);

/** maker_finish - end every open packet */
void maker_finish(struct maker *maker);

/** maker_write - finish, and write the recording's directory; 0 or a negative errno */
int maker_write(struct maker *maker, const char *directory);

/**
 * maker_stored - finish, and put all files into one archive without packing them
 * @ret_length: its bytes. Returns them on the heap, the caller's to free.
 */
uint8_t *maker_stored(struct maker *maker, size_t *ret_length);

/* A recording of many samples, as a program that runs all the time gives it. */
struct maker_load {
	uint64_t samples;
	uint32_t stacks;  /* distinct ones, each with the same probability or zipf's */
	uint32_t depth;	  /* frames in each */
	uint32_t threads; /* at most MAKER_STREAMS_MAX */
	uint32_t events;
	uint32_t functions; /* at most so many */
	uint64_t period_ns;
	uint64_t jitter_ns; /* each sample up to so much before or after its tick */
	uint64_t seed;
	bool zipf; /* the k-th stack has the weight 1 / k */
	bool incomplete;
};

/** maker_load_default - 100,000 samples, 1,000 stacks, 16 deep, 1 thread, every 4 ms +- 20 us */
struct maker_load maker_load_default(void);

/** maker_load - make it all */
void maker_load(struct maker *maker, const struct maker_load *load);

#endif
