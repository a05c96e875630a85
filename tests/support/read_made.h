/* SPDX-License-Identifier: MIT */
/* Open what a maker holds, through memory. For cmocka tests; include after cmocka.h. */
#ifndef PATHPROF_TESTS_SUPPORT_READ_MADE_H
#define PATHPROF_TESTS_SUPPORT_READ_MADE_H

#include <stdlib.h>

#include "make_recording.h"
#include "tool/trace/trace_priv.h"

/** read_made_or_not - the trace, or NULL where it is refused; then @err has a sentence */
static inline struct trace *read_made_or_not(struct maker *maker, struct errbuf *err)
{
	struct trace *trace = NULL;
	struct input input;
	uint8_t *bytes;
	size_t length;
	int rc;

	bytes = maker_stored(maker, &length);
	assert_int_equal(input_open_archive(&input, bytes, length, err), 0);
	rc = trace_read(&input, NULL, NULL, &trace, err);
	assert_int_equal(!rc, trace != NULL);
	if (rc)
		assert_true(err->text[0]);
	input_release(&input);
	free(bytes);
	return trace;
}

static inline struct trace *read_made(struct maker *maker)
{
	struct errbuf err = {{0}};
	struct trace *trace = read_made_or_not(maker, &err);

	assert_string_equal(err.text, "");
	assert_non_null(trace);
	return trace;
}

#endif
