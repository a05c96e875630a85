/* SPDX-License-Identifier: MIT */
/*
 * A request to an event with trigger and period, down the ladder of triggers.
 *
 *   named event     by SIGTRAP, tried, and tried in a child that a blocked SIGTRAP does not kill;
 *                   else hardware counters and page faults by an asynchronous signal; else, where
 *                   the event stands for time, cpu-time with a headline; else the sentence
 *   cpu-time        the CPU timer; else the software clock, with a headline
 *   no event named  cycles as above, cpu-time, the software clock, whichever is the first to work
 *
 * A trigger that was asked for is the only one that is tried.
 */
#include "tool/events/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tool/events/tracepoint.h"

/* One sentence of all clocks: a recording with two says it once. */
#define WAITING_NOT_SEEN "Waiting is not seen: only time on a CPU is sampled; --wall shows it"

#define NS_PER_S	 1000000000ull
#define CLOCK_MIN_GAP_NS 20000 /* half of what such a tick costs in a virtual machine */
#define COUNT_MIN_GAP_NS 2000

/* A choice under way. */
struct choosing {
	const struct event_request *request;
	struct event_machine *machine;
	struct event_choice *choice;
	struct errbuf *err;
};

static void add_note(struct event_choice *choice, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void add_headline(struct event_choice *choice, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_note(struct event_choice *choice, const char *format, ...)
{
	va_list arguments;

	if (choice->nr_notes == EVENT_NOTES_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(choice->notes[choice->nr_notes++], EVENT_NOTE_BYTES, format, arguments);
	va_end(arguments);
}

static void add_headline(struct event_choice *choice, const char *format, ...)
{
	va_list arguments;

	if (choice->nr_headlines == EVENT_NOTES_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(choice->headlines[choice->nr_headlines++], EVENT_NOTE_BYTES, format, arguments);
	va_end(arguments);
}

/* -EINVAL is a wrong request: what the kernel calls so is not. */
static int refused(int code)
{
	return code == -EINVAL ? -ENOTSUP : code;
}

/* "Cannot sample EVENT: CAUSE" to its CAUSE. */
static const char *cause_of(const struct errbuf *err)
{
	const char *colon = strstr(err->text, ": ");

	return !strncmp(err->text, "Cannot ", 7) && colon ? colon + 2 : err->text;
}

/* Does the event say where the time goes, so that another measure of time can stand for it? */
static bool stands_for_time(const struct perf_kind *kind)
{
	if (kind->exclude_user)
		return false;
	return perf_is_clock(kind) ||
	       (kind->type == PERF_TYPE_HARDWARE && (kind->config == PERF_COUNT_HW_CPU_CYCLES ||
						     kind->config == PERF_COUNT_HW_REF_CPU_CYCLES));
}

/*
 * May its overflows come by an asynchronous signal? That one breaks off system calls, so nothing
 * that happens in them; and never a software clock, which one-shot arming (IOC_REFRESH) freezes
 * whole machines with on Linux 6.16 and 6.17.
 */
static int suits_async(const struct perf_kind *kind, const char *name, struct errbuf *err)
{
	bool faults = kind->type == PERF_TYPE_SOFTWARE &&
		      (kind->config == PERF_COUNT_SW_PAGE_FAULTS ||
		       kind->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
		       kind->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);

	if (perf_is_clock(kind))
		return errbuf_set(err, -EINVAL,
				  "Cannot sample %s by perf-async: re-arming a software clock "
				  "freezes Linux 6.16 and 6.17; perf-sigtrap does not re-arm",
				  name);
	if (kind->exclude_user)
		return errbuf_set(
			err, -EINVAL,
			"Cannot sample %s by perf-async: what happens in the kernel would "
			"break off the program's system calls; perf-sigtrap leaves them "
			"alone",
			name);
	if (faults || (kind->type != PERF_TYPE_SOFTWARE && kind->type != PERF_TYPE_TRACEPOINT &&
		       kind->type != PERF_TYPE_BREAKPOINT))
		return 0;
	return errbuf_set(err, -EINVAL,
			  "Cannot sample %s by perf-async, which is for hardware counters and page "
			  "faults; perf-sigtrap takes it",
			  name);
}

/* The period that was asked for, or 0: none was. */
static int asked_period(const struct event_request *request, bool clock, uint64_t *ret_period,
			struct errbuf *err)
{
	if (request->period && request->frequency)
		return errbuf_set(err, -EINVAL, "Give either -c PERIOD or -F HZ, not both");
	if (request->frequency > NS_PER_S)
		return errbuf_set(err, -EINVAL, "%s takes 1 to 1000000000 a second",
				  request->own_rate ? "freq=N" : "-F");
	if (request->frequency && !clock)
		return errbuf_set(
			err, -EINVAL,
			"%s needs an event that is counted in time; for this one give the "
			"number of events per sample with %s",
			request->own_rate ? "freq=N" : "-F",
			request->own_rate ? "period=N" : "-c PERIOD");
	*ret_period = request->frequency ? NS_PER_S / request->frequency : request->period;
	return 0;
}

static int put_name(struct event_choice *choice, const char *name, struct errbuf *err)
{
	if (strlen(name) >= sizeof(choice->name))
		return errbuf_set(err, -EINVAL,
				  "'%s' is longer than the %zu characters of an event's name", name,
				  sizeof(choice->name) - 1);
	memcpy(choice->name, name, strlen(name) + 1);
	return 0;
}

/* The CPU timer, and nothing else. */
static int choose_timer(const struct choosing *choosing)
{
	struct event_choice *choice = choosing->choice;
	uint32_t tick_ns = choosing->machine->tick_ns;
	char tick[EVENT_TIME_BYTES], asked[EVENT_TIME_BYTES];
	int code = asked_period(choosing->request, true, &choice->period, choosing->err);

	if (code)
		return code;
	code = choosing->machine->cpu_timer();
	if (code)
		return errbuf_set(choosing->err, refused(code),
				  "Cannot sample " EVENT_CPU_TIME
				  ": no CPU timer can be made (%s); "
				  "raise the limit of pending signals (ulimit -i)",
				  strerror(-code));
	snprintf(choice->name, sizeof(choice->name), "%s", EVENT_CPU_TIME);
	choice->unit = "ns";
	choice->trigger = TRIGGER_CPU_TIMER;
	choice->min_gap_ns = 0; /* the tick limits it */
	if (choice->period && choice->period < tick_ns)
		add_note(choice,
			 "%s is sampled every %s, not every %s: a CPU timer expires on the "
			 "scheduler's tick, at most %.0f times a second here; -e cpu-clock gives "
			 "that rate where perf events are allowed",
			 EVENT_CPU_TIME, event_time_text(tick_ns, tick),
			 event_time_text(choice->period, asked), 1e9 / tick_ns);
	if (choice->period < tick_ns)
		choice->period = tick_ns;
	if (choosing->request->inherit)
		add_note(choice,
			 "%s is a timer of each thread, not inherited: that is for perf events",
			 EVENT_CPU_TIME);
	add_note(choice, WAITING_NOT_SEEN);
	return 0;
}

static int choose_period(const struct choosing *choosing, bool clock)
{
	const struct event_request *request = choosing->request;
	struct event_choice *choice = choosing->choice;
	bool tracepoint = choice->perf.type == PERF_TYPE_TRACEPOINT;
	uint64_t least = tracepoint ? tracepoint_period_min(choice->name) : 1;
	int code = asked_period(request, clock, &choice->period, choosing->err);

	if (code)
		return code;
	if (request->frequency)
		choice->period = event_prime_up_to(choice->period);
	if (!choice->period)
		choice->period = tracepoint ? least : event_default_period(&choice->perf);
	if (clock && choice->period < EVENT_CLOCK_MIN_NS) {
		choice->period = EVENT_CLOCK_MIN_NS;
		add_note(choice,
			 "%s is sampled every %d us: a faster clock would starve the program",
			 choice->name, EVENT_CLOCK_MIN_NS / 1000);
	}
	if (choice->period < least) {
		choice->period = least;
		add_note(choice,
			 "%s is sampled once in %llu: the signal's own way through the kernel may "
			 "meet it as well, and must not keep itself going",
			 choice->name, (unsigned long long)least);
	}
	return 0;
}

/* Is a blocked SIGTRAP harmless on this kernel, and does a tracepoint leave the call alone? */
static int check_sigtrap(const struct choosing *choosing)
{
	struct event_machine *machine = choosing->machine;
	const struct event_choice *choice = choosing->choice;
	struct errbuf cause = {0};
	int code;

	switch (event_machine_sigtrap(machine)) {
	case PERF_SIGTRAP_WORKS:
		break;
	case PERF_SIGTRAP_KILLS_BLOCKED:
		return errbuf_set(
			choosing->err, -ENOTSUP,
			"Cannot sample %s: this kernel kills a thread that blocks SIGTRAP "
			"when an overflow comes, as a child showed; a newer one does not",
			choice->name);
	case PERF_SIGTRAP_OWN_ALONE:
		return perf_explain(-EACCES, choice->name, choosing->err);
	default:
		return errbuf_set(
			choosing->err, -ENOTSUP,
			"Cannot sample %s: no overflow reached a child that tried SIGTRAP; "
			"see pathprof doctor",
			choice->name);
	}
	if (choice->perf.type != PERF_TYPE_TRACEPOINT || machine->calls_asked)
		return 0;
	code = machine->calls(&cause);
	if (code)
		return errbuf_set(choosing->err, refused(code), "Cannot sample %s: %s",
				  choice->name, cause_of(&cause));
	machine->calls_asked = true;
	return 0;
}

/* Why the machine refused: of the kernel's side alone the cause is known. */
static int explain(const struct choosing *choosing, int code)
{
	const struct event_choice *choice = choosing->choice;
	int paranoid = perf_paranoid();

	if (code == -EACCES && choice->perf.exclude_user && paranoid == 2)
		return errbuf_set(choosing->err, code,
				  "Cannot sample %s: the kernel's side is closed to this user; set "
				  "kernel.perf_event_paranoid to 1 or less (it is %d), or be root",
				  choice->name, paranoid);
	return refused(perf_explain(code, choice->name, choosing->err));
}

/* By SIGTRAP, and nothing else. */
static int try_sigtrap(const struct choosing *choosing)
{
	struct event_choice *choice = choosing->choice;
	struct perf_kind kind = choice->perf;
	int code = choosing->machine->allowed(&kind, PERF_BY_SIGTRAP);

	if (code)
		return explain(choosing, code);
	code = check_sigtrap(choosing);
	if (code)
		return code;
	choice->trigger = TRIGGER_PERF_SIGTRAP;
	choice->user_only = kind.exclude_kernel && !choice->perf.exclude_kernel;
	choice->perf = kind;
	if (choice->user_only)
		add_headline(choice,
			     "Kernel time is not included: %s is counted in user mode only; as "
			     "root or with kernel.perf_event_paranoid at 1 it is",
			     choice->name);
	return 0;
}

/* May the program's threads have the descriptor that their handler re-arms through? */
static int check_duplicate(const struct choosing *choosing)
{
	struct event_machine *machine = choosing->machine;
	int code = machine->duplicate_asked ? 0 : machine->duplicate();

	machine->duplicate_asked = !code;
	return code ? refused(perf_explain_duplicate(code, choosing->choice->name, choosing->err))
		    : 0;
}

/* Half a period to both sides, but none is shorter than the shortest that serves. */
static uint64_t jitter_of(const struct event_request *request, const struct perf_kind *kind,
			  uint64_t period)
{
	uint64_t room = period - perf_signal_period_min(kind);

	if (request->jitter == EVENT_JITTER_NO ||
	    (request->jitter == EVENT_JITTER_AUTO && request->period))
		return 0;
	return room < period / 2 ? room : period / 2;
}

/* By an asynchronous signal, and nothing else. Only in user mode, where it breaks off no call. */
static int try_async(const struct choosing *choosing)
{
	struct event_choice *choice = choosing->choice;
	struct perf_kind kind = choice->perf;
	int code = suits_async(&kind, choice->name, choosing->err);

	if (code)
		return code;
	kind.exclude_kernel = true;
	code = choosing->machine->allowed(&kind, PERF_BY_SIGNAL);
	if (code)
		return refused(perf_explain(code, choice->name, choosing->err));
	code = check_duplicate(choosing);
	if (code)
		return code;
	if (choice->period < perf_signal_period_min(&kind)) {
		choice->period = perf_signal_period_min(&kind);
		add_note(choice,
			 "%s is sampled once in %llu: with a shorter period the handler's own "
			 "work would keep an asynchronous signal going",
			 choice->name, (unsigned long long)choice->period);
	}
	choice->trigger = TRIGGER_PERF_ASYNC;
	choice->jitter = jitter_of(choosing->request, &kind, choice->period);
	choice->user_only = !choice->perf.exclude_kernel;
	choice->perf = kind;
	if (choice->user_only)
		add_headline(choice,
			     "Kernel time is not included: %s is counted in user mode only, since "
			     "an asynchronous signal from the kernel's side would break off the "
			     "program's system calls",
			     choice->name);
	return 0;
}

static int try_triggers(const struct choosing *choosing)
{
	const struct event_request *request = choosing->request;
	struct event_choice *choice = choosing->choice;
	struct choosing second = *choosing;
	struct errbuf cause = {0}, first;
	int code, code_async;

	if (request->trigger == TRIGGER_PERF_ASYNC)
		return try_async(choosing);
	code = try_sigtrap(choosing);
	if (!code || request->trigger)
		return code;
	second.err = &cause;
	code_async = try_async(&second);
	if (code_async && (code_async == code || code_async == -EINVAL))
		return code; /* the first cause is the one to know */
	first = *choosing->err;
	if (code_async)
		return errbuf_set(choosing->err, code, "%s; nor by perf-async: %s", first.text,
				  cause_of(&cause));
	add_note(choice, "%s comes by an asynchronous signal (perf-async): %s", choice->name,
		 cause_of(choosing->err));
	return 0;
}

/* A perf event whose encoding stands in the choice. */
static int choose_perf(const struct choosing *choosing, const char *name)
{
	const struct event_request *request = choosing->request;
	struct event_choice *choice = choosing->choice;
	bool clock = perf_is_clock(&choice->perf);
	int code = put_name(choice, name, choosing->err);

	if (!code && request->clock && !clock)
		code = errbuf_set(choosing->err, -EINVAL,
				  "--trigger=cpu-clock samples " EVENT_CPU_CLOCK
				  " or task-clock, not %s",
				  name);
	if (!code && request->trigger == TRIGGER_CPU_TIMER)
		code = errbuf_set(choosing->err, -EINVAL,
				  "--trigger=cpu-timer samples " EVENT_CPU_TIME ", not %s", name);
	if (!code)
		code = choose_period(choosing, clock);
	if (code)
		return code;
	choice->unit = clock ? "ns" : "events";
	choice->min_gap_ns = clock ? CLOCK_MIN_GAP_NS : COUNT_MIN_GAP_NS;
	code = try_triggers(choosing);
	if (code)
		return code;
	choice->inherited = request->inherit && choice->trigger == TRIGGER_PERF_SIGTRAP;
	if (request->inherit && !choice->inherited)
		add_note(choice,
			 "%s is armed for each thread, not inherited: that goes with perf-sigtrap "
			 "alone",
			 choice->name);
	if (choice->inherited)
		add_note(choice,
			 "%s is one event for all threads: threads that are shorter than its "
			 "period are sampled too rarely",
			 choice->name);
	if (clock)
		add_note(choice, WAITING_NOT_SEEN);
	return 0;
}

/* The lowest rung. */
static int choose_clock(const struct choosing *choosing)
{
	*choosing->choice = (struct event_choice){
		.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK}};
	return choose_perf(choosing, EVENT_CPU_CLOCK);
}

/* CPU time by the timer, else by the software clock; @clock: that one was refused already. */
static int choose_lower(const struct choosing *choosing, bool clock)
{
	struct choosing second = *choosing;
	struct errbuf unused;
	int code;

	*choosing->choice = (struct event_choice){0};
	code = choose_timer(choosing);
	if (!code || code == -EINVAL || clock || choosing->request->trigger)
		return code;
	second.err = &unused;
	return choose_clock(&second) ? code : 0;
}

/* Goes down the ladder in place of an event that stands for time; err has why it is refused. */
static int choose_in_place(const struct choosing *choosing, const char *name, bool clock, int code)
{
	struct event_request request = *choosing->request;
	struct choosing lower = *choosing;
	struct event_choice *choice = choosing->choice;
	struct errbuf unused;

	if (!clock) /* its periods are no time */
		request.period = 0;
	lower.request = &request;
	lower.err = &unused;
	if (choose_lower(&lower, clock))
		return code;
	add_headline(choice,
		     "%s is not sampled: %s. In its place %s is, by %s; --trigger=%s insists on "
		     "the event that was named",
		     name, cause_of(choosing->err), choice->name,
		     event_trigger_name(choice->trigger), clock ? "cpu-clock" : "perf-sigtrap");
	return 0;
}

static int choose_cpu_time(const struct choosing *choosing)
{
	const struct event_request *request = choosing->request;
	struct event_choice *choice = choosing->choice;
	int code;

	if (request->clock || (request->trigger && request->trigger != TRIGGER_CPU_TIMER))
		return errbuf_set(choosing->err, -EINVAL,
				  EVENT_CPU_TIME " is sampled by cpu-timer alone: no other "
						 "--trigger goes with it");
	code = choose_lower(choosing, false);
	if (!code && choice->trigger != TRIGGER_CPU_TIMER)
		add_headline(choice,
			     EVENT_CPU_TIME " is not sampled: %s. In its place %s is, by %s; "
					    "--trigger=cpu-timer insists on it",
			     cause_of(choosing->err), choice->name,
			     event_trigger_name(choice->trigger));
	return code;
}

/* "cpu-time:u", "cpu-time/config=1/": words that the timer does not take. */
static int refuse_words(const char *name, struct errbuf *err)
{
	const char *words = name + strlen(EVENT_CPU_TIME);

	if (*words == '/' && words[1] != '/')
		return errbuf_set(err, -EINVAL,
				  "'%s': the terms of " EVENT_CPU_TIME " are period=N and freq=N",
				  name);
	return errbuf_set(err, -EINVAL,
			  "'%s': " EVENT_CPU_TIME " takes no modifier, being user and kernel mode "
			  "together; u and k, for either of them, go with perf events, such "
			  "as cpu-clock:u",
			  name);
}

static int choose_named(const struct choosing *choosing, const char *name)
{
	const struct event_request *request = choosing->request;
	struct event_choice *choice = choosing->choice;
	struct perf_kind kind;
	bool clock;
	int code;

	if (!strcmp(name, EVENT_CPU_TIME))
		return choose_cpu_time(choosing);
	if (!strncmp(name, EVENT_CPU_TIME, strlen(EVENT_CPU_TIME)) &&
	    strchr(":/", name[strlen(EVENT_CPU_TIME)]))
		return refuse_words(name, choosing->err);
	code = event_encode(name, &choice->perf, &clock, choosing->err);
	if (code == -ENOENT || code == -ENOTSUP)
		return -EINVAL;
	if (code)
		return code;
	kind = choice->perf;
	code = choose_perf(choosing, name);
	if (!code || code == -EINVAL || request->trigger || !stands_for_time(&kind))
		return code;
	return choose_in_place(choosing, name, clock, code);
}

/* Nothing was named: the highest rung that works, or the one that was asked for. */
static int choose_default(const struct choosing *choosing)
{
	const struct event_request *request = choosing->request;
	struct event_choice *choice = choosing->choice;
	struct errbuf cause = {0};
	int code;

	if (request->clock)
		return choose_named(choosing, EVENT_CPU_CLOCK);
	if (request->trigger == TRIGGER_CPU_TIMER)
		return choose_named(choosing, EVENT_CPU_TIME);
	/* A rate in time was asked for: only a clock serves it. */
	if (request->frequency && !request->trigger)
		return choose_lower(choosing, false);
	choice->perf =
		(struct perf_kind){.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES};
	code = choose_perf(choosing, EVENT_CYCLES);
	if (!code || code == -EINVAL || request->trigger)
		return code;
	cause = *choosing->err;
	code = choose_lower(choosing, false);
	if (!code)
		snprintf(choice->descent, sizeof(choice->descent), "%.600s", cause_of(&cause));
	return code;
}

int event_choose(const struct event_request *request, struct event_machine *machine,
		 struct event_choice *ret_choice, struct errbuf *err)
{
	struct event_choice choice = {0};
	const struct choosing choosing = {
		.request = request, .machine = machine, .choice = &choice, .err = err};
	int code =
		request->name ? choose_named(&choosing, request->name) : choose_default(&choosing);

	if (code)
		return code;
	if (request->jitter == EVENT_JITTER_YES && !choice.jitter)
		add_note(&choice,
			 "%s has one period: only perf-async draws periods, and none that is "
			 "shorter than what it serves",
			 choice.name);
	*ret_choice = choice;
	return 0;
}
