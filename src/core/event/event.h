/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary: what a recording consists of, in the words that every room uses.
 *
 *   event    what is counted or timed (cpu-time, page-faults, cycles); a recording has 1 to 8
 *   sample   one overflow of an event: a time, a node of each call chain, a count
 *   node     one frame in a call chain: its parent node and where it stands; a chain is a node
 *   code     a Python code object: names, first line, line table
 *   module   a mapped file with native code
 *   wait     a time in which a thread did not run, with its stack then
 *   loss     an overflow that happened and left no sample, by reason
 *   degraded a sample that was kept but shows less than it could, by reason
 *
 * Names of losses and degradations are keys of `report --json` and of the manifest.
 */
#ifndef PATHPROF_CORE_EVENT_EVENT_H
#define PATHPROF_CORE_EVENT_EVENT_H

#include <stdint.h>

#define EVENTS_MAX	 8 /* events in one recording: two ids each of the 31 of a compact header */
#define EVENT_NAME_BYTES 64 /* with the 0 at its end */

/* How overflows of an event reach the thread that caused them. */
enum trigger {
	TRIGGER_CPU_TIMER = 1, /* POSIX CPU-time timer of the thread, signal 33 */
	TRIGGER_PERF_SIGTRAP,  /* perf event with attr.sigtrap, SIGTRAP */
	TRIGGER_MANUAL,	       /* ticks made by hand: tests and benchmarks */
	TRIGGER_PERF_ASYNC,    /* perf event with F_SETSIG to the thread, one-shot, re-armed */
};

/* Overflows that left no sample. X(enumerator, key, sentence) */
#define LOSS_REASONS(X)                                                                    \
	X(LOSS_BUFFER_FULL, "buffer_full", "no free packet: the recorder did not keep up") \
	X(LOSS_TABLE_FULL, "table_full", "the definition table is full: raise --memory")   \
	X(LOSS_NO_SLOT, "no_slot", "more threads than slots: raise --memory")              \
	X(LOSS_MERGED, "merged", "overflows that piled up before one delivery")            \
	X(LOSS_DELAYED, "delayed",                                                         \
	  "delivered late, after a blocked signal: stack not the event's")                 \
	X(LOSS_THROTTLED, "throttled", "over the rate that the handler accepts")           \
	X(LOSS_NESTED, "nested", "arrived while a sample was being taken")                 \
	X(LOSS_DISK, "disk", "could not be written to the recording's directory")          \
	X(LOSS_LATE_ARMING, "late_arming", "in a thread before its event was armed")       \
	X(LOSS_KERNEL_THROTTLED, "kernel_throttled",                                       \
	  "the kernel stopped the event until its next tick, above "                       \
	  "kernel.perf_event_max_sample_rate: raise that, or "                             \
	  "kernel.perf_cpu_time_max_percent, by which the kernel lowers it")               \
	X(LOSS_DESCRIPTOR, "descriptor",                                                   \
	  "where the program had closed the event's descriptor and it could not be had "   \
	  "again: from then on the thread was not sampled")

enum loss_reason {
#define X(id, key, sentence) id,
	LOSS_REASONS(X)
#undef X
		NR_LOSS_REASONS
};

/* Samples that show less than they could. X(enumerator, key, sentence) */
#define DEGRADED_REASONS(X)                                                                        \
	X(DEGRADED_TRUNCATED, "truncated", "deeper than the frames that one sample keeps")         \
	X(DEGRADED_UNREADABLE, "unreadable", "a frame could not be read")                          \
	X(DEGRADED_FAULTS_BLOCKED, "faults_blocked", "the program blocks SIGSEGV: stack not read") \
	X(DEGRADED_NO_INTERPRETER, "no_interpreter", "the interpreter's layout is not known")      \
	X(DEGRADED_JIT_POSITION, "jit_position",                                                   \
	  "run by the JIT: the leaf's line may be an earlier one")

enum degraded_reason {
#define X(id, key, sentence) id,
	DEGRADED_REASONS(X)
#undef X
		NR_DEGRADED_REASONS
};

/**
 * loss_key, loss_sentence - the JSON key and the sentence of a reason
 * degraded_key, degraded_sentence - the same for degradations
 * Return NULL for a number that is no reason.
 */
const char *loss_key(unsigned int reason);
const char *loss_sentence(unsigned int reason);
const char *degraded_key(unsigned int reason);
const char *degraded_sentence(unsigned int reason);

/* What a node is. Stored: numbers never change their meaning. */
enum node_kind {
	NODE_NONE = 0,	     /* not committed; node 0, the empty chain */
	NODE_PYTHON = 1,     /* owner: code, position: code unit (2 bytes) of the instruction + 1 */
	NODE_NATIVE = 2,     /* owner: module, position: address in the module */
	NODE_KERNEL = 3,     /* owner: 0, position: kernel address */
	NODE_TRUNCATED = 4,  /* marker: frames towards the root were left out */
	NODE_UNREADABLE = 5, /* marker: frames towards the root could not be read */
};

enum node_flag {
	NODE_FLAG_ENTRY = 1 << 0, /* this Python frame was entered from native code (is_entry) */
	NODE_FLAG_LOCK_HELD = 1 << 1, /* of a leaf: the thread held the interpreter lock */
};

/* What a thread that did not run stood for. Stored. */
enum wait_kind {
	WAIT_OTHER = 1,	   /* in a system call or a page fault: sleep, lock, file, socket, child */
	WAIT_LOCK = 2,	   /* for the interpreter lock */
	WAIT_RUNNABLE = 3, /* ready, but without a CPU: it was preempted */
	WAIT_UNSEEN = 4,   /* nobody looked, and no look stands for it: not known */
};

/* What a thread did at a sample; a wait is a sample as well. X(enumerator, key) */
#define SAMPLE_STATES(X)                                                                           \
	X(STATE_RUNNING, "running") /* on a CPU; of a recording that knows the lock: without it */ \
	X(STATE_LOCKED, "gil")	    /* on a CPU, holding the interpreter lock */                   \
	X(STATE_LOCK, "gil-wait")   /* waiting for the interpreter lock */                         \
	X(STATE_RUNNABLE, "runnable") /* ready, without a CPU */                                   \
	X(STATE_WAITING, "waiting")   /* waiting otherwise */                                      \
	X(STATE_UNSEEN, "unseen")     /* not on a CPU; more is not known */

enum sample_state {
#define X(id, key) id,
	SAMPLE_STATES(X)
#undef X
		NR_SAMPLE_STATES
};

/** state_key - the name of a state in options and JSON; NULL for a number that is none */
const char *state_key(unsigned int state);

/* Which line table a code's bytes are. Stored. */
enum line_table_kind {
	LINE_TABLE_NONE = 0,
	LINE_TABLE_CPYTHON_311 = 1, /* PEP 626 location table, CPython 3.11 and later */
};

/* CPU time of the process that no thread's samples stand for; behind the time itself. */
#define UNSEEN_CPU_SENTENCE \
	"of CPU time went to threads that were not sampled, or to the ends of many short ones"

#endif
