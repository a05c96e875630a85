/* SPDX-License-Identifier: MIT */
/* The events of one recording, and the words of --trigger. */
#include "tool/events/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *event_trigger_name(enum trigger trigger)
{
	switch (trigger) {
	case TRIGGER_CPU_TIMER:
		return "cpu-timer";
	case TRIGGER_PERF_SIGTRAP:
		return "perf-sigtrap";
	case TRIGGER_PERF_ASYNC:
		return "perf-async";
	default:
		return "manual";
	}
}

int event_trigger_parse(const char *text, struct event_request *request, struct errbuf *err)
{
	static const struct {
		const char *word;
		enum trigger trigger;
		bool clock;
	} words[] = {
		{"perf-sigtrap", TRIGGER_PERF_SIGTRAP, false},
		{"perf-async", TRIGGER_PERF_ASYNC, false},
		{"cpu-timer", TRIGGER_CPU_TIMER, false},
		{"cpu-clock", TRIGGER_PERF_SIGTRAP, true},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i].word) != 0)
			continue;
		request->trigger = words[i].trigger;
		request->clock = words[i].clock;
		return 0;
	}
	return errbuf_set(err, -EINVAL, "--trigger takes one of " EVENT_TRIGGERS ", not '%s'",
			  text);
}

int event_jitter_parse(const char *text, struct event_request *request, struct errbuf *err)
{
	if (!strcmp(text, "yes"))
		request->jitter = EVENT_JITTER_YES;
	else if (!strcmp(text, "no"))
		request->jitter = EVENT_JITTER_NO;
	else
		return errbuf_set(err, -EINVAL, "--jitter takes yes or no, not '%s'", text);
	return 0;
}

static bool is_timed(const char *name)
{
	struct perf_kind kind;
	struct errbuf unused;
	bool clock = false;

	return !strcmp(name, EVENT_CPU_TIME) ||
	       (!event_encode(name, &kind, &clock, &unused) && clock);
}

static bool any_timed(const struct event_wish *wish)
{
	for (size_t i = 0; i < wish->nr; i++) {
		const struct event_spec *spec = &wish->specs[i];

		if (!spec->period && !spec->frequency && is_timed(spec->name))
			return true;
	}
	return false;
}

/*
 * What is common, and what the event has of its own. The trigger that is insisted on is the others'
 * where cpu-time stands beside them, which knows one way only.
 */
static struct event_request request_of(const struct event_wish *wish, const struct event_spec *spec,
				       bool spare_counts)
{
	struct event_request request = wish->common;

	request.name = spec->name;
	if (request.trigger && wish->nr > 1 && !strcmp(spec->name, EVENT_CPU_TIME)) {
		request.trigger = TRIGGER_CPU_TIMER;
		request.clock = false;
	}
	if (spec->period || spec->frequency) {
		request.period = spec->period;
		request.frequency = spec->frequency;
		request.own_rate = true;
	} else if (spare_counts && !is_timed(spec->name)) {
		request.frequency = 0;
	}
	return request;
}

static bool is_same(const struct event_choice *a, const struct event_choice *b)
{
	if (!strcmp(a->name, b->name))
		return true;
	return a->trigger != TRIGGER_CPU_TIMER && b->trigger != TRIGGER_CPU_TIMER &&
	       a->perf.type == b->perf.type && a->perf.config == b->perf.config &&
	       a->perf.config1 == b->perf.config1 && a->perf.config2 == b->perf.config2 &&
	       a->perf.bp_type == b->perf.bp_type && a->perf.exclude_user == b->perf.exclude_user &&
	       a->perf.exclude_kernel == b->perf.exclude_kernel;
}

static void move_headlines(struct event_choice *to, const struct event_choice *from)
{
	for (unsigned int i = 0; i < from->nr_headlines && to->nr_headlines < EVENT_NOTES_MAX; i++)
		memcpy(to->headlines[to->nr_headlines++], from->headlines[i], EVENT_NOTE_BYTES);
}

/* One that stands in another's place and is there already is not recorded twice: it is said. */
static int add(struct event_choices *choices, const struct event_choice *choice, const char *name,
	       struct errbuf *err)
{
	bool in_place = strcmp(choice->name, name) != 0;

	for (size_t i = 0; i < choices->nr; i++) {
		struct event_choice former = choices->events[i];

		if (!is_same(&former, choice))
			continue;
		if (!in_place && !former.in_place)
			return errbuf_set(err, -EINVAL,
					  "'%s' and '%s' are one event: it goes into a recording "
					  "once",
					  former.name, name);
		if (in_place) {
			move_headlines(&choices->events[i], choice);
			return 0;
		}
		choices->events[i] = *choice; /* with the period of the event that was named */
		move_headlines(&choices->events[i], &former);
		return 0;
	}
	choices->events[choices->nr] = *choice;
	choices->events[choices->nr++].in_place = in_place;
	return 0;
}

/* Each was tried alone; there may be fewer counters or breakpoints than events. */
static int check_together(const struct event_choices *choices, const struct event_machine *machine,
			  struct errbuf *err)
{
	size_t index = 0;
	int code = choices->nr > 1 ? machine->together(choices, &index) : 0;

	if (!code)
		return 0;
	perf_explain(code, choices->events[index].name, err);
	return code == -EINVAL ? -ENOTSUP : code;
}

int event_choose_all(const struct event_wish *wish, struct event_machine *machine,
		     struct event_choices *ret_choices, struct errbuf *err)
{
	struct event_choices choices = {.nr = 0};
	struct event_choice choice;
	bool timed = any_timed(wish);
	int code = 0;

	if (!wish->nr) {
		code = event_choose(&wish->common, machine, &choices.events[0], err);
		choices.nr = 1;
	}
	for (size_t i = 0; i < wish->nr && !code; i++) {
		struct event_request one = request_of(wish, &wish->specs[i], timed);

		code = event_choose(&one, machine, &choice, err);
		if (!code)
			code = add(&choices, &choice, wish->specs[i].name, err);
	}
	if (!code)
		code = check_together(&choices, machine, err);
	if (!code)
		*ret_choices = choices;
	return code;
}
