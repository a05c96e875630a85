/* SPDX-License-Identifier: MIT */
/*
 * JSON, written as it comes: no tree in memory, so 10^5 rows cost what their bytes cost. Strings
 * are always valid UTF-8: what is not becomes U+FFFD. The caller opens and closes in order; commas
 * and line breaks are set here.
 */
#ifndef PATHPROF_TOOL_RENDER_JSON_STREAM_H
#define PATHPROF_TOOL_RENDER_JSON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_stream {
	FILE *out;
	unsigned int lines; /* levels of nesting whose items stand on lines of their own */
	bool in_html;	    /* inside <script>: no '<', '>', '&' or line separator stays */
	bool after_first;   /* an item was written at this level */
	unsigned int level;
};

/** json_part - an item follows that the caller writes to json->out: only what is before it */
void json_part(struct json_stream *json);

/* In each, key is NULL inside an array. */
void json_begin(struct json_stream *json, const char *key, char bracket);    /* '{' or '[' */
void json_end(struct json_stream *json, char bracket);			     /* '}' or ']' */
void json_text(struct json_stream *json, const char *key, const char *text); /* NULL: null */
void json_number(struct json_stream *json, const char *key, uint64_t number);
void json_signed(struct json_stream *json, const char *key, int64_t number);
void json_line(struct json_stream *json, const char *key, uint32_t line); /* 0: null */
void json_share(struct json_stream *json, const char *key, double share); /* finite */
void json_bool(struct json_stream *json, const char *key, bool truth);

#endif
