/* SPDX-License-Identifier: MIT */
/*
 * What the files of the recorder share. Private to the room.
 *
 * Two threads: the main one (launch, meet, wait; everything at start and end) and the service
 * thread between service_start() and service_stop(). `lock` guards what both touch meanwhile:
 * everything from `memory` on down to `notes`.
 */
#ifndef PATHPROF_TOOL_RECORDER_RECORDER_TYPES_H
#define PATHPROF_TOOL_RECORDER_RECORDER_TYPES_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/guard/handshake.h"
#include "core/memory/memory.h"
#include "tool/recorder/recorder.h"

#define SLOT_NONE	 UINT32_MAX /* a thread record of a thread that had no slot */
#define INTERPRETERS_MAX 16
#define FOREIGN_MAX	 256 /* threads without a slot that are listed */
#define CHILDREN_MAX	 256 /* children that only /proc showed */
#define PENDING_MEETINGS 16
#define POLL_NS		 250000000ull  /* heartbeat, and looks into /proc; at first */
#define POLL_SLOW_NS	 1000000000ull /* later: a look costs some 0.1 ms, samples 1 ms a second */
#define POLL_SETTLED_NS	 2000000000ull /* from the start of the recording */
#define FLUSH_NS	 5000000000ull /* packets that are not full: what a killed recorder loses */

/* All that a recording holds; directory.c removes these names and no other. */
#define RECORDING_MANIFEST     "manifest.json"
#define RECORDING_MANIFEST_NEW "manifest.json.new"
#define RECORDING_SOCKET       "socket"
#define RECORDING_TRACE	       "ust" /* the folder of the following */
#define RECORDING_METADATA     "metadata"
#define RECORDING_DEFINITIONS  "definitions"
#define RECORDING_WAITS	       "waits"
#define RECORDING_STREAM       "slot_" /* and a number */

struct directory {
	char path[PATH_MAX]; /* absolute */
	int fd;
	int ust_fd;
	bool moved; /* an older recording was moved to path.old */
};

/* Writes ust/definitions: one open packet that is flushed when it is large or needed. */
struct definitions {
	int ust_fd;
	uint8_t uuid[16];
	uint8_t *packet; /* prefix, then events */
	size_t used, capacity;
	uint64_t begin_ns, last_ns;
	uint64_t seq;
	uint64_t file_bytes;
	uint32_t nodes_done, codes_done;   /* ids below were written, or are in the holes */
	uint32_t *node_holes, *code_holes; /* reserved, but not committed when we came by */
	size_t nr_node_holes, nr_code_holes;
	uint64_t dropped; /* definitions that could not be kept for a full disk */
	uint64_t nr_nodes, nr_codes;
};

/* A run of whole events of a packet in memory: parts.c. */
struct part {
	uint32_t end;	  /* offset in the CTF packet */
	uint32_t samples; /* events in it */
	uint64_t last_ns; /* time of its last event */
};

/* How much of a packet is in its stream already. Zero: nothing. */
struct packet_written {
	struct part part;
	uint32_t slot, seq; /* whose packet that was */
	uint32_t due;	    /* committed bytes when a flush came by */
};

/* Beside the events of a set: what shows whether the kernel stopped them for their rate. */
struct throttle {
	bool watches;		     /* the rest is valid */
	bool stopped;		     /* as the events are, around an exec */
	int fds[EVENTS_MAX];	     /* the same events, counted alone; -1: none */
	uint64_t ran_ns[EVENTS_MAX]; /* of the event, when its other was started */
	int64_t begin[EVENTS_MAX];   /* what was missed before the window, in events */
	int64_t end[EVENTS_MAX];     /* and at its end, ... */
	uint32_t end_known;	     /* ... where bit e is set */
};

/* Perf events that were opened together: a thread's, or those that all threads inherit. */
struct event_set {
	bool armed;
	int fds[EVENTS_MAX]; /* valid while armed; -1: none */
	uint32_t over;	     /* bit e: event e was ended, and stays disabled */
	/* How each event overflows: every `each` from the count `from` on, `due_before` before. */
	uint64_t each[EVENTS_MAX], from[EVENTS_MAX], due_before[EVENTS_MAX];
	/* Counts at the edges of the window; 0 where it was armed behind that edge. */
	uint64_t begin[EVENTS_MAX], end[EVENTS_MAX];
	struct throttle throttle;
};

/* The recorder's own side of a slot. */
struct shadow {
	uint64_t file_bytes; /* of the slot's stream */
	uint32_t next_seq;   /* the agent's number of the first packet that is not finished */
	uint64_t more_parts; /* packets in the stream beyond those the agent numbered */
	uint32_t named;	     /* the thread's generation, of which the name is */
	char name[17];	     /* as last seen while it lived; empty: not yet */
	struct event_set events;
};

/* The events that all threads of the image share: opened with its main thread's. */
struct shared_events {
	struct event_set set;
	uint64_t seen[EVENTS_MAX]; /* overflows that came, of the threads that have ended */
	uint64_t nr_threads;	   /* that have ended */
};

struct interpreter {
	uint32_t pid;
	char name[32];
	char path[256];
	char problem[160]; /* empty: its stacks are recorded */
	bool has_no_lock;  /* free-threaded */
};

/* A thread of the program that the agent did not announce. */
struct foreign_thread {
	uint32_t tid;
	uint32_t looks; /* in how many polls it was seen; one may be a thread being made */
	uint64_t first_ns, last_ns;
	uint64_t cpu_ns;
	char name[16];
};

/* A child that the agent did not announce. */
struct child {
	uint32_t pid;
	uint64_t first_ns;
	char command[64];
};

struct totals {
	uint64_t samples;
	uint64_t nr_threads;
	uint64_t lost[NR_LOSS_REASONS];
	uint64_t degraded[NR_DEGRADED_REASONS];
	uint64_t event_count[EVENTS_MAX];
	uint64_t left_out;  /* overflows without the interpreter lock: --gil */
	uint64_t waited_ns; /* by all threads that were watched */
	uint64_t waits, waits_seen, waits_seen_ns, waits_rejected;
	uint64_t handler_ns;
	uint64_t known_cpu_ns;	  /* sum over the threads whose CPU time is known */
	uint64_t leader_cpu_ns;	  /* what of it was the leader's: one thread over all images */
	uint64_t unknown_threads; /* ended without their CPU time being known */
	uint64_t arm_refused, ended_events;
	bool leader_counted;
};

/* When samples are wanted: window.c. */
struct window {
	bool begun, ended;
	uint64_t begin_cpu_ns, end_cpu_ns; /* the process's CPU clock then */
	uint64_t begin_ns, end_ns;	   /* valid once it has begun, has ended */
};

/* What we were started with, for the program to have as well. */
struct inherited {
	sigset_t mask;
	struct rlimit files;
	struct sigaction pipe, file_size;
};

struct recorder {
	const struct record_request *request;
	struct directory directory;
	struct inherited inherited;
	uint8_t uuid[16];
	char secret[33];
	char abstract_name[48];
	char agent[PATH_MAX];
	uint32_t tick_ns;
	uint64_t start_ns, end_ns;
	int64_t clock_offset_ns;
	pid_t root_pid;
	int exit_status;
	int listen_fds[2]; /* abstract, path */
	int meeting_fds[PENDING_MEETINGS];
	unsigned int nr_meetings;

	pthread_t service;
	bool service_runs;
	_Atomic bool service_stops;
	pthread_mutex_t lock;

	struct memory memory;
	int memory_fd;
	struct shadow *shadows;
	uint32_t slots_seen;		/* slots below may be in use */
	uint32_t names_next;		/* the slot whose thread's name is looked at next */
	uint32_t *indices;		/* room for all packets */
	struct packet_written *written; /* one for each packet */
	uint32_t *ended;		/* room for all slots */
	struct definitions definitions;
	struct totals totals;
	struct interpreter interpreters[INTERPRETERS_MAX];
	unsigned int nr_interpreters;
	struct foreign_thread foreign[FOREIGN_MAX];
	unsigned int nr_foreign;
	struct child children[CHILDREN_MAX];
	unsigned int nr_children;
	uint64_t polled_ns, flushed_ns;
	struct memory_ahead ahead; /* the service thread's */
	uint64_t random;	   /* state of the draw of first periods */
	uint64_t files_max;	   /* descriptors that the recorder may have */
	bool events_off;	   /* an exec has them disabled */
	uint64_t seed;		   /* which it began with */
	uint64_t clock_start_ns;   /* what a software clock counts before its thread goes on */
	struct shared_events shared;
	uint64_t sample_rate; /* kernel.perf_event_max_sample_rate at the start */
	uint32_t throttled;   /* bit e: the kernel could stop that event for its rate */
	struct window window;
	struct waits *waits; /* NULL: no --wall */
	bool agent_came;
	bool root_listed; /* COMMAND's own process record was written */
	bool disk_full;
	char *notes[NOTES_MAX];
	unsigned int nr_notes;
	unsigned int nr_headlines; /* the first of the notes: a report begins with them */
};

/* recorder.c */
uint64_t now_ns(void);
void note(struct recorder *recorder, const char *format, ...) __attribute__((format(printf, 2, 3)));

void note_what_is_missing(struct recorder *recorder);

/* summary.c: fill in the details */
void summary_details(const struct recorder *recorder, struct record_result *result);

/* directory.c */
int directory_create(const char *path, struct directory *ret_directory, struct errbuf *err);
void directory_discard(struct directory *directory); /* remove what was made: nothing ran */
void directory_close(struct directory *directory);

/*
 * Make or open for writing a file of a recording, in one of its two folders. @flags: more of
 * open()'s. Returns the descriptor or a negative errno; -EINVAL: no name of the list above.
 */
int directory_open_file(int folder_fd, const char *name, int flags);

/* metadata.c */
int metadata_write(const struct recorder *recorder, struct errbuf *err);
char *metadata_text(const struct recorder *recorder); /* heap, the caller's to free */

/* manifest.c */
int manifest_write(const struct recorder *recorder, bool complete, uint64_t unseen_cpu_ns,
		   struct errbuf *err);

/* launch.c */
void launch_prepare(struct recorder *recorder); /* our own limits and dispositions */
int launch_signals(struct recorder *recorder);	/* block what we take by signalfd */
int launch(struct recorder *recorder, int *ret_not_run, struct errbuf *err);
int launch_wait(struct recorder *recorder, struct errbuf *err);

/* meet.c */
int meet_listen(struct recorder *recorder, struct errbuf *err);
void meet_accept(struct recorder *recorder, int listen_fd);
void meet_hear(struct recorder *recorder, unsigned int meeting);
void meet_late_interpreter(struct recorder *recorder); /* keep what an agent found later */
void meet_close(struct recorder *recorder);

/* service.c */
int service_start(struct recorder *recorder, struct errbuf *err);
void service_stop(struct recorder *recorder);

/* arming.c: with the lock held */
void arming_serve(struct recorder *recorder);
void arming_release(struct recorder *recorder, struct slot *slot);
void arming_end_image(struct recorder *recorder); /* after all its slots were released */
void arming_window_begins(struct recorder *recorder);
void arming_window_ends(struct recorder *recorder);
void arming_count_living(struct recorder *recorder); /* add to the totals what the window holds */

/* clock_start.c: half a millisecond, where there is such a clock; before anything runs */
void clock_start_measure(struct recorder *recorder);

/* counts.c: with the lock held */
void counts_start(uint32_t event, uint64_t each, struct event_set *set);
void counts_period_set(const struct recorder *recorder, uint32_t event, uint64_t each,
		       struct event_set *set);
void counts_settle_slot(struct recorder *recorder, struct slot *slot);
void counts_settle_shared(struct recorder *recorder);

/* throttle.c: with the lock held, but throttle_init() */
void throttle_init(struct recorder *recorder);
void throttle_serve(struct recorder *recorder);				 /* after arming_serve() */
void throttle_settle_slot(struct recorder *recorder, struct slot *slot); /* before its release */
void throttle_settle_shared(struct recorder *recorder); /* before arming_end_image() */
void throttle_window(struct recorder *recorder, bool end);
void throttle_count_living(struct recorder *recorder);
void throttle_note(struct recorder *recorder);

/* drain.c: with the lock held */
uint32_t drain_slots_in_use(struct recorder *recorder);
void drain_round(struct recorder *recorder);
void drain_flush(struct recorder *recorder); /* what is in packets that are not full */
void drain_end_image(struct recorder *recorder, uint64_t end_ns);
uint64_t drain_bytes(const struct recorder *recorder);

/*
 * parts.c: extend @part by the whole events of the packet up to @to bytes. It stops early at what
 * is no event of a recording with @nr_events events.
 */
void part_measure(const uint8_t *ctf, uint32_t to, size_t nr_events, struct part *part);

/* definitions.c: with the lock held */
int definitions_init(struct definitions *definitions, int ust_fd, const uint8_t uuid[16]);
void definitions_release(struct definitions *definitions);
int definitions_take(struct definitions *definitions, const struct memory *memory);
int definitions_flush(struct definitions *definitions);
struct thread_record {
	uint32_t slot, pid, tid;
	uint64_t start_ns, end_ns, cpu_ns, samples, lost, overrun, voluntary_switches;
	const char *name;
};
int definitions_put_thread(struct definitions *definitions, const struct thread_record *thread);
struct process_record {
	uint32_t pid, ppid;
	uint64_t start_ns;
	bool recorded;
	const char *command, *reason;
};
int definitions_put_process(struct definitions *definitions, const struct process_record *process);

/* threads.c: with the lock held */
void threads_ended(struct recorder *recorder, struct slot *slot);
void threads_poll(struct recorder *recorder);
void threads_count_living(struct recorder *recorder); /* add the losses of threads that live */
void threads_list_root(struct recorder *recorder);    /* once: COMMAND's own process record */
uint64_t threads_process_cpu_ns(const struct recorder *recorder); /* 0: not known */
uint64_t threads_finish(struct recorder *recorder);		  /* returns unseen_cpu_ns */
unsigned int threads_nr_children(const struct recorder *recorder);

/*
 * waits.c: --wall. All but waits_flush() are of the main thread. waits_flush() is called with the
 * lock held.
 */
void waits_start(struct recorder *recorder);  /* COMMAND's agent says hello */
void waits_window(struct recorder *recorder); /* samples are wanted from now on */
void waits_finish(struct recorder *recorder); /* give out what lasts; idempotent */
void waits_flush(struct recorder *recorder);  /* to ust/waits */
void waits_release(struct recorder *recorder);
uint64_t waits_bytes(const struct recorder *recorder);

/* window.c: they take the lock, but window_settle(), which sets the window's counts in the totals
 */
void window_begin(struct recorder *recorder);
void window_end(struct recorder *recorder);
void window_settle(struct recorder *recorder);

#endif
