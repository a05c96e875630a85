/* SPDX-License-Identifier: MIT */
/*
 * A hash map from 64-bit keys to 32-bit values: open addressing, at most half full, no removal.
 *
 * Keys may come from a hostile file. The hash is seeded by nothing, so an attacker can make
 * lookups slow, never wrong; the number of entries is bounded by the bytes of the file.
 */
#ifndef PATHPROF_TOOL_TRACE_MAP_H
#define PATHPROF_TOOL_TRACE_MAP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct map_entry {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct map {
	struct map_entry *entries;
	uint32_t nr_slots; /* a power of two, or 0 */
	uint32_t nr_used;
};

static inline uint64_t map_mix(uint64_t key)
{
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93ull;
	key ^= key >> 29;
	key *= 0xd6e8feb86659fd93ull;
	return key ^ key >> 32;
}

static inline struct map_entry *map_slot(struct map_entry *entries, uint32_t nr_slots, uint64_t key)
{
	uint32_t mask = nr_slots - 1;
	uint32_t at = (uint32_t)map_mix(key) & mask;

	while (entries[at].used && entries[at].key != key)
		at = (at + 1) & mask;
	return &entries[at];
}

static inline int map_grow(struct map *map)
{
	uint32_t nr_slots = map->nr_slots ? 2 * map->nr_slots : 64;
	struct map_entry *entries;

	if (!nr_slots)
		return -ENOMEM;
	entries = calloc(nr_slots, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->nr_slots; i++)
		if (map->entries[i].used)
			*map_slot(entries, nr_slots, map->entries[i].key) = map->entries[i];
	free(map->entries);
	map->entries = entries;
	map->nr_slots = nr_slots;
	return 0;
}

/**
 * map_at - the entry of a key, made with @value where it is new
 * Returns a pointer to the value, valid until the next call, or NULL: out of memory.
 */
static inline uint32_t *map_at(struct map *map, uint64_t key, uint32_t value)
{
	struct map_entry *entry;

	if (2 * (uint64_t)map->nr_used >= map->nr_slots && map_grow(map))
		return NULL;
	entry = map_slot(map->entries, map->nr_slots, key);
	if (!entry->used) {
		*entry = (struct map_entry){.key = key, .value = value, .used = 1};
		map->nr_used++;
	}
	return &entry->value;
}

/** map_find - the value of a key, or NULL */
static inline const uint32_t *map_find(const struct map *map, uint64_t key)
{
	const struct map_entry *entry;

	if (!map->nr_slots)
		return NULL;
	entry = map_slot(map->entries, map->nr_slots, key);
	return entry->used ? &entry->value : NULL;
}

static inline void map_release(struct map *map)
{
	free(map->entries);
	*map = (struct map){0};
}

#endif
