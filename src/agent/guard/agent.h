/* SPDX-License-Identifier: MIT */
/*
 * The agent's state in one process, and the thread's.
 *
 *   AGENT_INERT      not recorded: every wrapper passes straight through
 *   AGENT_RECORDING  the recorded process
 *   AGENT_CHILD      a fork child of it: never ticks; what it starts is listed
 *
 * A vfork child shares all of this memory, a child made by a raw clone() has a copy that nobody
 * corrected: both are told apart by their process id (agent_is_recorded_process()).
 */
#ifndef PATHPROF_AGENT_GUARD_AGENT_H
#define PATHPROF_AGENT_GUARD_AGENT_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/capture/capture.h"
#include "agent/guard/libc.h"
#include "agent/sources/source.h"

#define AGENT_SOURCES_MAX     3		       /* one per trigger */
#define AGENT_RECORDING_BYTES (PATH_MAX + 256) /* secret, abstract name, and a path */
#define AGENT_PREFAULT_PAGES  4 /* of each region at the start: 0.1 ms; the rest on demand */
#define HEARTBEAT_STALE_NS    2000000000ull /* the recorder writes it many times a second */

#ifndef TRAP_PERF
#define TRAP_PERF 6 /* si_code of a perf event's SIGTRAP; glibc 2.36 does not name it */
#endif

enum agent_mode {
	AGENT_INERT = 0,
	AGENT_RECORDING,
	AGENT_CHILD,
};

/* What the constructor took out of the environment. */
struct agent_environment {
	char preload[PATH_MAX];		       /* path of the agent; empty: not preloaded by us */
	char recording[AGENT_RECORDING_BYTES]; /* value of PATHPROF_RECORDING; empty: none */
};

/* Kernel's view of a signal action; glibc's struct differs and its wrapper refuses signal 33. */
struct kernel_sigaction {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* Of signal 33: sources/signal_33.c. */
struct agent_signal_33 {
	struct kernel_sigaction libc_action; /* what we chain to */
	_Atomic uint32_t taken_from_libc;    /* libc has installed its handler and we replaced it */
};

/* State of the CPU timer source: sources/cpu_timer.c. */
struct agent_cpu_timer {
	uint64_t interval_ns;
	uint32_t event;
};

/* State of the async source: sources/own_descriptor.c, perf_async.c. */
struct agent_perf_async {
	_Atomic int recorder; /* pidfd, to take duplicates of its descriptors; or -errno */
	_Atomic uint32_t looked_after_libc; /* for what libc's handler swallowed */
};

struct agent {
	_Atomic uint32_t mode; /* enum agent_mode */
	uint32_t pid;	       /* of the recorded process */
	uint32_t parent;       /* the recorder, as long as it lives */
	/* A page that the kernel clears in every fork child (MADV_WIPEONFORK), also a raw one. */
	const volatile uint8_t *same_process;
	const struct source *sources[AGENT_SOURCES_MAX];
	uint32_t nr_sources;
	_Atomic uint32_t libc_found;
	struct libc libc;
	struct agent_signal_33 signal_33;
	struct agent_cpu_timer cpu_timer;
	struct agent_perf_async perf_async;
	struct capture capture;
	struct agent_environment environment;
};

extern struct agent agent;

/*
 * The calling thread's slot; NULL: not sampled. Initial-exec: one load in the handler, no call, no
 * allocation at first use.
 */
extern __thread struct slot *agent_slot __attribute__((tls_model("initial-exec")));

static inline enum agent_mode agent_mode(void)
{
	return (enum agent_mode)atomic_load_explicit(&agent.mode, memory_order_acquire);
}

/** agent_is_recorded_process - false in vfork children and every other process. Signal-safe. */
bool agent_is_recorded_process(void);

/** agent_now_ns - CLOCK_MONOTONIC, without a system call where the vDSO has it. Signal-safe. */
uint64_t agent_now_ns(void);

/** agent_recorder_gone - it closed the recording, or has died. Signal-safe. */
bool agent_recorder_gone(uint64_t now_ns);

/**
 * agent_recorder_left - the same at a tick, cheaply: what this thread armed itself has no purpose
 * A recorder that is stopped comes back; of a dead one we are no longer the child. Signal-safe.
 */
bool agent_recorder_left(struct slot *slot, uint64_t now_ns);

/** agent_has_source - is a source of this trigger in use? Signal-safe. */
bool agent_has_source(enum trigger trigger);

/** agent_list_process - list a child of the program with the recorder. Signal-safe. */
void agent_list_process(enum process_how how, uint32_t pid, uint32_t ppid, const char *command);

/**
 * agent_futex_wait - wait until *@word is not @value any more, at most @timeout_ns
 * Returns the word's last value. Not a cancellation point. Signal-safe.
 */
uint32_t agent_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);

/* ---- environment.c ---- */

/* An environment for exec with our variables in it, in an area of its own. */
struct exec_environment {
	char **envp;
	void *area;
	size_t area_bytes;
};

/**
 * environment_for_exec - @envp and our two variables, our agent in front of its LD_PRELOAD
 * For the recorded process itself, not for a vfork child (the area is mapped).
 * @restore_trap: the new image's agent shall set SIGTRAP, ignored now, to its default
 * Returns 0 or a negative errno.
 */
int environment_for_exec(char *const envp[], bool restore_trap,
			 struct exec_environment *ret_environment);
void environment_release(struct exec_environment *environment);

/* ---- meet.c ---- */

struct handshake_hello;

/**
 * meet_recorder - say hello, get the recording's memory; fills in the secret of @hello
 * @value: of PATHPROF_RECORDING
 * @ret_memory_fd: the memfd, the caller's to close
 * Returns 0, -EACCES where the recorder refuses this process, or another negative errno. At most
 * HANDSHAKE_TIMEOUT_MS.
 */
int meet_recorder(const char *value, struct handshake_hello *hello, int *ret_memory_fd);

/* ---- threads.c ---- */

/** thread_begin - the calling thread runs in @slot from now on: arm it */
void thread_begin(struct slot *slot, uint32_t tid);

/** thread_account - put the thread's exact CPU time and switches into its slot */
void thread_account(struct slot *slot);

/* ---- fork.c ---- */

/** fork_watch - from now on a fork child is told apart and listed */
void fork_watch(void);

/* ---- dispositions.c ---- */

/**
 * dispositions_take - own @signo (SIGSEGV, SIGBUS, SIGTRAP or SIGIO) in the kernel
 * @ours: true: the signal was ours and is dealt with; else the program gets it. Signal-safe.
 * Returns 0 or a negative errno.
 */
int dispositions_take(int signo, bool (*ours)(const siginfo_t *info, void *context));

/** dispositions_owned - is the signal one that we took, in this process? */
bool dispositions_owned(int signo);

/** dispositions_has_handler - has the program a handler for @signo, one of ours? Signal-safe. */
bool dispositions_has_handler(int signo);

/** dispositions_ignored - does the program ignore @signo, one of ours? Signal-safe. */
bool dispositions_ignored(int signo);

/**
 * dispositions_before_exec - ignored signals that we own are ignored in the kernel too, since exec
 * keeps that; dispositions_exec_failed() is the way back. Both also in a vfork child. Signal-safe.
 * @trap_too: SIGTRAP also where the program does not ignore it: none is queued from now on
 */
void dispositions_before_exec(bool trap_too);
void dispositions_exec_failed(bool trap_too);

/** dispositions_give_back - the program's own actions into the kernel: for a fork child */
void dispositions_give_back(void);

/* ---- masks.c ---- */

/* The signal at whose place in the kernel's masks stands what the program has of SIGTRAP. */
#define MASKS_CARRIER 16 /* SIGSTKFLT */

enum program_blocks {
	PROGRAM_BLOCKS_CARRIER = 1 << 0, /* the program itself has it in this thread's mask */
	PROGRAM_TRAP_WAS_HELD = 1 << 1,	 /* here or in the maker: the kernel's mask may have it */
	PROGRAM_STARTS_OWN = 1 << 2,	 /* until masks_begin(): made with a mask of its own */
};

/** masks_as_kernel - from the program's view of a set to the kernel's. Signal-safe. */
void masks_as_kernel(sigset_t *set);

/** masks_as_program - and back; @has_carrier: has it MASKS_CARRIER, in the program's view? */
void masks_as_program(sigset_t *set, bool has_carrier);

/** masks_of_new_thread - a new slot's program_blocks, by the attributes (or NULL) or inherited */
uint32_t masks_of_new_thread(const pthread_attr_t *attributes);

/** masks_begin - the calling thread's kernel mask as we keep it */
void masks_begin(struct slot *slot);

/**
 * masks_hold_trap - a SIGTRAP of the program that it blocks goes back to pending
 * Returns false if the program does not block it. Signal-safe.
 */
bool masks_hold_trap(const siginfo_t *info, void *context);

/** masks_read_mark - the siginfo of a SIGTRAP that was held, as it was sent. Signal-safe. */
void masks_read_mark(siginfo_t *info);

/** masks_to_kernel - the kernel's mask as the program has it, for exec and children */
void masks_to_kernel(void);

/** masks_exec_failed - as we keep it again, after an exec that failed and after spawning */
void masks_exec_failed(void);

#endif
