/* SPDX-License-Identifier: MIT */
#include "tool/render/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int totals_collect(const struct trace *trace, struct totals *ret_totals)
{
	size_t columns = trace->nr_threads + 1;
	size_t rows = NR_SAMPLE_STATES * (trace->nr_events + 1);
	struct total *cells = calloc(rows * columns, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < trace->nr_samples; i++) {
		const struct trace_sample *sample = &trace->samples[i];
		struct total *row =
			cells + (sample->state * trace->nr_events + sample->event) * columns;

		row[sample->thread].samples++;
		row[sample->thread].count += sample->count;
		row[trace->nr_threads].samples++;
		row[trace->nr_threads].count += sample->count;
	}
	ret_totals->cells = cells;
	ret_totals->nr_events = trace->nr_events;
	ret_totals->nr_threads = trace->nr_threads;
	ret_totals->states = 0;
	return 0;
}

void totals_release(struct totals *totals)
{
	free(totals->cells);
	memset(totals, 0, sizeof(*totals));
}

struct total totals_of_states(const struct totals *totals, uint32_t event, uint32_t thread,
			      uint32_t states)
{
	size_t columns = totals->nr_threads + 1, rows = NR_SAMPLE_STATES * totals->nr_events;
	size_t column = thread == PROFILE_ALL ? totals->nr_threads : thread;
	struct total sum = {0, 0};

	for (size_t i = 0; i < rows; i++) {
		const struct total *cell = &totals->cells[i * columns + column];

		if ((event != PROFILE_ALL && event != i % totals->nr_events) ||
		    (states && !(states >> i / totals->nr_events & 1)))
			continue;
		sum.samples += cell->samples;
		sum.count += cell->count;
	}
	return sum;
}

struct total totals_of(const struct totals *totals, uint32_t event, uint32_t thread)
{
	return totals_of_states(totals, event, thread, totals->states);
}

uint64_t lost_total(const struct trace *trace)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < trace->nr_lost; i++)
		sum += trace->lost[i].count;
	return sum;
}

bool unit_is_time(const struct trace_event *event)
{
	return strcmp(event->unit, "ns") == 0;
}
