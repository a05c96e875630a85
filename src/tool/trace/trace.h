/* SPDX-License-Identifier: MIT */
/*
 * Reading a recording: a directory, or an archive of one in its place.
 *
 * Everything is validated at the door; a truncated or corrupted recording gives an error or a
 * partial trace whose `problems` say what is missing.
 */
#ifndef PATHPROF_TOOL_TRACE_TRACE_H
#define PATHPROF_TOOL_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/errbuf.h"
#include "core/event/event.h"

enum frame_kind {
	FRAME_PYTHON,
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_MARKER, /* truncated, unreadable, no Python frame, unknown definition */
};

/* A frame, decoded. Strings belong to the trace. */
struct frame {
	const char *function;	/* qualified name; markers: "[truncated]" and the like */
	const char *file;	/* as the program knew it; NULL where there is none */
	uint32_t line;		/* 0: none */
	uint32_t function_line; /* first line of the function; 0: none */
	enum frame_kind kind;
};

/* A node of a chain: index = node id. Id 0 is the empty chain. */
struct trace_node {
	uint32_t parent;
	uint32_t function; /* index of struct trace_function */
	uint32_t line;
	uint8_t kind;	 /* enum frame_kind */
	uint8_t flags;	 /* enum node_flag */
	uint8_t defined; /* false: no definition was read */
};

/* A function: equal (name, file, first line, kind) is one function. Index 0 is "[unknown]". */
struct trace_function {
	const char *name;
	const char *file; /* NULL: none */
	uint32_t line;	  /* first line, 0: none */
	uint8_t kind;	  /* enum frame_kind */
};

struct trace_event {
	const char *name; /* "cpu-time" */
	const char *unit; /* "ns" or "events" */
	uint64_t period;
	uint64_t count;	     /* exact final count of the event, all threads; 0: not known */
	const char *trigger; /* "cpu-timer", "perf-sigtrap" */
	bool user_only;	     /* the kernel's side was refused to the recorder */
	uint64_t jitter;     /* a period was drawn, at most so far from `period`; 0: all the same */
};

struct trace_thread {
	uint32_t pid, tid;
	const char *name;
	uint64_t start_ns, end_ns;
	uint64_t cpu_ns; /* exact; 0: not known */
	uint64_t samples, lost, overrun, voluntary_switches;
	/* With --wall, exact: how often it did not run and for how long; what has a stack of that.
	 */
	uint64_t waits, waited_ns, waits_seen, waits_seen_ns;
};

struct trace_process {
	uint32_t pid, ppid;
	const char *command;
	bool recorded;
	const char *reason; /* why not recorded; NULL */
};

struct trace_count {
	const char *key; /* "buffer_full" */
	uint64_t count;
};

struct trace_interpreter {
	uint32_t pid;
	const char *name;    /* "CPython 3.11.2" */
	const char *path;    /* of the executable */
	const char *problem; /* why its stacks are not read; NULL: they are */
	bool has_no_lock;    /* a free-threaded build: nobody holds or awaits its lock */
};

/* An overflow of an event, or a wait of a thread: then time_ns is its begin. */
struct trace_sample {
	uint64_t time_ns;
	uint32_t thread; /* index into trace->threads */
	uint32_t event;
	uint32_t native, python; /* nodes */
	uint64_t count : 56;	 /* at most SAMPLE_COUNT_MAX: two years of ns */
	uint64_t state : 8;	 /* enum sample_state; a wait's is STATE_LOCK or above */
};

#define SAMPLE_COUNT_MAX ((1ull << 56) - 1)

static inline bool state_is_wait(unsigned int state)
{
	return state >= STATE_LOCK;
}

/* With --delay or --duration: in which samples were wanted, and what counts and losses are of. */
struct trace_window {
	bool given;
	uint64_t delay_ns, duration_ns; /* duration 0: to the end */
	uint64_t begin_ns;		/* 0: it has not begun */
	uint64_t end_ns;		/* 0: it has not ended, or that is not known */
};

/* What --wall says of all threads. */
struct trace_wall {
	uint32_t event;	    /* that waits count as */
	uint64_t period_ns; /* between glances; 0: recorded without --wall */
	uint64_t waits, waited_ns, seen, seen_ns, rejected;
};

struct trace {
	const char *const *command; /* nr_command words */
	size_t nr_command;
	const char *working_directory;
	const char *host, *kernel, *cpu_model;
	uint32_t nr_cpus;
	const char *clock;   /* "monotonic" */
	const char *version; /* of the pathprof that recorded */
	const char *trigger;
	uint64_t start_ns, end_ns, tick_ns;
	bool complete; /* false: the recorder did not finish (killed, disk full) */
	uint64_t handler_ns, recorder_ns;
	uint64_t unseen_cpu_ns; /* CPU time of the process in threads that were not sampled */
	struct trace_event *events;
	size_t nr_events;
	struct trace_thread *threads;
	size_t nr_threads;
	struct trace_process *processes;
	size_t nr_processes;
	struct trace_interpreter *interpreters;
	size_t nr_interpreters;
	struct trace_count *lost; /* reasons with a count above 0 */
	size_t nr_lost;
	struct trace_count *degraded;
	size_t nr_degraded;
	struct trace_function *functions;
	size_t nr_functions;
	struct trace_node *nodes; /* by id */
	size_t nr_nodes;
	struct trace_sample *samples; /* in stream order, not sorted by time; waits are the last */
	size_t nr_samples;
	size_t nr_waits; /* of the samples; the others are overflows */
	struct trace_wall wall;
	bool only_locked;  /* --gil: overflows without the interpreter lock were left out */
	uint64_t left_out; /* that many */
	bool has_no_lock;  /* each interpreter whose stacks are read has none */
	bool knows_lock;   /* some sample's thread held the interpreter lock: states tell it */
	uint32_t state_nodes[NR_SAMPLE_STATES]; /* a marker frame "[waiting]"; 0: none */
	const char *const *problems; /* sentences: what of the recording could not be read */
	size_t nr_problems;
	const char *const *notes; /* sentences of the recorder: what it could not see */
	size_t nr_notes;
	int64_t clock_offset_ns; /* CLOCK_REALTIME minus the recording's clock; 0: not known */
	bool ended; /* the recorder lived to the end, complete or not; false: it records, or died */
	const char *const *headlines; /* sentences of the recorder that come before all else */
	size_t nr_headlines;
	struct trace_window window;
	bool live; /* it is being recorded; end_ns is when it was read */
	struct trace_private *private;
};

/* Called with what is done and what there is to do, in bytes; may be NULL. */
typedef void (*trace_progress)(void *user, uint64_t done, uint64_t total);

/**
 * trace_open - read a recording whole
 * @path: directory or archive
 * Returns 0, or a negative errno with a sentence in @err: not there, not a recording, newer
 * version. Damage that leaves something readable is no error: see problems.
 * Cost: one pass; 10^6 samples in well under a second; about 40 bytes a sample.
 */
int trace_open(const char *path, trace_progress progress, void *user, struct trace **ret_trace,
	       struct errbuf *err);

/** trace_find_event - the index of an event by its name. 0, or -ENOENT with a sentence */
int trace_find_event(const struct trace *trace, const char *name, uint32_t *ret_event,
		     struct errbuf *err);

/**
 * trace_keep_event - leave only one event and its samples; its index is 0 then
 * Losses stay as they are, being of the recording. Returns 0, or -ENOENT with a sentence.
 */
int trace_keep_event(struct trace *trace, const char *name, struct errbuf *err);

/** trace_free - NULL is allowed */
void trace_free(struct trace *trace);

/** trace_frame - the decoded frame of a node id, also of one that was never defined */
struct frame trace_frame(const struct trace *trace, uint32_t node);

#endif
