/* SPDX-License-Identifier: MIT */
#include "tool/cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 1000000000ull /* what is shorter needs no bar */
#define REDRAW_NS   100000000ull
#define BAR_COLUMNS 40

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void progress_start(struct progress *progress, const char *label, bool quiet)
{
	progress->label = label;
	progress->start_ns = now_ns();
	progress->drawn_ns = 0;
	progress->wanted = !quiet && isatty(STDERR_FILENO);
}

static void draw(const struct progress *progress, uint64_t done, uint64_t total)
{
	double share = done < total ? (double)done / (double)total : 1.0;
	int filled = (int)(share * BAR_COLUMNS);

	fprintf(stderr, "\r%s [", progress->label);
	for (int i = 0; i < BAR_COLUMNS; i++)
		putc(i < filled ? '#' : '.', stderr);
	fprintf(stderr, "] %3d%%", (int)(share * 100));
	fflush(stderr);
}

void progress_show(void *user, uint64_t done, uint64_t total)
{
	struct progress *progress = user;
	uint64_t now;

	if (!progress->wanted || total == 0)
		return;
	now = now_ns();
	if (now - progress->start_ns < PATIENCE_NS || now - progress->drawn_ns < REDRAW_NS)
		return;
	progress->drawn_ns = now;
	draw(progress, done, total);
}

void progress_finish(struct progress *progress)
{
	if (progress->drawn_ns)
		fputs("\r\033[K", stderr);
	progress->drawn_ns = 0;
}
