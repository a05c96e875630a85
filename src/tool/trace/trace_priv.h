/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: a trace while it is being read.
 *
 *   input.c        the files                          archive.c   the same from one file
 *   manifest.c     manifest.json
 *   packets.c      packets and event headers of any stream
 *   definitions.c  ust/definitions: codes, raw nodes, modules, threads, processes
 *   nodes.c        raw nodes to functions and lines
 *   threads.c      which thread a packet is of
 *   samples.c      ust/slot_NNNN
 *   waits.c        ust/waits
 *   trace.c        the order of all this; opening and freeing
 */
#ifndef PATHPROF_TOOL_TRACE_TRACE_PRIV_H
#define PATHPROF_TOOL_TRACE_TRACE_PRIV_H

#include "core/event/ctf.h"
#include "tool/trace/arena.h"
#include "tool/trace/input.h"
#include "tool/trace/map.h"
#include "tool/trace/trace.h"

#define MANIFEST_VERSION   1
#define TRACE_DEPTH_MAX	   4096 /* nodes in a chain; the agent keeps 1024 and a marker */
#define TRACE_PROBLEMS_MAX 100	/* sentences; what more there is is counted */

enum {
	FUNCTION_UNKNOWN = 0,	/* "[unknown]" */
	FUNCTION_NO_PYTHON = 1, /* "[no Python frame]": node 0 */
};

struct trace_private {
	struct arena arena;
	uint8_t *definitions; /* ust/definitions; names and files point into it */
};

/* A code object as its definition has it; strings and table point into the definitions. */
struct raw_code {
	const char *name, *file;
	const uint8_t *line_table;
	uint32_t line_table_length;
	uint32_t first_line;
	uint32_t function; /* filled by nodes_resolve() */
	uint8_t line_table_kind;
	uint8_t defined;
};

struct raw_module {
	const char *path; /* NULL: not defined */
	uint32_t function;
};

struct raw_node {
	uint64_t position;
	uint32_t parent, owner;
	uint8_t kind, flags, defined;
};

struct reading {
	struct trace *trace; /* arrays below become its own when all is read */
	struct arena *arena;
	struct raw_code *codes; /* by id */
	struct raw_module *modules;
	struct raw_node *nodes;
	size_t nr_codes, nr_modules, nr_nodes; /* highest id + 1 */
	size_t room_codes, room_modules, room_nodes;
	uint32_t id_limit; /* ids beyond are damage: there are not bytes for as many definitions */
	size_t room_functions, room_threads, room_processes;
	size_t nr_recorded_threads; /* the first threads have records, sorted by pid, tid, start */
	struct map packet_threads;  /* pid << 32 | tid: index of a thread without a record */
	const char *problems[TRACE_PROBLEMS_MAX];
	size_t nr_problems, nr_more_problems;
	uint64_t last_ns;	   /* the latest time seen */
	uint64_t discarded;	   /* sum over streams of the packets' events_discarded */
	uint64_t recorded_samples; /* sum over the threads' records */
	trace_progress progress;
	void *user;
	uint64_t bytes_done, bytes_total;
};

/** reading_problem - add a sentence; out of memory drops it, and the count goes up */
void reading_problem(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * array_fit - make room for index @index, doubling; new memory is zeroed
 * @elements, @room: the array and how many elements it has room for
 */
int array_fit(void **elements, size_t *room, size_t index, size_t element_bytes);

/**
 * text_clean - make a text from a file fit for terminals and JSON, in place
 * Invalid UTF-8 and control characters, which the recorder never writes, become '?'.
 * @keep_lines: newlines and tabs may stay
 */
void text_clean(char *text, size_t length, bool keep_lines);

/* ---- packets.c ---- */

/* A walk over the packets of a stream file, and over the events of a packet. */
struct packets {
	const uint8_t *bytes;
	size_t length;
	size_t next;			 /* offset of the next packet */
	size_t at, end;			 /* of the packet's events: what is left of them */
	uint64_t now_ns;		 /* time of the last event read, or the packet's begin */
	struct ctf_packet_prefix prefix; /* of this packet */
	const char *damage; /* why the walk ended, a clause; NULL: at the end of the file */
	uint64_t missing;   /* packets left out in front of this one */
	uint64_t nr_read;
};

void packets_init(struct packets *packets, const uint8_t *bytes, size_t length);

/**
 * packets_next - go to the next packet, whatever is left of this one
 * @stream_id: CTF_STREAM_SAMPLES or CTF_STREAM_DEFS
 * A packet that the file ends in is given as far as it goes; `damage` is then set already.
 * Returns false at the end, and where `damage` says that the rest cannot be read.
 */
bool packets_next(struct packets *packets, uint32_t stream_id);

/**
 * packets_event - read the header of the packet's next event
 * Returns false at the packet's end, or where less than a header is left.
 */
static inline bool packets_event(struct packets *packets, uint32_t *ret_id)
{
	const uint8_t *at = packets->bytes + packets->at;
	size_t left = packets->end - packets->at;
	const uint32_t low_bits = CTF_COMPACT_RANGE_NS - 1;
	uint32_t compact, low;

	if (left < sizeof(compact))
		return false;
	memcpy(&compact, at, sizeof(compact));
	if ((compact & 31) != CTF_ID_EXTENDED) {
		low = compact >> 5;
		packets->now_ns += (low - (uint32_t)packets->now_ns) & low_bits;
		packets->at += sizeof(compact);
		*ret_id = compact & 31;
		return true;
	}
	if (left < 13)
		return false;
	memcpy(ret_id, at + 1, sizeof(*ret_id));
	memcpy(&packets->now_ns, at + 5, sizeof(packets->now_ns));
	packets->at += 13;
	return true;
}

/* ---- the files ---- */

int manifest_read(struct reading *reading, const uint8_t *bytes, size_t length, struct errbuf *err);
int definitions_read(struct reading *reading, uint8_t *bytes, size_t length, struct errbuf *err);
int nodes_resolve(struct reading *reading);
int threads_sort(struct reading *reading);
int threads_of_packet(struct reading *reading, const struct ctf_packet_prefix *prefix,
		      uint32_t *ret_thread);
/* The same for a wait; the prefix has its thread, begin and end. */
int threads_of_wait(struct reading *reading, const struct ctf_packet_prefix *wait,
		    uint32_t *ret_thread);
int waits_read(struct reading *reading, const char *name, const uint8_t *bytes, size_t length);
int samples_read(struct reading *reading, const char *name, const uint8_t *bytes, size_t length);

/** trace_read - trace_open() for an input; also for tests and fuzzing */
int trace_read(const struct input *input, trace_progress progress, void *user,
	       struct trace **ret_trace, struct errbuf *err);

#endif
