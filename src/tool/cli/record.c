/* SPDX-License-Identifier: MIT */
/*
 * pathprof record: run a program and record it.
 *
 * Parse, choose the event, let the recorder run, say what came of it. The exit status is the
 * program's own; 125, 126 and 127 as env(1) and timeout(1) have them.
 */
#include "tool/cli/commands.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tool/cli/options.h"
#include "tool/events/events.h"
#include "tool/recorder/recorder.h"

#define WALL_PERIOD 10000000ull /* ns between glances at threads that wait */
#define WALL_EVENT  "wall-time"
#define TO_THE_END  UINT64_MAX /* no --duration; more than the option can say */

#define NO_SEED UINT64_MAX

struct record_options {
	struct option_list events;
	const char *directory;
	const char *trigger;
	const char *jitter;
	uint64_t period;
	uint64_t frequency;
	uint64_t seed;
	bool inherit;
	uint64_t memory_bytes;
	uint64_t delay_ns;
	uint64_t duration_ns;
	bool wall, gil;
	size_t wall_event; /* found with the events */
};

static const char description[] =
	"Runs COMMAND unmodified and records every thread of it: at each overflow of the event the "
	"thread that caused it notes its own stack. COMMAND's input, output, signals and exit "
	"status "
	"are its own. A recording that is in the way is moved to DIR.old. Without -e the event is "
	"cycles where the machine has a PMU, else cpu-time, else cpu-clock. Default periods: the "
	"scheduler's tick for cpu-time, 1 ms for cpu-clock and task-clock, 2000003 for cycles and "
	"instructions, 101 for page-faults and minor-faults, 1 for rarer faults, breakpoints and "
	"entries of system calls, 101 for other tracepoints, 10007 for all else (primes, so that "
	"loops do not fall into step).";

static const char examples[] =
	"  pathprof record -- python3 app.py --workers 4\n"
	"  pathprof record -e page-faults -c 10 -- python3 load.py\n"
	"  pathprof record -e cpu-time,page-faults/period=10/ -- python3 load.py\n"
	"  pathprof record -e cpu-clock -F 2000 -o fine.data -- ./start.sh";

static void tell(void *user, const char *sentence)
{
	const struct common_options *common = user;

	if (!common->quiet)
		complain("record", "%s", sentence);
}

/* What the user must know first: what is sampled in place of what was wanted, or by default. */
static void announcement(const struct record_options *options, const struct event_choices *choices,
			 struct errbuf *ret_text)
{
	static const char hint[] = "choose with -e, see 'pathprof list'";
	const struct event_choice *event = &choices->events[0];
	double rate = 1e9 / (double)event->period;

	for (size_t i = 0; i < choices->nr; i++) {
		if (choices->events[i].nr_headlines) {
			errbuf_set(ret_text, 0, "%s", choices->events[i].headlines[0]);
			return;
		}
	}
	if (options->events.nr || options->wall)
		return;
	if (event->descent[0])
		errbuf_set(ret_text, 0, "sampling %s by %s, since cycles is not to be had: %s; %s",
			   event->name, event_trigger_name(event->trigger), event->descent, hint);
	else if (event->trigger != TRIGGER_CPU_TIMER || !options->frequency)
		errbuf_set(ret_text, 0, "sampling %s by %s; %s", event->name,
			   event_trigger_name(event->trigger), hint);
	else if (rate + 1 < (double)options->frequency)
		errbuf_set(ret_text, 0,
			   "sampling %s, which ticks at most %.0f times a second here, not %llu; "
			   "-e cpu-clock gives that rate",
			   event->name, rate, (unsigned long long)options->frequency);
	else
		errbuf_set(ret_text, 0, "sampling %s, %.4g times a second of it; %s", event->name,
			   rate, hint);
}

static int run(const struct record_request *request, const struct common_options *common)
{
	struct record_result result = {0};
	struct errbuf err = {0};
	int status;

	if (recorder_run(request, &result, &err)) {
		complain("record", "%s", err.text);
		return result.not_run ? result.not_run : EXIT_FAILED;
	}
	if (!common->quiet)
		summary_write(stderr, request, &result, common->verbose > 0);
	else if (!result.complete || !result.agent_came)
		complain("record", "%s",
			 result.nr_notes ? result.notes[result.nr_notes - 1]
					 : "the recording is not complete");
	status = result.exit_status;
	record_result_release(&result);
	return status;
}

/* The first clock of the threads that run becomes the event that waits count as, too. */
static int make_wall(struct event_choices *choices, size_t *ret_wall_event)
{
	for (size_t i = 0; i < choices->nr; i++) {
		struct event_choice *event = &choices->events[i];

		if (strcmp(event->unit, "ns") != 0 || event->perf.exclude_user)
			continue;
		snprintf(event->name, sizeof(event->name), WALL_EVENT);
		*ret_wall_event = i;
		return -1;
	}
	complain("record", "--wall needs a clock for threads that run, among the events of -e: "
			   "cpu-time, cpu-clock or task-clock");
	return EXIT_USAGE;
}

/* Of --wall alone: the clock that the trigger goes with. */
static const char *clock_of(const char *trigger)
{
	const char *timer = event_trigger_name(TRIGGER_CPU_TIMER);

	return !trigger || strcmp(trigger, timer) == 0 ? "cpu-time" : "cpu-clock";
}

/* --inherit would do nothing, which is said. */
static bool ignores_inherit(const struct record_options *options,
			    const struct event_choices *choices)
{
	for (size_t i = 0; i < choices->nr; i++) {
		if (!options->inherit || choices->events[i].trigger != TRIGGER_CPU_TIMER)
			return false;
	}
	complain("record",
		 "--inherit is for perf events, and %s is a timer of each thread; a clock that "
		 "can be inherited is -e cpu-clock",
		 choices->events[0].name);
	return true;
}

static int choose(struct record_options *options, struct event_choices *ret_choices)
{
	struct event_wish wish = {.common = {.period = options->period,
					     .frequency = options->frequency,
					     .inherit = options->inherit}};
	struct event_machine machine = event_machine_here();
	struct errbuf err = {0};
	int code = 0;

	for (unsigned int i = 0; i < options->events.nr && !code; i++)
		code = event_parse(options->events.texts[i], &wish, &err);
	if (!code && options->wall && !options->events.nr)
		code = event_parse(clock_of(options->trigger), &wish, &err);
	if (!code && options->trigger)
		code = event_trigger_parse(options->trigger, &wish.common, &err);
	if (!code && options->jitter)
		code = event_jitter_parse(options->jitter, &wish.common, &err);
	if (!code)
		code = event_choose_all(&wish, &machine, ret_choices, &err);
	if (!code && ignores_inherit(options, ret_choices))
		return EXIT_USAGE;
	if (!code)
		return options->wall ? make_wall(ret_choices, &options->wall_event) : -1;
	complain("record", "%s", err.text);
	return code == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* What the parser cannot see. Returns -1: all is well. */
static int check_usage(const struct record_options *options, int operands, int argc)
{
	if (operands >= argc) {
		complain("record", "no COMMAND was given; see pathprof record --help");
		return EXIT_USAGE;
	}
	if (strcmp(options->directory, "-") == 0) {
		complain("record", "a recording is a directory, which does not go to standard "
				   "output: name one with -o, or pack it later with pathprof "
				   "archive -o -");
		return EXIT_USAGE;
	}
	if (options->wall && options->gil) {
		complain("record", "--gil keeps threads that hold the interpreter lock, --wall "
				   "adds those that wait: one of them");
		return EXIT_USAGE;
	}
	if (!options->duration_ns) {
		complain("record", "--duration takes a time above 0; without it COMMAND is "
				   "recorded to its end");
		return EXIT_USAGE;
	}
	if (options->seed != NO_SEED && options->seed > RECORD_SEED_MAX) {
		complain("record", "--seed takes at most %llu", RECORD_SEED_MAX);
		return EXIT_USAGE;
	}
	if (options->memory_bytes < RECORD_MEMORY_MIN) {
		complain("record", "--memory takes %llu MiB or more", RECORD_MEMORY_MIN >> 20);
		return EXIT_USAGE;
	}
	return -1;
}

static struct record_request request_of(const struct record_options *options,
					const struct event_choices *choices)
{
	return (struct record_request){
		.directory = options->directory,
		.events = choices->events,
		.nr_events = choices->nr,
		.memory_bytes = options->memory_bytes,
		.delay_ns = options->delay_ns,
		.duration_ns = options->duration_ns == TO_THE_END ? 0 : options->duration_ns,
		.seed_is_given = options->seed != NO_SEED,
		.seed = options->seed,
		.wall_ns = options->wall ? WALL_PERIOD : 0,
		.wall_event = options->wall_event,
		.only_locked = options->gil,
	};
}

static int choose_and_run(struct record_options *options, char **words,
			  struct common_options *common)
{
	struct errbuf said = {0};
	struct event_choices choices;
	struct record_request request;
	int status = choose(options, &choices);

	if (status >= 0)
		return status;
	announcement(options, &choices, &said);
	request = request_of(options, &choices);
	request.command = words;
	request.tell = tell;
	request.user = common;
	request.announcement = said.text[0] ? said.text : NULL;
	return run(&request, common);
}

int cmd_record(int argc, char **argv)
{
	struct record_options options = {.directory = RECORDING_DIRECTORY,
					 .memory_bytes = RECORD_MEMORY_DEFAULT,
					 .duration_ns = TO_THE_END,
					 .seed = NO_SEED};
	const struct option_spec table[] = {
		{'e', "event", OPTION_LIST, "EVENT",
		 "What to sample: cpu-time or a name of 'pathprof list'; :u counts user mode only, "
		 "/period=N/ is its own period; several with commas or -e again",
		 &options.events},
		{'c', "count", OPTION_COUNT, "PERIOD",
		 "One sample every PERIOD events; nanoseconds for clocks", &options.period},
		{'F', "freq", OPTION_COUNT, "HZ", "HZ samples a second of a clock",
		 &options.frequency},
		{0, "trigger", OPTION_ONCE, "HOW", "This way or none: " EVENT_TRIGGERS,
		 &options.trigger},
		{0, "inherit", OPTION_FLAG, NULL,
		 "One perf event for all threads: nothing is opened per thread, short ones are "
		 "sampled too rarely",
		 &options.inherit},
		{0, "jitter", OPTION_ONCE, "yes|no",
		 "Draw each period at random around its mean, where the trigger permits "
		 "(perf-async; default: where no -c was given)",
		 &options.jitter},
		{0, "seed", OPTION_NUMBER, "N",
		 "Draw the first periods of threads, and jittered ones, from N again",
		 &options.seed},
		{'o', "output", OPTION_STRING, "DIR",
		 "The recording's directory (default: " RECORDING_DIRECTORY ")",
		 &options.directory},
		{0, "delay", OPTION_SECONDS, "S", "Begin to sample S seconds after the start",
		 &options.delay_ns},
		{0, "duration", OPTION_SECONDS, "S",
		 "Sample for S seconds; COMMAND runs on to its end", &options.duration_ns},
		{0, "wall", OPTION_FLAG, NULL,
		 "Wall-clock time: threads that wait as well, read from outside while they stand",
		 &options.wall},
		{0, "gil", OPTION_FLAG, NULL,
		 "Keep only samples of threads that hold the interpreter lock", &options.gil},
		{0, "memory", OPTION_BYTES, "SIZE",
		 "Bound of the shared memory, 8M or more (default: 256M; only what is used is "
		 "taken)",
		 &options.memory_bytes},
		{0},
	};
	const struct command_spec command = {.name = "record",
					     .usage = "[OPTION...] -- COMMAND [ARG...]",
					     .description = description,
					     .examples = examples,
					     .options = table,
					     .stop_at_operand = true};
	struct common_options common = {0};
	int operands, status;

	status = options_parse(&command, argc, argv, &common, &operands);
	if (status >= 0)
		return status;
	status = check_usage(&options, operands, argc);
	if (status >= 0)
		return status;
	return choose_and_run(&options, argv + operands, &common);
}
