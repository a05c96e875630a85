/* SPDX-License-Identifier: MIT */
/*
 * Reading and identifying a code object, over a memory reader and a table. Private to this room.
 *
 * The identity is a hash of everything that a recording keeps of it, so that equal identity means
 * equal content, in every process of a recording: the hash of the line table, seeded by the rest.
 * It is computed for every code object of every sample, hence the shape: 32 bytes a round in two
 * independent lanes, each a 64 x 64 -> 128 bit multiply of two words (the mixing step of wyhash,
 * public domain), which stay in registers that need not be saved. No load reaches past the object:
 * the tail is two words that overlap each other or what was hashed before, or single bytes.
 */
#ifndef PATHPROF_CORE_CPYTHON_READ_CODE_H
#define PATHPROF_CORE_CPYTHON_READ_CODE_H

#include "core/base/load.h"
#include "core/cpython/cpython.h"
#include "core/cpython/layout.h"

#define NAME_CHARACTERS_MAX  512    /* longer qualified names are cut */
#define FILE_CHARACTERS_MAX  4096   /* PATH_MAX; longer file names are cut */
#define LINE_TABLE_BYTES_MAX 262144 /* some 40,000 lines; what is beyond has no line */

#define LANES	     2
#define COPIED_BYTES 1024 /* of another process: a copy is hashed faster than loads */
#define LANE_BYTES   16

#define CODE_INLINE static inline __attribute__((always_inline))

/* Odd, half of the bits set: wyhash's default secret. */
static const uint64_t secret[] = {0x2d358dccaa6c78a5, 0x8bb84b93962eacc9, 0x4b33a62ed433d4a3};

CODE_INLINE uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 product;
	product both = (product)a * b;

	return (uint64_t)both ^ (uint64_t)(both >> 64);
}

CODE_INLINE bool mix_words(struct reader reader, uint64_t first, uint64_t second, uint64_t key,
			   uint64_t *lane)
{
	uint64_t a, b;

	if (!load_u64(reader, first, &a) || !load_u64(reader, second, &b))
		return false;
	*lane = mix(a ^ key, b ^ *lane);
	return true;
}

/* The whole rounds of 32 bytes. */
static inline bool hash_rounds(struct reader reader, uint64_t address, uint64_t end, uint64_t *hash)
{
	uint64_t lane0 = *hash, lane1 = *hash;

	for (; address != end; address += LANES * LANE_BYTES)
		if (!mix_words(reader, address, address + 8, secret[0], &lane0) ||
		    !mix_words(reader, address + 16, address + 24, secret[1], &lane1))
			return false;
	*hash = lane0 ^ lane1;
	return true;
}

/* Two halves that overlap, or single bytes. */
static inline bool hash_few(struct reader reader, uint64_t address, uint64_t length, uint64_t *hash)
{
	uint32_t first, last;
	uint64_t word = 0;
	uint8_t byte;

	if (length >= 4) {
		if (!load_u32(reader, address, &first) ||
		    !load_u32(reader, address + length - 4, &last))
			return false;
		word = (uint64_t)first << 32 | last;
	} else {
		for (uint64_t i = 0; i < length; i++) {
			if (!load_u8(reader, address + i, &byte))
				return false;
			word = word << 8 | byte;
		}
	}
	*hash = mix(word ^ secret[1], *hash);
	return true;
}

/* Returns 0 where a load failed, and for one in 2^64 contents. Callers bound @length. */
CODE_INLINE uint64_t hash_loads(struct reader reader, uint64_t address, uint64_t length,
				uint64_t seed)
{
	uint64_t hash = (length * secret[0]) ^ (seed + secret[1]);
	uint64_t end = address + length;

	if (length < 8)
		return hash_few(reader, address, length, &hash) ? hash : 0;
	if (length > LANES * LANE_BYTES) {
		uint64_t tail = end - length % (LANES * LANE_BYTES);

		if (!hash_rounds(reader, address, tail, &hash))
			return 0;
		address = tail;
	}
	if (end - address > LANE_BYTES) {
		if (!mix_words(reader, address, address + 8, secret[1], &hash))
			return 0;
		address += LANE_BYTES;
	}
	if (end - address < 8) /* all but a few are hashed: go back */
		address = end - 8;
	return mix_words(reader, address, end - 8, secret[2], &hash) ? hash : 0;
}

/* Two copies serve all versions. */
static uint64_t hash_direct(uint64_t address, uint64_t length, uint64_t seed)
{
	const struct reader reader = {.kind = READER_DIRECT};

	return hash_loads(reader, address, length, seed);
}

static uint64_t hash_blocks(struct load_blocks *blocks, uint64_t address, uint64_t length,
			    uint64_t seed)
{
	const struct reader reader = {.kind = READER_BLOCKS, .blocks = blocks};
	uint8_t copy[COPIED_BYTES];

	if (length > sizeof(copy))
		return hash_loads(reader, address, length, seed);
	if (!load_from_blocks(blocks, address, copy, length))
		return 0;
	return hash_direct((uintptr_t)copy, length, seed);
}

CODE_INLINE uint64_t hash_bytes(struct reader reader, uint64_t address, uint64_t length,
				uint64_t seed)
{
	return reader.kind == READER_DIRECT ? hash_direct(address, length, seed)
					    : hash_blocks(reader.blocks, address, length, seed);
}

/* Constants where it is used: folded away. */
struct code_reading {
	struct reader reader;
	const struct cpython_layout *layout;
	const struct cpython *cpython;
};

/* A str object in one of its compact forms; the only ones that the compiler makes. */
CODE_INLINE bool read_text(const struct code_reading *in, uint64_t address, uint32_t length_max,
			   struct cpython_text *to)
{
	const struct cpython_layout *layout = in->layout;
	const uint32_t kind = (uint32_t)layout->string_kind_mask << layout->string_kind_shift;
	const uint32_t form = layout->string_compact_bit | layout->string_ascii_bit;
	uint64_t type, length;
	uint32_t state;

	if (!load_u64(in->reader, address + layout->object_type, &type) ||
	    type != in->cpython->string_type ||
	    !load_u64(in->reader, address + layout->string_length, &length) ||
	    !load_u32(in->reader, address + layout->string_state, &state))
		return false;
	if ((state & (form | kind)) == (form | 1u << layout->string_kind_shift)) {
		to->width = 1; /* ASCII: nearly all */
		to->address = address + layout->string_ascii_data;
	} else {
		to->width = (state & kind) >> layout->string_kind_shift;
		if ((state & form) != layout->string_compact_bit ||
		    (to->width != 1 && to->width != 2 && to->width != 4))
			return false;
		to->address = address + layout->string_compact_data;
	}
	to->length = length < length_max ? (uint32_t)length : length_max;
	return true;
}

CODE_INLINE uint64_t hash_text(const struct code_reading *in, const struct cpython_text *text)
{
	return hash_bytes(in->reader, text->address, (uint64_t)text->length * text->width,
			  text->width);
}

/* The frames of a stack come from a few files: each name is hashed once a walk. 0: unreadable. */
CODE_INLINE uint64_t hash_file(const struct code_reading *in, uint64_t address,
			       struct cpython_file_memo *memo)
{
	unsigned int entry = (address >> 5 ^ address >> 9) % CPYTHON_FILE_MEMO_ENTRIES;
	struct cpython_text text;
	uint64_t hash;

	if (memo->entries[entry].address == address) /* of an empty one the hash is 0 */
		return memo->entries[entry].hash;
	if (!read_text(in, address, FILE_CHARACTERS_MAX, &text))
		return 0;
	hash = hash_text(in, &text);
	memo->entries[entry].address = address;
	memo->entries[entry].hash = hash;
	return hash;
}

/* The length of the bytes object at @address that is kept, in @ret_length. */
CODE_INLINE bool read_line_table(const struct code_reading *in, uint64_t address,
				 uint32_t *ret_length)
{
	uint64_t type, length;

	if (!load_u64(in->reader, address + in->layout->object_type, &type) ||
	    type != in->cpython->bytes_type ||
	    !load_u64(in->reader, address + in->layout->object_size, &length))
		return false;
	*ret_length = length < LINE_TABLE_BYTES_MAX ? (uint32_t)length : LINE_TABLE_BYTES_MAX;
	return true;
}

/* All of @ret_code but the file's text, of which *@ret_file is the str object. */
CODE_INLINE bool read_parts(const struct code_reading *in, uint64_t code_address,
			    struct cpython_code *ret_code, uint64_t *ret_file)
{
	const struct cpython_layout *layout = in->layout;
	uint64_t type, name, line_table;

	if (!load_u64(in->reader, code_address + layout->object_type, &type) ||
	    type != in->cpython->code_type ||
	    !load_u32(in->reader, code_address + layout->code_first_line, &ret_code->first_line) ||
	    !load_u64(in->reader, code_address + layout->code_qualified_name, &name) ||
	    !load_u64(in->reader, code_address + layout->code_file, ret_file) ||
	    !load_u64(in->reader, code_address + layout->code_line_table, &line_table) ||
	    !read_text(in, name, NAME_CHARACTERS_MAX, &ret_code->name) ||
	    !read_line_table(in, line_table, &ret_code->line_table_length))
		return false;
	ret_code->line_table = line_table + layout->bytes_data;
	ret_code->line_table_kind = layout->line_table_kind;
	return true;
}

/* Done for every code object of every sample: the parts stay in registers. 0: unreadable. */
CODE_INLINE uint64_t identify_code(const struct code_reading *in, uint64_t code_address,
				   struct cpython_file_memo *file_memo)
{
	uint64_t file, name_hash, file_hash, seed;
	struct cpython_code code;

	if (!read_parts(in, code_address, &code, &file))
		return 0;
	name_hash = hash_text(in, &code.name);
	file_hash = name_hash ? hash_file(in, file, file_memo) : 0;
	if (!file_hash)
		return 0;
	seed = mix(name_hash ^ secret[0], file_hash ^ secret[1]) + code.first_line * secret[2];
	return hash_bytes(in->reader, code.line_table, code.line_table_length,
			  seed + code.line_table_kind);
}

CODE_INLINE bool read_code(const struct code_reading *in, uint64_t code_address,
			   struct cpython_code *ret_code)
{
	struct cpython_code code;
	uint64_t file;

	if (!read_parts(in, code_address, &code, &file) ||
	    !read_text(in, file, FILE_CHARACTERS_MAX, &code.file))
		return false;
	*ret_code = code;
	return true;
}

#endif
