/* SPDX-License-Identifier: MIT */
/*
 * Reading and identifying a code object.
 *
 * The identity is a hash of everything that a recording keeps of it, so that equal identity means
 * equal content, in every process of a recording. It is computed for every frame of every sample,
 * hence the shape: 64 bytes a round in four independent lanes, each a 64 x 64 -> 128 bit multiply
 * of two words (the mixing step of wyhash, public domain). No load reaches past the object: the
 * tail is two words that overlap what was hashed before, or single bytes.
 */
#include "core/cpython/cpython.h"

#include "core/cpython/layout_311.h"
#include "core/event/event.h"

#define NAME_CHARACTERS_MAX  512    /* longer qualified names are cut */
#define FILE_CHARACTERS_MAX  4096   /* PATH_MAX; longer file names are cut */
#define LINE_TABLE_BYTES_MAX 262144 /* some 40,000 lines; what is beyond has no line */

#define LANES	   4
#define LANE_BYTES 16

/* The version's numbers, folded into the code; another version has a copy of what uses them. */
static const struct cpython_layout *const layout = &cpython_layout_311;

static const struct reader here = {.kind = READER_DIRECT};

/* Odd, half of the bits set: wyhash's default secret. */
static const uint64_t secret[LANES] = {0x2d358dccaa6c78a5, 0x8bb84b93962eacc9, 0x4b33a62ed433d4a3,
				       0x4d5a2da51de1aa47};

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 product;
	product both = (product)a * b;

	return (uint64_t)both ^ (uint64_t)(both >> 64);
}

static inline bool mix_words(uint64_t first, uint64_t second, uint64_t key, uint64_t *lane)
{
	uint64_t a, b;

	if (!load_u64(here, first, &a) || !load_u64(here, second, &b))
		return false;
	*lane = mix(a ^ key, b ^ *lane);
	return true;
}

/* The whole rounds of 64 bytes. */
static inline bool hash_rounds(uint64_t address, uint64_t end, uint64_t *hash)
{
	uint64_t lane0 = *hash, lane1 = *hash, lane2 = *hash, lane3 = *hash;

	for (; address != end; address += LANES * LANE_BYTES)
		if (!mix_words(address, address + 8, secret[0], &lane0) ||
		    !mix_words(address + 16, address + 24, secret[1], &lane1) ||
		    !mix_words(address + 32, address + 40, secret[2], &lane2) ||
		    !mix_words(address + 48, address + 56, secret[3], &lane3))
			return false;
	*hash = mix(lane0 ^ secret[0], lane1) ^ mix(lane2 ^ secret[1], lane3);
	return true;
}

static inline bool hash_few(uint64_t address, uint64_t length, uint64_t *hash)
{
	uint64_t word = 0;
	uint8_t byte;

	for (uint64_t i = 0; i < length; i++) {
		if (!load_u8(here, address + i, &byte))
			return false;
		word = word << 8 | byte;
	}
	*hash = mix(word ^ secret[1], *hash);
	return true;
}

/* Returns 0 where a load failed, and for one in 2^64 contents. Callers bound @length. */
static uint64_t hash_bytes(uint64_t address, uint64_t length, uint64_t seed)
{
	uint64_t hash = (length * secret[0]) ^ (seed + secret[1]);
	uint64_t end = address + length;

	if (length < 8)
		return hash_few(address, length, &hash) ? hash : 0;
	if (length > LANES * LANE_BYTES) {
		uint64_t tail = end - length % (LANES * LANE_BYTES);

		if (!hash_rounds(address, tail, &hash))
			return 0;
		address = tail;
	}
	for (; end - address > LANE_BYTES; address += LANE_BYTES)
		if (!mix_words(address, address + 8, secret[1], &hash))
			return 0;
	if (end - address < 8) /* all but a few are hashed: go back */
		address = end - 8;
	return mix_words(address, end - 8, secret[2], &hash) ? hash : 0;
}

/* A str object in one of its compact forms; the only ones that the compiler makes. */
static inline bool read_text(const struct cpython *cpython, uint64_t address, uint32_t length_max,
			     struct cpython_text *to)
{
	uint64_t type, length;
	uint32_t state, width;
	bool ascii;

	if (!load_u64(here, address + layout->object_type, &type) || type != cpython->string_type ||
	    !load_u64(here, address + layout->string_length, &length) ||
	    !load_u32(here, address + layout->string_state, &state))
		return false;
	width = state >> layout->string_kind_shift & layout->string_kind_mask;
	ascii = state & layout->string_ascii_bit;
	if (!(state & layout->string_compact_bit) || (width != 1 && width != 2 && width != 4) ||
	    (ascii && width != 1))
		return false;
	to->address = address + (ascii ? layout->string_ascii_data : layout->string_compact_data);
	to->length = length < length_max ? (uint32_t)length : length_max;
	to->width = width;
	return true;
}

static inline uint64_t hash_text(const struct cpython_text *text)
{
	return hash_bytes(text->address, (uint64_t)text->length * text->width, text->width);
}

/* The frames of a stack come from a few files: each name is hashed once a walk. 0: unreadable. */
static uint64_t hash_file(const struct cpython *cpython, uint64_t address,
			  struct cpython_file_memo *memo)
{
	unsigned int entry = (address >> 5 ^ address >> 9) % CPYTHON_FILE_MEMO_ENTRIES;
	struct cpython_text text;
	uint64_t hash;

	if (memo->entries[entry].address == address && address)
		return memo->entries[entry].hash;
	if (!read_text(cpython, address, FILE_CHARACTERS_MAX, &text))
		return 0;
	hash = hash_text(&text);
	memo->entries[entry].address = address;
	memo->entries[entry].hash = hash;
	return hash;
}

/* The length of the bytes object at @address that is kept, in @ret_length. */
static inline bool read_line_table(const struct cpython *cpython, uint64_t address,
				   uint32_t *ret_length)
{
	uint64_t type, length;

	if (!load_u64(here, address + layout->object_type, &type) || type != cpython->bytes_type ||
	    !load_u64(here, address + layout->object_size, &length))
		return false;
	*ret_length = length < LINE_TABLE_BYTES_MAX ? (uint32_t)length : LINE_TABLE_BYTES_MAX;
	return true;
}

static inline uint64_t identity_of(uint64_t name, uint64_t file, uint64_t line_table,
				   uint32_t first_line)
{
	uint64_t identity = mix(name ^ secret[0], file ^ secret[1]) + first_line * secret[2];

	identity = mix(identity, line_table ^ secret[3]);
	return identity ? identity : 1;
}

/* All of @ret_code but the file's text, of which *@ret_file is the str object. */
static inline __attribute__((always_inline)) bool read_parts(const struct cpython *cpython,
							     uint64_t code_address,
							     struct cpython_code *ret_code,
							     uint64_t *ret_file)
{
	uint64_t type, name, line_table;

	if (!cpython->layout || !load_u64(here, code_address + layout->object_type, &type) ||
	    type != cpython->code_type ||
	    !load_u32(here, code_address + layout->code_first_line, &ret_code->first_line) ||
	    !load_u64(here, code_address + layout->code_qualified_name, &name) ||
	    !load_u64(here, code_address + layout->code_file, ret_file) ||
	    !load_u64(here, code_address + layout->code_line_table, &line_table) ||
	    !read_text(cpython, name, NAME_CHARACTERS_MAX, &ret_code->name) ||
	    !read_line_table(cpython, line_table, &ret_code->line_table_length))
		return false;
	ret_code->line_table = line_table + layout->bytes_data;
	ret_code->line_table_kind = layout->line_table_kind;
	return true;
}

/* Done for every frame of every sample: the parts stay in registers. */
uint64_t cpython_identify(const struct cpython *cpython, uint64_t code_address,
			  struct cpython_file_memo *file_memo)
{
	uint64_t file, name_hash, file_hash, line_table_hash;
	struct cpython_code code;

	if (!read_parts(cpython, code_address, &code, &file))
		return 0;
	name_hash = hash_text(&code.name);
	file_hash = hash_file(cpython, file, file_memo);
	line_table_hash = hash_bytes(code.line_table, code.line_table_length, code.line_table_kind);
	if (!name_hash || !file_hash || !line_table_hash)
		return 0;
	return identity_of(name_hash, file_hash, line_table_hash, code.first_line);
}

bool cpython_read_code(const struct cpython *cpython, uint64_t code_address,
		       struct cpython_code *ret_code)
{
	struct cpython_code code;
	uint64_t file;

	if (!read_parts(cpython, code_address, &code, &file) ||
	    !read_text(cpython, file, FILE_CHARACTERS_MAX, &code.file))
		return false;
	*ret_code = code;
	return true;
}

bool cpython_copy(uint64_t address, void *to, size_t length)
{
	uint8_t *at = to;

	for (; length >= 8; length -= 8, address += 8, at += 8) {
		uint64_t word;

		if (!load_u64(here, address, &word))
			return false;
		__builtin_memcpy(at, &word, sizeof(word));
	}
	for (; length; length--, address++, at++)
		if (!load_u8(here, address, at))
			return false;
	return true;
}
