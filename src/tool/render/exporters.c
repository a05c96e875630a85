/* SPDX-License-Identifier: MIT */
/* The table of export formats, and nothing else. */
#include "tool/render/exporters.h"

const struct exporter *const exporters[] = {
	&flamegraph_exporter, &collapsed_exporter, &speedscope_exporter, &jsonl_exporter, NULL,
};
