/* SPDX-License-Identifier: MIT */
/* Numbers pairs in order of their first appearance: (parent, frame) makes a prefix tree. */
#ifndef PATHPROF_TOOL_RENDER_PAIR_MAP_H
#define PATHPROF_TOOL_RENDER_PAIR_MAP_H

#include <stddef.h>
#include <stdint.h>

struct pair {
	uint32_t a, b;
};

struct pair_map {
	struct pair *pairs; /* by index */
	size_t nr, room;
	uint32_t *slots; /* index + 1; 0: free */
	size_t nr_slots; /* a power of two, more than nr */
};

/** pair_map_add - the index of a pair, new or known. 0 or -ENOMEM. Begin with a zeroed map */
int pair_map_add(struct pair_map *map, uint32_t a, uint32_t b, uint32_t *ret_index);
void pair_map_release(struct pair_map *map);

#endif
