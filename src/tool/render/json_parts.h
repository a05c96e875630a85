/* SPDX-License-Identifier: MIT */
/* Parts that several JSON documents share. */
#ifndef PATHPROF_TOOL_RENDER_JSON_PARTS_H
#define PATHPROF_TOOL_RENDER_JSON_PARTS_H

#include "tool/analysis/profile.h"
#include "tool/render/json_stream.h"

/** frame_kind_name - "python", "native", "kernel", "marker" */
const char *frame_kind_name(unsigned int kind);

/** json_recording - the object "recording" of cli.md */
void json_recording(struct json_stream *json, const struct trace *trace);

/** json_notices - the list "notices"; 0 or -ENOMEM */
int json_notices(struct json_stream *json, const struct trace *trace);

/** command_line - the words of the command, blanks between; to be freed; NULL: out of memory */
char *command_line(const struct trace *trace);

#endif
