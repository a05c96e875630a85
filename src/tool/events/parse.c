/* SPDX-License-Identifier: MIT */
/*
 * What -e takes, as perf has it: names with commas between them, each with terms between slashes
 * if need be ("cycles,page-faults/period=10/u"). The terms period and freq are ours and go out of
 * the name; all others name the event ("cpu/event=0xc2,umask=1/").
 *
 * A slash stands in breakpoints as well ("mem:0x1000/8:rw"): terms are what lies between the last
 * two slashes, with nothing but modifiers behind.
 */
#include "tool/events/events.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MODIFIERS "uk"

/* The length of the first event of a list: commas between slashes are its own. */
static size_t item_length(const char *list)
{
	bool breakpoint = !strncmp(list, EVENT_BREAKPOINT, strlen(EVENT_BREAKPOINT));
	bool in_terms = false;
	size_t length = 0;

	for (; list[length]; length++) {
		if (list[length] == '/')
			in_terms = !in_terms && !breakpoint;
		else if (list[length] == ',' && !in_terms)
			break;
	}
	return length;
}

/* Find "/terms/modifiers" at the end of an item. Returns false: there are none. */
static bool find_terms(char *item, char **ret_terms, char **ret_modifiers)
{
	char *last = strrchr(item, '/'), *first;

	if (!last || last[1 + strspn(last + 1, MODIFIERS)])
		return false;
	*last = 0;
	first = strrchr(item, '/');
	if (!first) {
		*last = '/';
		return false;
	}
	*first = 0;
	*ret_terms = first + 1;
	*ret_modifiers = last + 1;
	return true;
}

/* As -c and -F take it: k, M and G multiply by 1000. */
static bool parse_count(const char *text, uint64_t *ret_count)
{
	static const struct {
		char letter;
		uint64_t factor;
	} suffixes[] = {{'k', 1000}, {'K', 1000}, {'M', 1000000}, {'G', 1000000000}};
	uint64_t count = 0, factor = 1;

	for (; isdigit((unsigned char)*text); text++) {
		if (__builtin_mul_overflow(count, 10, &count) ||
		    __builtin_add_overflow(count, (uint64_t)(*text - '0'), &count))
			return false;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (*text == suffixes[i].letter) {
			factor = suffixes[i].factor;
			text++;
			break;
		}
	}
	*ret_count = count * factor;
	return count && !*text && count <= UINT64_MAX / factor;
}

/* Returns 1 where the term is ours and taken, 0 where it names the event. */
static int take_term(const char *term, struct event_spec *spec, struct errbuf *err)
{
	static const char period[] = "period=", frequency[] = "freq=";
	bool is_period = !strncmp(term, period, sizeof(period) - 1);
	size_t skip = is_period ? sizeof(period) - 1 : sizeof(frequency) - 1;

	if (!is_period && strncmp(term, frequency, sizeof(frequency) - 1) != 0)
		return 0;
	if (!parse_count(term + skip, is_period ? &spec->period : &spec->frequency))
		return errbuf_set(err, -EINVAL,
				  "'%s': a whole number above 0 is wanted, such as 20, 10k or 2M",
				  term);
	if (spec->period && spec->frequency)
		return errbuf_set(err, -EINVAL,
				  "An event takes either period=N or freq=N, not both");
	return 1;
}

static int put_name(struct event_spec *spec, const char *base, const char *terms,
		    const char *modifiers)
{
	int length;

	if (*terms)
		length = snprintf(spec->name, sizeof(spec->name), "%s/%s/%s", base, terms,
				  modifiers);
	else
		length = snprintf(spec->name, sizeof(spec->name), "%s%s%s", base,
				  *modifiers ? ":" : "", modifiers);
	return (size_t)length < sizeof(spec->name) ? 0 : -EINVAL;
}

static int parse_item(char *item, struct event_spec *spec, struct errbuf *err)
{
	char kept[EVENT_SPEC_BYTES] = "", *terms, *modifiers;
	size_t used = 0;

	if (!find_terms(item, &terms, &modifiers))
		return put_name(spec, item, "", "");
	for (char *next; terms && *terms; terms = next) {
		int ours;

		next = strchr(terms, ',');
		if (next)
			*next++ = 0;
		ours = take_term(terms, spec, err);
		if (ours < 0)
			return ours;
		if (!ours) /* never longer than the item, which fits */
			used += (size_t)snprintf(kept + used, sizeof(kept) - used, "%s%s",
						 used ? "," : "", terms);
	}
	return put_name(spec, item, kept, modifiers);
}

int event_parse(const char *list, struct event_wish *wish, struct errbuf *err)
{
	for (;;) {
		char item[EVENT_SPEC_BYTES];
		size_t length = item_length(list);
		struct event_spec spec = {.name = ""};
		int code;

		if (!length || length >= sizeof(item))
			return errbuf_set(err, -EINVAL,
					  "-e takes names of events with commas between them, none "
					  "of them empty: see 'pathprof list'");
		if (wish->nr == EVENTS_MAX)
			return errbuf_set(err, -EINVAL, "At most %d events go into one recording",
					  EVENTS_MAX);
		memcpy(item, list, length);
		item[length] = 0;
		code = parse_item(item, &spec, err);
		if (code)
			return code;
		wish->specs[wish->nr++] = spec;
		if (!list[length])
			return 0;
		list += length + 1;
	}
}
