/* SPDX-License-Identifier: MIT */
/*
 * The recorder: runs a program, meets its agent, writes what the agent leaves in the shared memory.
 *
 * recorder.c     the order of things: make all, run, wait, finish
 * paths.c        where the agent lies
 * directory.c    the recording's directory; what to do with one that is there
 * metadata.c     the TSDL text of ust/
 * manifest.c     manifest.json, at the start and at the end
 * launch.c       COMMAND: environment, fork, exec, signals, its end
 * meet.c         the sockets on which agents say hello
 * service.c      the thread that serves the memory
 * arming.c       perf events for threads
 * counts.c       final counts of perf events against the overflows that came
 * throttle.c     what events missed while the kernel had stopped them
 * drain.c        packets to stream files, also before they are full
 * parts.c        the events of a packet that is written in parts
 * definitions.c  codes, nodes, threads, processes to ust/definitions
 * threads.c      the ends of threads and of the process; threads and children nobody announced
 * waits.c        --wall: stacks of threads that stand, to ust/waits
 * window.c       --delay and --duration
 * summary.c      what the user is told at the end
 */
#ifndef PATHPROF_TOOL_RECORDER_RECORDER_H
#define PATHPROF_TOOL_RECORDER_RECORDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/errbuf.h"
#include "core/event/event.h"
#include "tool/events/events.h"

#define RECORDING_DIRECTORY "pathprof.data"
#define NOTES_MAX	    32
#define DETAILS_MAX	    24

/* Bounds of the shared memory, as core/memory has them. */
#define RECORD_MEMORY_MIN     (8ull << 20)
#define RECORD_MEMORY_DEFAULT (256ull << 20)

#define RECORD_SEED_MAX ((1ull << 53) - 1) /* what every JSON reader keeps exactly */

struct record_request {
	char **command; /* ends with NULL */
	const char *directory;
	const struct event_choice *events;
	size_t nr_events;
	uint64_t memory_bytes;
	uint64_t delay_ns;    /* sampling begins that much after the start */
	uint64_t duration_ns; /* and lasts that long; 0: to the end */
	uint64_t wall_ns;     /* waits are looked at once in that time; 0: they are not */
	size_t wall_event;    /* the event, of unit ns, that waits count as */
	bool only_locked;     /* keep the samples of threads that hold the interpreter lock */
	bool seed_is_given;
	uint64_t seed; /* of the draw of first periods, at most RECORD_SEED_MAX */
	/* Something the user should know at once; may be NULL. Called from recorder_run()'s thread.
	 */
	void (*tell)(void *user, const char *sentence);
	void *user;
	const char *announcement; /* told once COMMAND runs; may be NULL */
};

/* What was recorded; filled also when the program died. */
struct record_result {
	int exit_status; /* the program's own, or 128 + the signal that killed it */
	int not_run;	 /* 126 or 127 where the command could not be run; else 0 */
	bool complete;	 /* everything was written */
	bool agent_came;
	uint64_t samples;
	uint64_t nr_threads, nr_foreign_threads;
	uint64_t nr_children;
	uint64_t bytes;
	uint64_t unseen_cpu_ns;
	uint64_t lost[NR_LOSS_REASONS];
	uint64_t degraded[NR_DEGRADED_REASONS];
	char directory[PATH_MAX];
	char *notes[NOTES_MAX]; /* sentences on what could not be seen */
	unsigned int nr_notes;
	char *details[DETAILS_MAX]; /* lines for who wants to know more: "agent     /path" */
	unsigned int nr_details;
};

/**
 * recorder_run - run a command and record it
 * @ret_result: release with record_result_release(); on failure only not_run is meaningful
 *
 * Returns when the program has ended and all is written. Blocks SIGINT, SIGQUIT, SIGTERM, SIGHUP
 * meanwhile (the program gets them as it would without us; the last two are passed on).
 * Returns 0 or a negative errno with a sentence: nothing was recorded.
 */
int recorder_run(const struct record_request *request, struct record_result *ret_result,
		 struct errbuf *err);

void record_result_release(struct record_result *result);

/** summary_write - the closing summary, for people */
void summary_write(FILE *out, const struct record_request *request,
		   const struct record_result *result, bool verbose);

#define AGENT_VARIABLE "PATHPROF_AGENT" /* names another agent file: for tests and debugging */

/**
 * paths_agent - the agent's file: beside this program in the build tree, else under its prefix
 * Returns 0, or -ENOENT with a sentence.
 */
int paths_agent(char ret_path[PATH_MAX], struct errbuf *err);

/**
 * paths_command - the file that execvp() would run for @name
 * Returns 0, -ENOENT (not found), -EACCES (found, but not executable).
 */
int paths_command(const char *name, char ret_path[PATH_MAX]);

#endif
