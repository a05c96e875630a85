/* SPDX-License-Identifier: MIT */
/*
 * make-recording DIR [--samples N] [--stacks N] ...: a recording made by hand, on disk; with
 * --one-file 1 as an archive that is not packed, which is what the fuzz target `trace` is fed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "make_recording.h"

static void usage(void)
{
	fputs("usage: make-recording DIR [--samples N] [--stacks N] [--depth N] [--threads N]\n"
	      "         [--events N] [--functions N] [--period NS] [--jitter NS] [--seed N]\n"
	      "         [--zipf 1] [--incomplete 1] [--one-file 1]\n",
	      stderr);
	exit(2);
}

/* Write all of the recording into one file; 0 or a negative errno. */
static int write_stored(struct maker *maker, const char *path)
{
	size_t length, written;
	uint8_t *bytes = maker_stored(maker, &length);
	FILE *file = fopen(path, "we");

	if (!file) {
		free(bytes);
		return -errno;
	}
	written = fwrite(bytes, 1, length, file);
	free(bytes);
	return fclose(file) || written != length ? -EIO : 0;
}

static void set_option(struct maker_load *load, bool *one_file, const char *name, const char *text)
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
	else if (!strcmp(name, "--one-file"))
		*one_file = value != 0;
	else
		usage();
}

int main(int argc, char **argv)
{
	struct maker_load load = maker_load_default();
	bool one_file = false;
	struct maker *maker;
	int rc;

	if (argc < 2 || argv[1][0] == '-' || argc % 2)
		usage();
	for (int i = 2; i + 1 < argc; i += 2)
		set_option(&load, &one_file, argv[i], argv[i + 1]);
	if (!load.stacks || !load.depth || !load.events || load.events > 8 || !load.functions ||
	    !load.threads || load.threads > MAKER_STREAMS_MAX)
		usage();
	maker = maker_new();
	maker_load(maker, &load);
	rc = one_file ? write_stored(maker, argv[1]) : maker_write(maker, argv[1]);
	if (rc)
		fprintf(stderr, "make-recording: cannot write '%s': %s\n", argv[1], strerror(-rc));
	maker_free(maker);
	return rc ? 1 : 0;
}
