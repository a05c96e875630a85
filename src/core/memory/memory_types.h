/* SPDX-License-Identifier: MIT */
/*
 * The recording's shared memory: its layout.
 *
 * One memfd per recording, made by the recorder and mapped by every recorded process. The
 * agent, mostly in a signal handler, claims a slot for a thread, interns stacks into the
 * definition table and writes CTF events into packets; the recorder reads all of it from its own
 * mapping, also after the target was killed. No lock, no allocation, no descriptor in the target:
 * every hand-over is one atomic word.
 *
 *   offset 0   struct memory_header          sizes, configuration, heads of the lists, tails
 *   slots      struct slot[nr_slots]         one per live thread; state by compare-and-swap
 *   packets    nr_packets * packet_bytes     struct packet_control, then the CTF packet
 *   nodes      struct node[nr_nodes]         append-only, index = node id; 0 is the empty chain
 *   node_index u32[node_index_slots]         open addressing: node id or 0
 *   codes      struct code[nr_codes]         append-only, index = code id; 0 is no code
 *   code_index u32[code_index_slots]         open addressing: code id or 0
 *   modules    struct module[nr_modules]     append-only
 *   processes  struct process[nr_processes]  append-only; children that were seen
 *   text       u8[text_bytes]                append-only: names and line tables, as in the target
 *
 * The file is sparse: the bound costs address space, what is touched costs memory.
 *
 * Who writes what:
 *   header     the recorder before anyone maps it, but for the atomics
 *   slot       from SLOT_CLAIMED to SLOT_ENDED its thread alone (before the thread runs, its
 *              creator); `arming` both sides; from SLOT_ENDED to SLOT_FREE the recorder alone
 *   packet     PACKET_OPEN: the slot's thread; PACKET_FULL: the recorder
 *   nodes, ... whoever got the index from the tail, until the committing store; then nobody
 */
#ifndef PATHPROF_CORE_MEMORY_MEMORY_TYPES_H
#define PATHPROF_CORE_MEMORY_MEMORY_TYPES_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/event/event.h"

#define MEMORY_MAGIC   0x314d454d46525050ull /* "PPRFMEM1" */
#define MEMORY_VERSION 5u

#define FRAMES_MAX	  1024 /* frames a sample keeps; deeper stacks get NODE_TRUNCATED at the root */
#define WALK_MEMO_ENTRIES 64 /* code objects remembered within one walk */

#define MEMORY_CPYTHON_BYTES 256
#define MEMORY_PATH_BYTES    256

/* Bounds of the regions; the recorder chooses them from --memory. */
struct memory_sizes {
	uint32_t nr_slots;
	uint32_t nr_packets;
	uint32_t packet_bytes; /* with the control block; a multiple of 4096 */
	uint32_t nr_nodes;
	uint32_t node_index_slots; /* a power of two, at least 2 * nr_nodes */
	uint32_t nr_codes;
	uint32_t code_index_slots; /* a power of two, at least 2 * nr_codes */
	uint32_t nr_modules;
	uint32_t nr_processes;
	uint32_t pad;
	uint64_t text_bytes;
};

/* One event of the recording, as agents need to know it. */
struct memory_event {
	uint64_t period;     /* events per sample; ns for time */
	uint32_t trigger;    /* enum trigger */
	uint32_t inherited;  /* 1: one event for all threads; nothing is armed per thread */
	uint64_t min_gap_ns; /* rate limit: a tick sooner after the event's last one is a loss */
	char name[EVENT_NAME_BYTES];
	uint64_t jitter; /* TRIGGER_PERF_ASYNC: a period is drawn, at most so far from `period` */
};

/* What the recorder needs to read the interpreter's stacks from outside. */
struct memory_interpreter {
	_Atomic uint32_t known; /* 1: the rest is valid */
	uint32_t runtime_bytes; /* size of the interpreter's state at its runtime's address */
	_Alignas(8) uint8_t cpython[MEMORY_CPYTHON_BYTES]; /* a struct cpython, without pointers of
							    * the agent's own: core/cpython */

	/* One that was loaded after the start: hello told of none. */
	_Atomic uint32_t late; /* enum memory_late; the rest is valid if it is not NONE */
	uint32_t late_version; /* as Py_Version; 0: not known */
	char late_path[MEMORY_PATH_BYTES];
};

enum memory_late {
	MEMORY_LATE_NONE = 0,
	MEMORY_LATE_READ,
	MEMORY_LATE_UNREADABLE,
};

/* What the set-up of threads by the recorder cost them. */
struct memory_arming {
	_Atomic uint64_t threads;
	_Atomic uint64_t waited_ns, longest_ns;
	_Atomic uint64_t uncovered_ns; /* CPU time that they ran before */
};

struct memory_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* sizeof(struct memory_header) */
	uint64_t total_bytes;
	struct memory_sizes sizes;
	uint64_t slots_at, packets_at, nodes_at, node_index_at, codes_at, code_index_at, modules_at,
		processes_at, text_at; /* offsets of the regions */

	uint32_t nr_events;
	uint32_t tick_ns; /* the scheduler's tick: the shortest interval of a CPU timer */
	struct memory_event events[EVENTS_MAX];
	uint32_t root_pid; /* the process that is recorded */
	uint32_t pad;

	/* Each line below is written by many; the recorder's words apart from the agents'. */
	_Alignas(64) _Atomic uint64_t heartbeat_ns; /* recorder's last sign of life, MONOTONIC */
	_Atomic uint32_t recording; /* 1 while samples are wanted (--delay, --duration) */
	_Atomic uint32_t closed;    /* 1 when the recorder wants no more of anything */

	_Alignas(64) _Atomic uint32_t doorbell;	    /* futex of the recorder: bumped and woken */
	_Alignas(64) _Atomic uint64_t free_packets; /* stack: tag << 32 | index + 1 */
	_Alignas(64) _Atomic uint64_t full_packets; /* stack, the same; the recorder takes all */
	_Alignas(64) _Atomic uint32_t nodes_used;   /* next free index, may pass nr_nodes */
	_Atomic uint32_t codes_used;
	_Atomic uint32_t modules_used; /* 0 is no module, as with nodes and codes */
	_Atomic uint32_t processes_used;
	_Atomic uint64_t text_used;
	_Atomic uint32_t slots_hint; /* where to look first for a free slot */

	_Alignas(64) _Atomic uint64_t lost[NR_LOSS_REASONS]; /* of threads without a slot */

	/* Written by the agent of each image at its start, cleared by the recorder before it. */
	struct memory_interpreter interpreter;
	uint32_t only_locked; /* keep only samples of threads that hold the interpreter lock */
	uint64_t seed;	      /* of all that is drawn */
	struct memory_arming arming;
};

enum slot_state {
	SLOT_FREE = 0,
	SLOT_CLAIMED, /* its thread is being made; no samples yet */
	SLOT_ACTIVE,
	SLOT_ENDED, /* the thread has ended: the recorder drains and frees it */
};

/*
 * Hand-over with the recorder about perf events, and a futex both wait on:
 *   thread: NONE -> REQUESTED, ring the doorbell, wait until it is not REQUESTED (bounded)
 *   recorder: REQUESTED -> ARMED or REFUSED (arm_error set before)
 *   thread, waited long enough: REQUESTED -> LATE; recorder -> ARMED or REFUSED all the same
 *   exec wrapper: ARMED -> DISABLE, ring, wait; recorder -> DISABLED; exec failed: -> ENABLE,
 *   ring, wait; recorder -> ARMED. DISABLE and ENABLE concern all events of the process.
 *
 * TRIGGER_PERF_ASYNC: with ARMED event_fds[] are the recorder's numbers of the events, which the
 * thread takes duplicates of (own_fds[]) and by which a signal names its event. The thread arms
 * them; of one that is LATE the recorder does, and the thread takes them at the first overflow.
 *
 * First periods are drawn at random. An event of which bit e of `first_period` is set (before
 * ARMED, by the recorder) has that of `first[]` still. Its first overflow is a sample, of those
 * behind it each that makes a whole period full. The thread itself sets the whole period at the
 * first (TRIGGER_PERF_ASYNC), or has the recorder set it while it stands still:
 *   thread: whole_asked NONE -> event + 1, ring, wait (bounded)
 *   recorder: event + 1 -> AT_WORK; sets what is left of the period that the thread is in (a new
 *   first period, where it went on with the former one) or clears the bit; -> NONE
 *   thread, waited long enough: event + 1 -> NONE, and goes on with the first period
 * or has it end the event, which the thread's own handler sets off each time:
 *   thread: whole_asked NONE -> event + 1 | WHOLE_END, ring, wait (bounded)
 *   recorder: -> AT_WORK; disables it for good; -> NONE
 */
enum arm_state {
	ARM_NONE = 0, /* nothing asked of the recorder (CPU timers) */
	ARM_REQUESTED,
	ARM_ARMED,
	ARM_REFUSED,
	ARM_DISABLE,
	ARM_DISABLED,
	ARM_ENABLE,
	ARM_LATE,
};

enum whole_period_asked { /* in between: event + 1 */
			  WHOLE_NONE = 0,
			  WHOLE_END = 1u << 30,
			  WHOLE_AT_WORK = 1u << 31,
};

/* One frame of a thread's last stack, root first. A marker has neither code nor identity. */
struct stack_frame {
	uint64_t code_address; /* of the code object in the target; a hint, never trusted */
	uint64_t identity;     /* content hash of the code object; 0: marker */
	uint32_t code;	       /* id in the definition table */
	uint32_t where;	       /* position << 1 | is_entry */
	uint32_t node;	       /* of the chain from the root to here */
	uint32_t kind;	       /* enum node_kind */
};

struct walk_memo {
	uint64_t code_address;
	uint64_t identity;
	uint32_t code;
	uint32_t epoch; /* the slot's walk_epoch when it was written; else stale */
};

struct slot {
	_Alignas(64) _Atomic uint32_t state; /* enum slot_state */
	_Atomic uint32_t arming;	     /* enum arm_state; a futex */
	int32_t arm_error;		     /* negative errno of a REFUSED */
	uint32_t generation;		     /* bumped at each claim */
	uint32_t pid, tid;
	_Atomic uint32_t busy; /* the handler is inside: a nested tick is a loss */
	uint32_t busy_event;   /* whose sample it takes */
	uint32_t nested;       /* ticks in a row that found it busy */
	uint64_t busy_at;      /* its frame's address; 0: not known */
	uint64_t stuck_at;     /* breakpoints set off in the handler: the registers it returns to */
	uint64_t stuck;	       /* so often without a step of the program's in between */
	uint32_t packet;       /* index + 1 of the open packet; 0: none */
	uint32_t packet_seq;   /* of the next packet of this stream; survives reuse */
	uint32_t walk_epoch;
	_Atomic uint32_t first_period; /* bit e: event e has its first period still */
	_Atomic uint32_t first_seen;   /* bit e: its first overflow came */
	_Atomic uint32_t whole_asked;  /* enum whole_period_asked, or event + 1; a futex */
	int32_t event_fds[EVENTS_MAX]; /* TRIGGER_PERF_ASYNC: the recorder's descriptors; -1: none
					*/
	int32_t own_fds[EVENTS_MAX];   /* the thread's own of the same events; -1: none */
	uint32_t previous_depth;       /* frames of stack[] that are one valid chain */
	uint32_t holds_lock;	       /* the interpreter's, in the sample being taken */
	uint32_t program_blocks;       /* signals kept out of its mask: agent/guard/agent.h */
	uint64_t lost_before;	       /* losses of the slot's earlier threads */
	uint64_t last_ns;	       /* time of the last event of this stream; survives reuse */
	/* The first period, while its bit is set; with jitter behind it the present one. */
	uint64_t first[EVENTS_MAX];
	uint64_t counted[EVENTS_MAX];	  /* jitter: the event's count at its last overflow */
	uint64_t random;		  /* state of the draw of jittered periods */
	int64_t since_sample[EVENTS_MAX]; /* counted by first periods since a sample was due */
	uint64_t early[EVENTS_MAX]; /* so far before one is due it is taken: drawn below first */
	uint64_t whole_again_ns;    /* not to be asked for before */
	uint64_t last_tick_ns[EVENTS_MAX];
	uint64_t
		doubted_at[EVENTS_MAX]; /* TRIGGER_PERF_ASYNC: count when last armed on suspicion */
	uint64_t start_ns, end_ns;	/* MONOTONIC; end_ns 0 while it lives */
	uint64_t cpu_ns;		/* exact CPU time of the thread, at its end */
	uint64_t voluntary_switches;	/* at its end */
	uint64_t heartbeat_seen;	/* for the check that the recorder lives */
	uint32_t heartbeat_ticks;	/* ticks since heartbeat_seen changed */
	int32_t timer;			/* kernel's id of the CPU timer, -1: none */
	uint64_t start_routine, start_argument; /* of the thread; for the trampoline alone */
	char name[16];

	_Atomic uint64_t samples[EVENTS_MAX];
	_Atomic uint64_t weight[EVENTS_MAX]; /* sum of the counts of the samples */
	_Atomic uint64_t
		refused[EVENTS_MAX]; /* overflows that came and left no sample; in `lost` */
	_Atomic uint64_t overrun;    /* ticks that a CPU timer merged */
	_Atomic uint64_t handler_ns; /* time spent in the handler */
	_Atomic uint64_t lost[NR_LOSS_REASONS];
	_Atomic uint64_t degraded[NR_DEGRADED_REASONS];
	_Atomic uint64_t left_out; /* overflows without the interpreter lock, not wanted */

	struct walk_memo memo[WALK_MEMO_ENTRIES];
	struct stack_frame stack[FRAMES_MAX + 1]; /* of the last sample, root first */
	uint64_t walk[FRAMES_MAX][2]; /* the walk's frames as core/cpython has them, leaf first */
};

enum packet_state {
	PACKET_FREE = 0,
	PACKET_OPEN,
	PACKET_FULL,
};

/* In front of each CTF packet in memory; not stored. */
struct packet_control {
	_Atomic uint32_t state; /* enum packet_state */
	_Atomic uint32_t next;	/* link in the free or full stack: packet_stack.h */
	uint32_t slot;
	uint32_t seq;
	uint32_t pid, tid;
	_Atomic uint32_t used; /* committed bytes of the CTF packet, prefix included */
	uint32_t samples;      /* events in it */
	uint64_t begin_ns;
	_Atomic uint64_t end_ns;
	uint64_t lost; /* the slot's losses when the packet was opened */
	uint8_t pad[8];
};

_Static_assert(sizeof(struct packet_control) == 64, "packets start on a cache line");

/* A frame in a call chain. Committed by the release store of `where`; 0: not committed. */
struct node {
	uint32_t parent;
	uint32_t owner;		      /* code or module id; 0 for markers and kernel frames */
	_Atomic uint64_t where;	      /* kind << 56 | flags << 48 | position (48 bits) */
	_Atomic uint32_t first_child; /* head of the chain of children; 0: none */
	uint32_t next_sibling;	      /* in the parent's chain, set before it is published */
};

_Static_assert(sizeof(struct node) == 24, "nodes are packed");

#define NODE_POSITION_MASK ((1ull << 48) - 1)

static inline uint64_t node_where(enum node_kind kind, unsigned int flags, uint64_t position)
{
	return (uint64_t)kind << 56 | (uint64_t)flags << 48 | (position & NODE_POSITION_MASK);
}

/* A Python code object. Committed by the release store of `committed`. */
struct code {
	_Atomic uint32_t committed; /* 1: all else is valid */
	uint32_t first_line;
	uint64_t identity;			  /* content hash; equal identity, equal code */
	uint64_t name_at, file_at, line_table_at; /* offsets in the text region */
	uint32_t name_length, file_length;	  /* characters */
	uint32_t line_table_length;		  /* bytes */
	uint8_t name_width, file_width; /* bytes per character: 1 (Latin-1 or ASCII), 2, 4 */
	uint8_t line_table_kind;	/* enum line_table_kind */
	uint8_t pad;
};

struct module {
	_Atomic uint32_t committed;
	uint32_t pad;
	uint64_t start, end, file_offset;
	uint8_t build_id[20];
	uint32_t path_length;
	uint64_t path_at;
};

enum process_how {
	PROCESS_FORKED = 1, /* a fork child, seen from its atfork handler */
	PROCESS_EXECED,	    /* a child about to exec */
	PROCESS_SPAWNED,    /* posix_spawn, system, popen */
};

/* A process that the target started; not recorded. */
struct process {
	_Atomic uint32_t committed;
	uint32_t how;	    /* enum process_how */
	uint32_t pid, ppid; /* pid 0: not known (system, popen) */
	uint64_t start_ns;
	char command[64]; /* path or command line, cut */
};

#endif
