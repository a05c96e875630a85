/* SPDX-License-Identifier: MIT */
/* pathprof list: the events that this user can sample on this machine, and why not the others. */
#include "tool/cli/commands.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cli/options.h"
#include "tool/events/events.h"

#define REASONS_MAX 32 /* more than there are kinds of refusal */

/* Why events are not available: each sentence once, below the table. */
struct reasons {
	char *sentences[REASONS_MAX];
	unsigned int number;
};

/* The sentence without its "Cannot sample EVENT: ", so that equal causes are equal. */
static const char *cause(const struct event_row *row)
{
	const char *text = row->reason.text;
	const char *colon = strstr(text, ": ");

	return strncmp(text, "Cannot ", 7) == 0 && colon ? colon + 2 : text;
}

/* The number of the sentence, from 1; 0: no room. */
static unsigned int reason_number(struct reasons *reasons, const char *sentence)
{
	for (unsigned int i = 0; i < reasons->number; i++)
		if (!strcmp(reasons->sentences[i], sentence))
			return i + 1;
	if (reasons->number == REASONS_MAX)
		return 0;
	reasons->sentences[reasons->number] = strdup(sentence);
	return reasons->sentences[reasons->number] ? ++reasons->number : 0;
}

static void put_row(void *user, const struct event_row *row)
{
	printf("%-25s %-7s %-13s ", row->name, row->unit, row->trigger);
	if (row->available)
		printf("%10llu  %s\n", (unsigned long long)row->default_period,
		       row->user_only ? "user mode only" : "yes");
	else
		printf("%10s  no (%u)\n", "-", reason_number(user, cause(row)));
}

static void put_reasons(struct reasons *reasons)
{
	if (reasons->number)
		putchar('\n');
	for (unsigned int i = 0; i < reasons->number; i++) {
		printf("(%u) %s\n", i + 1, reasons->sentences[i]);
		free(reasons->sentences[i]);
	}
}

static void add_row(void *user, const struct event_row *row)
{
	json_t *events = user;

	json_array_append_new(
		events,
		json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o}", "name", row->name, "unit",
			  row->unit, "trigger", row->trigger, "available", row->available,
			  "user_only", row->user_only, "default_period",
			  row->default_period ? json_integer((json_int_t)row->default_period)
					      : json_null(),
			  "reason", row->available ? json_null() : json_string(row->reason.text)));
}

static int list_json(void)
{
	json_t *events = json_array();
	json_t *root = json_pack("{s:i, s:o}", "version", 1, "events", events);
	int failed;

	event_list(add_row, events);
	failed = json_dumpf(root, stdout, JSON_INDENT(2));
	json_decref(root);
	putchar('\n');
	if (failed && !ferror(stdout)) {
		complain("list", "Cannot make the document: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

int cmd_list(int argc, char **argv)
{
	bool json = false;
	const struct option_spec table[] = {
		{0, "json", OPTION_FLAG, NULL, "Print one JSON document", &json},
		{0},
	};
	const struct command_spec command = {
		.name = "list",
		.usage = "[OPTION...]",
		.description =
			"Lists events that 'pathprof record -e' takes, each tried for this user "
			"on this machine, with the trigger that it would get. Names in capitals "
			"stand for what is filled in: raw codes (r01c2), a PMU's words "
			"(cpu/event=0xc2/), breakpoints, tracepoints. libpfm4 knows more names, "
			"of the processor's own events; any of them can be given to -e.",
		.options = table};
	struct common_options common = {0};
	struct reasons reasons = {0};
	int operands, status;

	status = options_parse(&command, argc, argv, &common, &operands);
	if (status >= 0)
		return status;
	if (operands < argc) {
		complain("list", "takes no argument: '%s'", argv[operands]);
		return EXIT_USAGE;
	}
	if (json)
		return list_json();
	printf("%-25s %-7s %-13s %10s  %s\n", "EVENT", "UNIT", "TRIGGER", "PERIOD", "HERE");
	event_list(put_row, &reasons);
	put_reasons(&reasons);
	return EXIT_OK;
}
