/* SPDX-License-Identifier: MIT */
/*
 * The one sentence that a failed operation leaves behind.
 *
 * Functions that can fail return 0 or a negative errno and write a sentence for people into
 * an errbuf: what was tried, on what, what to do. Callers may prepend their own part. Nobody
 * below tool/cli/ prints or exits.
 */
#ifndef PATHPROF_CORE_BASE_ERRBUF_H
#define PATHPROF_CORE_BASE_ERRBUF_H

#include <stddef.h>

#define ERRBUF_BYTES 1024 /* a sentence with two paths of 400 bytes; longer ones are cut */

struct errbuf {
	char text[ERRBUF_BYTES]; /* always terminated; empty: no error was written */
};

/**
 * errbuf_set - write the sentence, replacing what was there
 * @err: where to; NULL is allowed and writes nothing
 * @code: the negative errno that the caller will return
 * @format: printf format of the sentence, without a final full stop or newline
 *
 * Returns @code, so that a failing function can end with `return errbuf_set(...)`.
 */
int errbuf_set(struct errbuf *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * errbuf_prepend - put the caller's context before the sentence, with ": " between
 * Returns @code.
 */
int errbuf_prepend(struct errbuf *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
