/* SPDX-License-Identifier: MIT */
/*
 * pathprof doctor: what works here, what does not, and which knob changes it.
 *
 * The kernel's part is tool/events' (event_checks()); here is what lies in files: the agent, the
 * interpreters on PATH, the reader of other traces.
 */
#include "tool/cli/commands.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/cli/options.h"
#include "tool/events/events.h"
#include "tool/recorder/recorder.h"

static const char *const results[] = {[CHECK_OK] = "ok", [CHECK_NO] = "no", [CHECK_INFO] = "info"};

static void put_check(void *user, const struct check *check)
{
	(void)user;
	printf("%-5s %-40s %s\n", results[check->result], check->title, check->found);
	if (check->knob[0])
		printf("%-5s %-40s   -> %s\n", "", "", check->knob);
}

static void add_check(void *user, const struct check *check)
{
	json_array_append_new(user,
			      json_pack("{s:s, s:s, s:s, s:s, s:o}", "key", check->key, "title",
					check->title, "result", results[check->result], "found",
					check->found, "knob",
					check->knob[0] ? json_string(check->knob) : json_null()));
}

static bool check_agent(check_fn fn, void *user)
{
	struct check check = {.key = "agent", .title = "The agent"};
	char path[PATH_MAX];
	struct errbuf err = {0};
	int code = paths_agent(path, &err);

	check.result = code ? CHECK_NO : CHECK_OK;
	snprintf(check.found, sizeof(check.found), "%.250s", code ? "not usable" : path);
	if (code)
		snprintf(check.knob, sizeof(check.knob), "%.250s", err.text);
	fn(user, &check);
	return !code;
}

/* What "python3.N --version" says, by its own mouth: "Python 3.11.2". */
static bool ask_version(const char *path, char *ret_text, size_t room)
{
	char command[PATH_MAX + 64];
	FILE *pipe;
	bool ok;

	if (strchr(path, '\'') ||
	    (size_t)snprintf(command, sizeof(command), "timeout 10 '%s' --version 2>/dev/null",
			     path) >= sizeof(command))
		return false;
	pipe = popen(command, "re");
	ok = pipe && fgets(ret_text, (int)room, pipe) && !strncmp(ret_text, "Python ", 7);
	if (pipe)
		pclose(pipe);
	ret_text[strcspn(ret_text, "\n")] = 0;
	return ok;
}

static void check_interpreter(const char *name, check_fn fn, void *user)
{
	struct check check = {.key = "interpreter", .title = name};
	char path[PATH_MAX], real[PATH_MAX], version[64] = "";

	if (paths_command(name, path))
		return;
	if (!realpath(path, real) || !ask_version(real, version, sizeof(version)))
		return;
	check.result = !strncmp(version, "Python 3.11.", 12) ? CHECK_OK : CHECK_NO;
	snprintf(check.found, sizeof(check.found), "%.40s, %.200s", version, real);
	if (check.result == CHECK_NO)
		snprintf(check.knob, sizeof(check.knob),
			 "its frames are not read yet: use CPython 3.11");
	fn(user, &check);
}

static void check_interpreters(check_fn fn, void *user)
{
	static const char *const names[] = {"python3", "python3.11", "python3.12", "python3.13",
					    "python3.14"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_interpreter(names[i], fn, user);
}

static void check_babeltrace(check_fn fn, void *user)
{
	struct check check = {.key = "babeltrace2", .title = "babeltrace2 (optional)"};
	char path[PATH_MAX];

	check.result = CHECK_INFO;
	if (paths_command("babeltrace2", path)) {
		snprintf(check.found, sizeof(check.found), "not found");
		snprintf(check.knob, sizeof(check.knob),
			 "install babeltrace2 to read recordings with other tools");
	} else {
		snprintf(check.found, sizeof(check.found), "%.250s", path);
	}
	fn(user, &check);
}

static bool check_all(check_fn fn, void *user)
{
	bool works = check_agent(fn, user);

	works &= event_checks(fn, user);
	check_interpreters(fn, user);
	check_babeltrace(fn, user);
	return works;
}

static int doctor_json(void)
{
	json_t *checks = json_array();
	bool works = check_all(add_check, checks);
	json_t *root = json_pack("{s:i, s:b, s:o}", "version", 1, "works", works, "checks", checks);
	int failed = json_dumpf(root, stdout, JSON_INDENT(2));

	json_decref(root);
	putchar('\n');
	if (failed && !ferror(stdout)) {
		complain("doctor", "Cannot make the document: out of memory");
		return EXIT_FAILED;
	}
	return works ? EXIT_OK : EXIT_NO;
}

int cmd_doctor(int argc, char **argv)
{
	bool json = false, works;
	const struct option_spec table[] = {
		{0, "json", OPTION_FLAG, NULL, "Print one JSON document", &json},
		{0},
	};
	const struct command_spec command = {
		.name = "doctor",
		.usage = "[OPTION...]",
		.description =
			"Says what works on this machine for this user, what does not, and which "
			"knob changes it. Exit status: 0 where programs can be recorded in some "
			"way, else 1.",
		.options = table};
	struct common_options common = {0};
	int operands, status;

	status = options_parse(&command, argc, argv, &common, &operands);
	if (status >= 0)
		return status;
	if (operands < argc) {
		complain("doctor", "takes no argument: '%s'", argv[operands]);
		return EXIT_USAGE;
	}
	if (json)
		return doctor_json();
	works = check_all(put_check, NULL);
	printf("\n%s\n",
	       works ? "Programs can be recorded here." : "Nothing can be recorded here.");
	return works ? EXIT_OK : EXIT_NO;
}
