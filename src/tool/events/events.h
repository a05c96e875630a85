/* SPDX-License-Identifier: MIT */
/*
 * Names of events, the choice of the trigger, and what `list` and `doctor` say.
 *
 * encode.c    a name to its encoding (libpfm4)
 * choose.c    a request to an event with trigger and period, checked on this machine
 * list.c      the events worth a row in `pathprof list`
 * checks.c    what works here, and which knob changes it
 *
 * "cpu-time" is ours: the POSIX CPU-time timer of each thread. All other names are perf's, as
 * libpfm4 knows them; a trailing :u or :k counts user or kernel mode only. libpfm4 is loaded when
 * the first such name is met: linking it costs 0.7 ms at every start, initialising it 1.4 ms.
 */
#ifndef PATHPROF_TOOL_EVENTS_EVENTS_H
#define PATHPROF_TOOL_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/errbuf.h"
#include "core/event/event.h"
#include "core/perf/perf.h"

#define EVENT_CPU_TIME	   "cpu-time"
#define EVENT_NAME_BYTES   32 /* as struct memory_event */
#define EVENT_NOTES_MAX	   3
#define EVENT_NOTE_BYTES   256
#define EVENT_CLOCK_MIN_NS 30000 /* below it a timer of a virtual machine starves the program */

/* What the user asked for; 0 or NULL: not said. */
struct event_request {
	const char *name;
	uint64_t period;      /* -c */
	uint64_t frequency;   /* -F, per second */
	enum trigger trigger; /* --trigger: that one or none; 0: the ladder chooses */
	bool inherit;	      /* --inherit: one event for all threads */
};

/* An event as it will be sampled. */
struct event_choice {
	char name[EVENT_NAME_BYTES];
	const char *unit; /* "ns" or "events" */
	enum trigger trigger;
	uint64_t period;
	uint64_t min_gap_ns;   /* ticks sooner after one another are counted as lost */
	struct perf_kind perf; /* TRIGGER_PERF_SIGTRAP, TRIGGER_PERF_ASYNC */
	bool inherited;	       /* opened once, for all threads: struct memory_event */
	char notes[EVENT_NOTES_MAX][EVENT_NOTE_BYTES]; /* sentences for the user */
	unsigned int nr_notes;
};

/**
 * event_encode - the encoding of a perf event's name
 * @ret_kind, @ret_clock: untouched on failure; @ret_clock: its counts are nanoseconds
 * Returns 0; -ENOENT: no such event; -ENOTSUP: it cannot be sampled this way (the sentence says
 * why); -ELIBACC: libpfm4 is not there.
 */
int event_encode(const char *name, struct perf_kind *ret_kind, bool *ret_clock, struct errbuf *err);

/** event_default_period - the period where neither -c nor -F was given */
uint64_t event_default_period(const struct perf_kind *kind);

/**
 * event_choose - settle trigger and period of a request, and try it on this machine
 * Without a name: cycles where there is a PMU, else cpu-time; a note says so.
 * @tick_ns: perf_tick_ns()
 * Returns 0; -EINVAL: the request is wrong (usage); else why it cannot be sampled here.
 */
int event_choose(const struct event_request *request, uint32_t tick_ns,
		 struct event_choice *ret_choice, struct errbuf *err);

#define EVENT_TIME_BYTES 32

/** event_time_text - nanoseconds for people: "1 ns", "30 us", "4 ms". Returns @text. */
const char *event_time_text(uint64_t ns, char text[EVENT_TIME_BYTES]);

/** event_trigger_name - "cpu-timer", "perf-sigtrap", "perf-async", "manual" */
const char *event_trigger_name(enum trigger trigger);

/* One row of `pathprof list`. */
struct event_row {
	const char *name;
	const char *unit;
	const char *trigger;
	uint64_t default_period;
	bool available;
	bool user_only;	      /* only what happens in user mode can be counted */
	struct errbuf reason; /* why not available; empty */
};

typedef void (*event_row_fn)(void *user, const struct event_row *row);

/** event_list - call @row for each event of the list, cpu-time first, tried on this machine */
void event_list(event_row_fn row, void *user);

enum check_result {
	CHECK_OK,
	CHECK_NO,
	CHECK_INFO, /* neither good nor bad */
};

/* One line of `pathprof doctor`. */
struct check {
	const char *key;   /* stable: "perf_event_paranoid" */
	const char *title; /* "Perf events for this user" */
	enum check_result result;
	char found[256]; /* what is here */
	char knob[256];	 /* what changes it; empty: nothing needs to */
};

typedef void (*check_fn)(void *user, const struct check *check);

/**
 * event_checks - what the kernel lets this user do, one call of @fn a check
 * Returns whether at least one trigger works.
 */
bool event_checks(check_fn fn, void *user);

#endif
