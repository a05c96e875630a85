/* SPDX-License-Identifier: MIT */
/* What somebody may have meant to type. */
#ifndef PATHPROF_TOOL_EVENTS_SUGGEST_H
#define PATHPROF_TOOL_EVENTS_SUGGEST_H

/**
 * suggest - the word nearest to a mistyped one
 * @words: ends with NULL
 * Returns one of @words, or NULL where none is near enough to be what was meant.
 */
const char *suggest(const char *typed, const char *const *words);

#endif
