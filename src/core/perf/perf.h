/* SPDX-License-Identifier: MIT */
/*
 * Perf events and timers: opening them, what this machine allows, errno to a sentence.
 *
 * attr.c      the attributes of a sampling event
 * open.c      opening one for a thread
 * explain.c   why that failed
 * probe.c     what this machine and this user may do
 * throttle.c  the kernel's limit of overflows a second
 *
 * Which event is meant is a `struct perf_kind`; names are tool/events' matter.
 */
#ifndef PATHPROF_CORE_PERF_PERF_H
#define PATHPROF_CORE_PERF_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/errbuf.h"

struct perf_event_attr;

/* What is counted: the encoding of an event, as perf_event_open(2) takes it. */
struct perf_kind {
	uint32_t type;
	bool exclude_user;
	bool exclude_kernel;
	uint32_t bp_type; /* of breakpoints, whose address and length are config1 and config2 */
	uint64_t config, config1, config2;
};

/* How an overflow gets to the thread that caused it. */
enum perf_delivery {
	PERF_BY_SIGTRAP, /* attr.sigtrap, synchronous, Linux 5.13 and later */
	PERF_BY_SIGNAL,	 /* F_SETSIG to the thread; the handler re-arms with IOC_REFRESH */
};

/* A sampling event: overflows go to the thread that caused them. */
struct perf_sampling {
	enum perf_delivery delivery;
	bool starts;  /* counts from its opening on; else perf_enable() or perf_rearm() start it */
	bool inherit; /* for all threads that the thread will make as well; PERF_BY_SIGTRAP alone */
	struct perf_kind kind;
	uint64_t period;
	uint64_t first_period; /* until perf_set_period(); a random one gives short threads their
				  share */
	uint64_t sig_data;     /* PERF_BY_SIGTRAP: handed to the handler as si_perf_data */
	int signo; /* PERF_BY_SIGNAL: the signal; its si_fd is the opener's descriptor */
};

/**
 * perf_attr_sampling - the attributes to open an event with: its period is the first one
 * The event is removed from the thread when it execs. PERF_BY_SIGNAL: never counts
 * the kernel's side, whatever @sampling says.
 */
void perf_attr_sampling(const struct perf_sampling *sampling, struct perf_event_attr *ret_attr);

/**
 * perf_open_sampling - open a sampling event for the thread @tid (0: the caller)
 * @ret_fd: the event, close-on-exec, owned by the caller
 * PERF_BY_SIGNAL: overflows go to @tid as @signo; it starts with perf_rearm().
 * Returns 0 or a negative errno (see perf_explain()); -EOPNOTSUPP: PERF_BY_SIGNAL must not serve
 * this event (a software clock, an inherited event), -ERANGE: its period is below
 * perf_signal_period_min().
 */
int perf_open_sampling(const struct perf_sampling *sampling, pid_t tid, int *ret_fd);

/**
 * perf_signal_period_min - the shortest period that PERF_BY_SIGNAL serves
 * Between its re-arming and its return the handler itself must not make an event overflow: the
 * program would not come to run any more.
 */
uint64_t perf_signal_period_min(const struct perf_kind *kind);

/** perf_is_clock - is it a software clock? Those are never re-armed: Linux 6.16 and 6.17 freeze. */
bool perf_is_clock(const struct perf_kind *kind);

/** perf_is_task_clock - of the software clocks, the one that counts the task's own time */
bool perf_is_task_clock(const struct perf_kind *kind);

/** perf_enable, perf_disable - start, stop counting and overflows. Return 0 or negative errno. */
int perf_enable(int fd);
int perf_disable(int fd);

/**
 * perf_set_period - a whole period from now to the next overflow, and from then on
 * What was left of the former one is forgotten (the kernel sets hwc->period_left to 0). Only of a
 * disabled event, or a software event overflows once or twice too often.
 */
int perf_set_period(int fd, uint64_t period);

/** perf_rearm - PERF_BY_SIGNAL: count, up to one more overflow */
int perf_rearm(int fd);

/** perf_count - the event's count so far, also after its thread died */
int perf_count(int fd, uint64_t *ret_count);

/* What an event counted, and for how long it was on a CPU and in a counter. */
struct perf_reading {
	uint64_t count, running_ns;
};

/** perf_reading - of an event of PERF_BY_SIGTRAP or perf_open_counting(). 0 or negative errno */
int perf_reading(int fd, struct perf_reading *ret_reading);

/** perf_max_sample_rate - kernel.perf_event_max_sample_rate; 0: not known */
uint64_t perf_max_sample_rate(void);

/**
 * perf_may_throttle - could the kernel stop an event of PERF_BY_SIGTRAP for its rate?
 * @rate: perf_max_sample_rate(). Where it cannot be that the event overflows so often: false.
 */
bool perf_may_throttle(const struct perf_kind *kind, uint64_t period, uint64_t rate);

/**
 * perf_open_counting - a disabled event that counts what @sampling samples, and is never throttled
 * Inherited as that one is, removed on exec. Returns 0 or a negative errno.
 */
int perf_open_counting(const struct perf_sampling *sampling, pid_t tid, int *ret_fd);

/**
 * perf_explain - one sentence on why perf_open_sampling() failed, with what changes it
 * @code: the negative errno; @event: the event's name
 * Returns @code.
 */
int perf_explain(int code, const char *event, struct errbuf *err);

/**
 * perf_explain_duplicate - the same of perf_probe_duplicate()
 * Returns @code.
 */
int perf_explain_duplicate(int code, const char *event, struct errbuf *err);

/** perf_paranoid - kernel.perf_event_paranoid; negative errno below -64 where it is not there */
int perf_paranoid(void);

/** perf_ptrace_scope - kernel.yama.ptrace_scope; 0 where it is not there */
int perf_ptrace_scope(void);

/**
 * perf_allowed_by - can @kind be sampled by this process, its overflows delivered that way?
 * Opens it for the caller and closes it. With the kernel's side refused, tries without it and
 * then sets kind->exclude_kernel. Returns 0 or the negative errno of perf_open_sampling().
 */
int perf_allowed_by(struct perf_kind *kind, enum perf_delivery delivery);

/** perf_allowed - the same by SIGTRAP */
int perf_allowed(struct perf_kind *kind);

/* What a child process saw when it sampled its own page faults by SIGTRAP. */
enum perf_sigtrap {
	PERF_SIGTRAP_WORKS = 1,	    /* delivered; a blocked one is delivered at the unblocking */
	PERF_SIGTRAP_KILLS_BLOCKED, /* this kernel kills where SIGTRAP is blocked */
	PERF_SIGTRAP_NONE,	    /* the event cannot be opened */
	PERF_SIGTRAP_SILENT,	    /* opened, but nothing was delivered */
	PERF_SIGTRAP_OWN_ALONE,	    /* delivered, but nobody may open it for another process */
};

/**
 * perf_probe_sigtrap - try it in a child process (about 1 ms). Never by kernel version.
 * And try to open such an event for that child: that takes more than opening one's own.
 */
enum perf_sigtrap perf_probe_sigtrap(void);

/**
 * perf_probe_duplicate - may a child take a duplicate of a descriptor of ours (pidfd_getfd)?
 * The handler of PERF_BY_SIGNAL re-arms through one. Tried by a child, which is let as the recorder
 * lets COMMAND. Returns 0 or a negative errno: -ENOSYS before Linux 5.6 or by seccomp, -EPERM by
 * YAMA or seccomp.
 */
int perf_probe_duplicate(void);

/**
 * perf_probe_calls - does an overflow at the entry of a system call leave the call alone?
 * @sleep_tracepoint: the number of the tracepoint syscalls:sys_enter_clock_nanosleep
 * Tried in a child process, which sleeps 2 ms: on kernels that signal from an interrupt the sleep
 * ends early with EINTR. Returns 0; -EINTR: calls are broken off; else why it could not be tried.
 */
int perf_probe_calls(uint64_t sleep_tracepoint);

/** perf_probe_cpu_timer - may this process make a CPU-time timer? 0 or a negative errno */
int perf_probe_cpu_timer(void);

/** perf_tick_ns - the scheduler's tick: CPU timers expire on it and no oftener */
uint32_t perf_tick_ns(void);

#endif
