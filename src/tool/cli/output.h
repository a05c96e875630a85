/* SPDX-License-Identifier: MIT */
/*
 * Where results go: stdout, or a file that is whole or not there. The file is written under a
 * temporary name beside it and renamed at the end. What is no regular file (a pipe, /dev/null)
 * is written straight.
 */
#ifndef PATHPROF_TOOL_CLI_OUTPUT_H
#define PATHPROF_TOOL_CLI_OUTPUT_H

#include <stdio.h>

#include "core/base/errbuf.h"

struct output {
	FILE *file;
	char *path;	 /* NULL: stdout */
	char *temporary; /* NULL: written straight */
	char *buffer;	 /* the file's; stdout keeps its own until the end */
};

/**
 * output_open - @path NULL or "-": stdout
 * Returns 0 or a negative errno with a sentence; then output_end().
 */
int output_open(const char *path, struct output *ret_output, struct errbuf *err);

/** output_commit - flush, check for write errors, rename. 0 or a negative errno with a sentence */
int output_commit(struct output *output, struct errbuf *err);

/** output_check - what was printed on stdout: is it written? 0 or a negative errno with a sentence
 */
int output_check(struct errbuf *err);

/**
 * output_end - commit what was written, or leave nothing behind
 * @rc: of writing it; not 0: @err has its sentence
 * Returns @rc, or what output_commit() returns.
 */
int output_end(struct output *output, int rc, struct errbuf *err);

#endif
