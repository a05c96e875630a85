/* SPDX-License-Identifier: MIT */
/*
 * Names of events, the choice of the trigger, and what `list` and `doctor` say.
 *
 * parse.c       what -e takes, to names and periods
 * encode.c      a name to its encoding: libpfm4's names, raw codes
 * pmu.c         a PMU's own words, by sysfs
 * tracepoint.c  tracepoints, and which of them may signal
 * breakpoint.c  mem:ADDRESS
 * period.c      default periods, frequencies, primes
 * choose.c      a request to an event with trigger and period, down the ladder of triggers
 * machine.c     what the ladder asks this machine
 * suggest.c     the word that somebody may have meant
 * list.c        the events worth a row in `pathprof list`
 * checks.c      what works here, and which knob changes it; triggers: checks_triggers.c
 *
 * "cpu-time" is ours: the POSIX CPU-time timer of each thread. All other names are perf's; a
 * trailing :u or :k counts user or kernel mode only. libpfm4 is loaded when the first name of its
 * is met: linking it costs 0.7 ms at every start, initialising it 1.4 ms.
 *
 * The ladder, for where the time goes: a hardware counter by SIGTRAP, a hardware counter by an
 * asynchronous signal, the CPU-time timer, the software clock by SIGTRAP.
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
#define EVENT_CPU_CLOCK	   "cpu-clock"
#define EVENT_CYCLES	   "cycles"
#define EVENT_BREAKPOINT   "mem:" /* a breakpoint's name begins so */
#define EVENT_SPEC_BYTES   256	  /* of one event on the command line */
#define EVENT_NOTES_MAX	   4
#define EVENT_NOTE_BYTES   640
#define EVENT_CLOCK_MIN_NS 30000 /* below it a timer of a virtual machine starves the program */

/* One event of -e, in its parts; 0: not said. */
struct event_spec {
	char name[EVENT_SPEC_BYTES];
	uint64_t period, frequency;
};

/* Are periods drawn at random around the one that was asked for? */
enum event_jitter {
	EVENT_JITTER_AUTO = 0, /* where the trigger permits and no period was asked for */
	EVENT_JITTER_NO,
	EVENT_JITTER_YES, /* where the trigger permits; else a note */
};

/* What the user asked for; 0 or NULL: not said. */
struct event_request {
	const char *name;
	uint64_t period;      /* -c */
	uint64_t frequency;   /* -F, per second */
	enum trigger trigger; /* --trigger: that one or none; 0: the ladder chooses */
	bool clock;	      /* --trigger=cpu-clock: a software clock, by TRIGGER_PERF_SIGTRAP */
	bool own_rate;	      /* period or frequency stand in the event's terms */
	bool inherit;	      /* --inherit: one event for all threads */
	enum event_jitter jitter;
};

/* The events of one recording, as they were asked for. */
struct event_wish {
	struct event_spec specs[EVENTS_MAX]; /* none: the default event */
	size_t nr;
	/* What is common to all; not its name. Periods of an event's own go before it, and its
	 * frequency is for those that are counted in time. */
	struct event_request common;
};

/**
 * event_parse - take a list of events apart and append them to @wish
 * Returns 0, or -EINVAL with a sentence.
 */
int event_parse(const char *list, struct event_wish *wish, struct errbuf *err);

/* An event as it will be sampled. */
struct event_choice {
	char name[EVENT_NAME_BYTES];
	const char *unit; /* "ns" or "events" */
	enum trigger trigger;
	uint64_t period;
	uint64_t jitter;       /* a period is drawn, at most so far from `period`; 0: fixed */
	uint64_t min_gap_ns;   /* ticks sooner after one another are counted as lost */
	struct perf_kind perf; /* TRIGGER_PERF_SIGTRAP, TRIGGER_PERF_ASYNC */
	bool inherited;	       /* opened once, for all threads: struct memory_event */
	bool user_only;	       /* the kernel's side is not counted, though nobody asked for that */
	bool in_place;	       /* another was named: event_choose_all() */
	/* What a reader must know first: another event in place of the one that was named, no
	 * kernel time. */
	char headlines[EVENT_NOTES_MAX][EVENT_NOTE_BYTES];
	unsigned int nr_headlines;
	char notes[EVENT_NOTES_MAX][EVENT_NOTE_BYTES]; /* more sentences for the user */
	unsigned int nr_notes;
	/* Where no event was named: why it is none of a higher rung; empty: it is of the highest.
	 */
	char descent[EVENT_NOTE_BYTES];
};

struct event_choices {
	struct event_choice events[EVENTS_MAX];
	size_t nr;
};

/* What the ladder asks the machine; tests answer themselves. */
struct event_machine {
	uint32_t tick_ns;
	int (*allowed)(struct perf_kind *kind, enum perf_delivery delivery); /* perf_allowed_by() */
	enum perf_sigtrap (*sigtrap)(void); /* perf_probe_sigtrap() */
	int (*calls)(struct errbuf *err);   /* 0: tracepoints leave calls alone */
	int (*cpu_timer)(void);		    /* perf_probe_cpu_timer() */
	int (*duplicate)(void);		    /* perf_probe_duplicate() */
	/* All perf events at once: 0, or a negative errno and the first that cannot be opened. */
	int (*together)(const struct event_choices *choices, size_t *ret_index);
	enum perf_sigtrap found_sigtrap; /* what sigtrap() said; 0: not asked yet */
	bool calls_asked;		 /* calls() said 0 */
	bool duplicate_asked;		 /* duplicate() said 0 */
};

/** event_machine_here - this machine, nothing tried yet */
struct event_machine event_machine_here(void);

/** event_machine_sigtrap - try it once, before the first event by SIGTRAP */
enum perf_sigtrap event_machine_sigtrap(struct event_machine *machine);

/**
 * event_encode - the encoding of a perf event's name
 * @ret_kind, @ret_clock: untouched on failure; @ret_clock: its counts are nanoseconds
 * Returns 0; -ENOENT: no such event; -ENOTSUP: it cannot be sampled this way (the sentence says
 * why); -ELIBACC: libpfm4 is not there; -ENODEV, -EACCES: what knows its name is not there
 * (tracefs, a PMU) or closed to this user.
 */
int event_encode(const char *name, struct perf_kind *ret_kind, bool *ret_clock, struct errbuf *err);

/** event_default_period - the period where neither -c nor -F was given */
uint64_t event_default_period(const struct perf_kind *kind);

/** event_prime_up_to - the largest prime that is not above @number; below 2: @number */
uint64_t event_prime_up_to(uint64_t number);

/**
 * event_choose - settle trigger and period of a request, and try it on this machine
 * Without a name: the highest rung of the ladder that works; `descent` says why no higher one. An
 * event that stands for time (cycles, clocks) and cannot be sampled is replaced by the next rung,
 * with a headline, unless the request names a trigger.
 * Returns 0; -EINVAL: the request is wrong (usage); else why it cannot be sampled here.
 */
int event_choose(const struct event_request *request, struct event_machine *machine,
		 struct event_choice *ret_choice, struct errbuf *err);

/**
 * event_choose_all - the events of one recording
 * Returns 0 or as event_choose(); an event that is named twice is -EINVAL.
 */
int event_choose_all(const struct event_wish *wish, struct event_machine *machine,
		     struct event_choices *ret_choices, struct errbuf *err);

#define EVENT_TIME_BYTES 32

/** event_time_text - nanoseconds for people: "1 ns", "30 us", "4 ms". Returns @text. */
const char *event_time_text(uint64_t ns, char text[EVENT_TIME_BYTES]);

/** event_trigger_name - "cpu-timer", "perf-sigtrap", "perf-async", "manual" */
const char *event_trigger_name(enum trigger trigger);

#define EVENT_TRIGGERS "perf-sigtrap, perf-async, cpu-timer, cpu-clock"

/** event_trigger_parse - what --trigger takes, into @request. 0, or -EINVAL with a sentence */
int event_trigger_parse(const char *text, struct event_request *request, struct errbuf *err);

/** event_jitter_parse - what --jitter takes, into @request. 0, or -EINVAL with a sentence */
int event_jitter_parse(const char *text, struct event_request *request, struct errbuf *err);

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

/** event_names - the names of that list, the first of which is cpu-time; ends with NULL */
const char *const *event_names(void);

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
