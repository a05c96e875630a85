/* SPDX-License-Identifier: MIT */
/* Nearest by edit distance: insert, delete, replace, or swap two neighbours, each costs 1. */
#include "tool/events/suggest.h"

#include <stddef.h>
#include <string.h>

#define WORD_MAX 32 /* longer ones are no slips of an option or a command */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int distance(const char *a, size_t nr_a, const char *b, size_t nr_b)
{
	unsigned int cost[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= nr_a; i++) {
		for (size_t k = 0; k <= nr_b; k++) {
			if (i == 0 || k == 0) {
				cost[i][k] = (unsigned int)(i + k);
				continue;
			}
			cost[i][k] = least(least(cost[i - 1][k], cost[i][k - 1]) + 1,
					   cost[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				cost[i][k] = least(cost[i][k], cost[i - 2][k - 2] + 1);
		}
	}
	return cost[nr_a][nr_b];
}

const char *suggest(const char *typed, const char *const *words)
{
	size_t nr_typed = strlen(typed);
	const char *nearest = NULL;
	unsigned int nearest_cost = 0;

	if (nr_typed < 2 || nr_typed > WORD_MAX)
		return NULL;
	for (; *words; words++) {
		size_t nr_word = strlen(*words);
		unsigned int cost;

		if (nr_word > WORD_MAX)
			continue;
		cost = distance(typed, nr_typed, *words, nr_word);
		/* A third of the word wrong is another word. */
		if (cost * 3 > (nr_word > nr_typed ? nr_word : nr_typed))
			continue;
		if (!nearest || cost < nearest_cost) {
			nearest = *words;
			nearest_cost = cost;
		}
	}
	return nearest;
}
