/* SPDX-License-Identifier: MIT */
/* The formats of `export`, one file each; render.h's table lists them. */
#ifndef PATHPROF_TOOL_RENDER_EXPORTERS_H
#define PATHPROF_TOOL_RENDER_EXPORTERS_H

#include "tool/render/render.h"

extern const struct exporter collapsed_exporter;
extern const struct exporter speedscope_exporter;
extern const struct exporter jsonl_exporter;
extern const struct exporter flamegraph_exporter;

#endif
