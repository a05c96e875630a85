/* SPDX-License-Identifier: MIT */
/*
 * The loader's list and a look-up by GNU hash:
 *
 *   header   nr_buckets, first_symbol, nr_bloom (words), bloom_shift
 *   bloom    nr_bloom words: two bits of the hash say that the name may be there
 *   buckets  nr_buckets numbers: the first symbol of each, 0: none
 *   chains   for each symbol from first_symbol on the hash, lowest bit: the bucket's last
 */
#include "core/cpython/loaded.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#define DYNAMIC_ENTRIES_MAX 256
#define CHAIN_MAX	    4096 /* symbols of a bucket: a handful in a true table */
#define NAME_MAX_BYTES	    64

struct tables {
	uint64_t base, symbols, strings, hash;
};

uint64_t loaded_first(struct reader reader, uint64_t r_debug)
{
	uint64_t first;

	return load_u64(reader, r_debug + offsetof(struct r_debug, r_map), &first) ? first : 0;
}

bool loaded_next(struct reader reader, uint64_t r_debug, uint64_t object, uint64_t *ret_next)
{
	uint64_t before, again;

	if (!load_u64(reader, object + offsetof(struct link_map, l_prev), &before))
		return false;
	if (before ? !load_u64(reader, before + offsetof(struct link_map, l_next), &again)
		   : !load_u64(reader, r_debug + offsetof(struct r_debug, r_map), &again))
		return false;
	return again == object &&
	       load_u64(reader, object + offsetof(struct link_map, l_next), ret_next);
}

/* The loader relocates the addresses in place, but not where the section cannot be written. */
static uint64_t relocated(const struct tables *tables, uint64_t address)
{
	return address < tables->base ? tables->base + address : address;
}

static bool read_tables(struct reader reader, uint64_t object, struct tables *ret_tables)
{
	struct tables tables = {0};
	uint64_t dynamic, tag, value;

	if (!load_u64(reader, object + offsetof(struct link_map, l_addr), &tables.base) ||
	    !load_u64(reader, object + offsetof(struct link_map, l_ld), &dynamic))
		return false;
	for (unsigned int i = 0; i < DYNAMIC_ENTRIES_MAX; i++, dynamic += sizeof(ElfW(Dyn))) {
		if (!load_u64(reader, dynamic, &tag) || !load_u64(reader, dynamic + 8, &value))
			return false;
		if (tag == DT_NULL)
			break;
		if (tag == DT_SYMTAB)
			tables.symbols = relocated(&tables, value);
		else if (tag == DT_STRTAB)
			tables.strings = relocated(&tables, value);
		else if (tag == DT_GNU_HASH)
			tables.hash = relocated(&tables, value);
	}
	*ret_tables = tables;
	return tables.symbols && tables.strings && tables.hash;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* Where the table has the symbol, if it has this name and is defined. */
static uint64_t symbol_if(struct reader reader, const struct tables *tables, uint64_t index,
			  const char *name)
{
	uint64_t at = tables->symbols + index * sizeof(ElfW(Sym));
	uint32_t name_at, info_and_section;

	if (!load_u32(reader, at + offsetof(ElfW(Sym), st_name), &name_at) ||
	    !load_u32(reader, at + offsetof(ElfW(Sym), st_info), &info_and_section) ||
	    info_and_section >> 16 == SHN_UNDEF)
		return 0;
	for (unsigned int i = 0; i < NAME_MAX_BYTES; i++) {
		uint8_t byte;

		if (!load_u8(reader, tables->strings + name_at + i, &byte) ||
		    byte != (uint8_t)name[i])
			return 0;
		if (!byte)
			return at;
	}
	return 0;
}

struct buckets {
	uint32_t nr, first_symbol, nr_bloom, bloom_shift;
};

static bool read_buckets(struct reader reader, uint64_t hash_table, struct buckets *ret)
{
	return load_u32(reader, hash_table, &ret->nr) &&
	       load_u32(reader, hash_table + 4, &ret->first_symbol) &&
	       load_u32(reader, hash_table + 8, &ret->nr_bloom) &&
	       load_u32(reader, hash_table + 12, &ret->bloom_shift) && ret->nr && ret->nr_bloom;
}

static bool may_be_there(struct reader reader, uint64_t bloom, const struct buckets *buckets,
			 uint32_t hash)
{
	uint64_t word;

	return load_u64(reader, bloom + hash / 64 % buckets->nr_bloom * 8, &word) &&
	       word >> hash % 64 & word >> (hash >> (buckets->bloom_shift & 31)) % 64 & 1;
}

static uint64_t find(struct reader reader, const struct tables *tables, const char *name)
{
	uint32_t hash = hash_of(name), symbol, chained;
	struct buckets buckets;
	uint64_t first_bucket, chains, found;

	if (!read_buckets(reader, tables->hash, &buckets) ||
	    !may_be_there(reader, tables->hash + 16, &buckets, hash))
		return 0;
	first_bucket = tables->hash + 16 + (uint64_t)buckets.nr_bloom * 8;
	chains = first_bucket + (uint64_t)buckets.nr * 4;
	if (!load_u32(reader, first_bucket + (uint64_t)(hash % buckets.nr) * 4, &symbol) ||
	    symbol < buckets.first_symbol)
		return 0;
	for (unsigned int i = 0; i < CHAIN_MAX; i++, symbol++) {
		if (!load_u32(reader, chains + (uint64_t)(symbol - buckets.first_symbol) * 4,
			      &chained))
			return 0;
		found = (chained | 1) == (hash | 1) ? symbol_if(reader, tables, symbol, name) : 0;
		if (found || chained & 1)
			return found;
	}
	return 0;
}

uint64_t loaded_symbol(struct reader reader, uint64_t object, const char *name)
{
	struct tables tables;
	uint64_t at, value;

	if (!read_tables(reader, object, &tables))
		return 0;
	at = find(reader, &tables, name);
	return at && load_u64(reader, at + offsetof(ElfW(Sym), st_value), &value)
		       ? tables.base + value
		       : 0;
}

uint64_t loaded_symbol_bytes(struct reader reader, uint64_t object, const char *name)
{
	struct tables tables;
	uint64_t at, bytes;

	if (!read_tables(reader, object, &tables))
		return 0;
	at = find(reader, &tables, name);
	return at && load_u64(reader, at + offsetof(ElfW(Sym), st_size), &bytes) ? bytes : 0;
}

void loaded_path(struct reader reader, uint64_t object, char *to, size_t room)
{
	uint64_t name;
	size_t i = 0;

	if (load_u64(reader, object + offsetof(struct link_map, l_name), &name))
		while (i + 1 < room && load_u8(reader, name + i, (uint8_t *)&to[i]) && to[i])
			i++;
	to[i] = 0;
}
