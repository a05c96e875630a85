/* SPDX-License-Identifier: MIT */
/* make-recording DIR [--samples N] [--stacks N] ...: a recording made by hand, on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "make_recording.h"

static void usage(void)
{
	fputs("usage: make-recording DIR [--samples N] [--stacks N] [--depth N] [--threads N]\n"
	      "         [--events N] [--functions N] [--period NS] [--jitter NS] [--seed N]\n"
	      "         [--zipf 1] [--incomplete 1]\n",
	      stderr);
	exit(2);
}

static void set_option(struct maker_load *load, const char *name, const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (!*text || *end)
		usage();
	if (!strcmp(name, "--samples"))
		load->samples = value;
	else if (!strcmp(name, "--stacks"))
		load->stacks = (uint32_t)value;
	else if (!strcmp(name, "--depth"))
		load->depth = (uint32_t)value;
	else if (!strcmp(name, "--threads"))
		load->threads = (uint32_t)value;
	else if (!strcmp(name, "--events"))
		load->events = (uint32_t)value;
	else if (!strcmp(name, "--functions"))
		load->functions = (uint32_t)value;
	else if (!strcmp(name, "--period"))
		load->period_ns = value;
	else if (!strcmp(name, "--jitter"))
		load->jitter_ns = value;
	else if (!strcmp(name, "--seed"))
		load->seed = value;
	else if (!strcmp(name, "--zipf"))
		load->zipf = value != 0;
	else if (!strcmp(name, "--incomplete"))
		load->incomplete = value != 0;
	else
		usage();
}

int main(int argc, char **argv)
{
	struct maker_load load = maker_load_default();
	struct maker *maker;
	int rc;

	if (argc < 2 || argv[1][0] == '-' || argc % 2)
		usage();
	for (int i = 2; i + 1 < argc; i += 2)
		set_option(&load, argv[i], argv[i + 1]);
	if (!load.stacks || !load.depth || !load.events || load.events > 8 || !load.functions ||
	    !load.threads || load.threads > MAKER_STREAMS_MAX)
		usage();
	maker = maker_new();
	maker_load(maker, &load);
	rc = maker_write(maker, argv[1]);
	if (rc)
		fprintf(stderr, "make-recording: cannot write '%s': %s\n", argv[1], strerror(-rc));
	maker_free(maker);
	return rc ? 1 : 0;
}
