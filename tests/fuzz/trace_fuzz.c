/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an archive: its table, packed and stored entries, and in them the manifest, the
 * definitions and the streams; then what analyses do with whatever was read. Seeds are made with
 * `make-recording FILE --one-file 1` and `pathprof archive`.
 */
#include <stdlib.h>

#include "tool/analysis/profile.h"
#include "tool/trace/trace_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check(bool promise)
{
	if (!promise)
		abort();
}

static void check_samples(const struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_samples; i++) {
		const struct trace_sample *sample = &trace->samples[i];

		check(sample->thread < trace->nr_threads && sample->event < trace->nr_events);
		check(sample->native < trace->nr_nodes && sample->python < trace->nr_nodes);
	}
}

static void analyse(const struct trace *trace)
{
	struct profile_filter all = {PROFILE_ALL, PROFILE_ALL};
	struct in_step in_step[2];
	struct profile profile;
	struct call_tree tree;
	uint64_t self = 0;

	for (int by = PROFILE_BY_FUNCTION; by <= PROFILE_BY_FILE; by++) {
		check(!profile_flat(trace, all, (enum profile_by)by, true, &profile));
		profile_release(&profile);
	}
	check(!profile_flat(trace, all, PROFILE_BY_LINE, false, &profile));
	for (size_t i = 0; i < profile.nr_rows; i++)
		self += profile.rows[i].cost.self;
	check(self == trace->nr_samples);
	profile_release(&profile);
	for (int direction = CALL_TREE_TOP_DOWN; direction <= CALL_TREE_BOTTOM_UP; direction++) {
		check(!call_tree_build(trace, all, (enum call_tree_direction)direction, true,
				       &tree));
		check(tree.nodes[0].total == trace->nr_samples);
		call_tree_release(&tree);
	}
	in_step_find(trace, in_step, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct errbuf err = {{0}};
	struct trace *trace;
	struct input input;

	if (input_open_archive(&input, bytes, length, &err)) {
		check(err.text[0]);
		return 0;
	}
	if (trace_read(&input, NULL, NULL, &trace, &err)) {
		check(err.text[0]);
	} else {
		check_samples(trace);
		analyse(trace);
		for (uint32_t node = 0; node < trace->nr_nodes + 2; node++)
			check(trace_frame(trace, node).function != NULL);
		trace_free(trace);
	}
	input_release(&input);
	return 0;
}
