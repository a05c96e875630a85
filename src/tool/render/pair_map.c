/* SPDX-License-Identifier: MIT */
/* Open addressing, linear probing, never more than two thirds full. */
#include "tool/render/pair_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t hash_pair(uint32_t a, uint32_t b)
{
	uint64_t mixed = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;

	return (size_t)(mixed ^ mixed >> 29);
}

static size_t find_slot(const struct pair_map *map, uint32_t a, uint32_t b)
{
	size_t slot = hash_pair(a, b) & (map->nr_slots - 1);

	while (map->slots[slot]) {
		const struct pair *pair = &map->pairs[map->slots[slot] - 1];

		if (pair->a == a && pair->b == b)
			break;
		slot = (slot + 1) & (map->nr_slots - 1);
	}
	return slot;
}

static int grow(struct pair_map *map)
{
	size_t nr_slots = map->nr_slots ? 2 * map->nr_slots : 1024, room = nr_slots / 3 * 2;
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));
	struct pair *pairs;

	if (!slots || room >= UINT32_MAX) {
		free(slots);
		return -ENOMEM;
	}
	pairs = realloc(map->pairs, room * sizeof(*pairs));
	if (!pairs) {
		free(slots);
		return -ENOMEM;
	}
	free(map->slots);
	map->pairs = pairs;
	map->room = room;
	map->slots = slots;
	map->nr_slots = nr_slots;
	for (size_t i = 0; i < map->nr; i++)
		slots[find_slot(map, pairs[i].a, pairs[i].b)] = (uint32_t)i + 1;
	return 0;
}

int pair_map_add(struct pair_map *map, uint32_t a, uint32_t b, uint32_t *ret_index)
{
	size_t slot;

	if (map->nr == map->room) {
		int rc = grow(map);

		if (rc < 0)
			return rc;
	}
	slot = find_slot(map, a, b);
	if (!map->slots[slot]) {
		map->pairs[map->nr] = (struct pair){a, b};
		map->slots[slot] = (uint32_t)++map->nr;
	}
	*ret_index = map->slots[slot] - 1;
	return 0;
}

void pair_map_release(struct pair_map *map)
{
	free(map->pairs);
	free(map->slots);
	memset(map, 0, sizeof(*map));
}
