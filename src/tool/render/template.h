/* SPDX-License-Identifier: MIT */
/* Files that are installed beside the program. */
#ifndef PATHPROF_TOOL_RENDER_TEMPLATE_H
#define PATHPROF_TOOL_RENDER_TEMPLATE_H

#include "core/base/errbuf.h"

/**
 * template_read - a file of the program's data directory as a string
 * Looked for relative to the executable: in the build tree, then under the prefix.
 * @ret_text: to be freed
 * Returns 0, or a negative errno with a sentence that says where it was looked for.
 */
int template_read(const char *name, char **ret_text, struct errbuf *err);

#endif
