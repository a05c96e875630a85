/* SPDX-License-Identifier: MIT */
/*
 * Results to text, JSON, HTML and other tools' formats: one file per format, behind one table.
 */
#ifndef PATHPROF_TOOL_RENDER_RENDER_H
#define PATHPROF_TOOL_RENDER_RENDER_H

#include <stdio.h>

#include "tool/analysis/profile.h"

/* An export format. */
struct exporter {
	const char *name;	 /* of --format: "collapsed" */
	const char *description; /* for --help */
	bool to_terminal;	 /* may go to stdout without -o */

	/**
	 * write - the whole trace to @out
	 * Returns 0 or a negative errno with a sentence. Write errors are found by the caller
	 * (ferror, fclose).
	 */
	int (*write)(const struct trace *trace, FILE *out, struct errbuf *err);
};

extern const struct exporter *const exporters[]; /* ends with NULL */

/* Which states the document's rows are of. */
struct json_options {
	uint32_t states;   /* 1 << enum sample_state each; 0: all */
	bool split_states; /* a row for each state, which says it */
};

/** json_write_states - json_write() with a choice */
int json_write_states(const struct trace *trace, const struct json_options *options, FILE *out,
		      struct errbuf *err);

/** json_write - `report --json` as cli.md defines it; one document and a newline */
int json_write(const struct trace *trace, FILE *out, struct errbuf *err);

/* How the text report looks. */
struct text_options {
	bool color;
	unsigned int width;		    /* columns; 0: do not cut lines */
	unsigned int limit;		    /* rows per table; 0: all */
	bool per_thread;		    /* each thread as well */
	bool by_function, by_line, by_file; /* which tables */
	bool tree, inverted;		    /* call tree, top-down or bottom-up */
	double min_share;   /* tree branches below this share of the total are folded */
	const char *source; /* annotate this file's text */
	const char *event;  /* one event only; NULL: every event */
	uint32_t states;    /* 1 << enum sample_state, for each that counts; 0: all */
	bool split_states;  /* each state as well */
};

/**
 * text_write - the text report: what was lost or invisible first, then the tables asked for
 * Returns 0 or a negative errno with a sentence.
 */
int text_write(const struct trace *trace, const struct text_options *options, FILE *out,
	       struct errbuf *err);

#endif
