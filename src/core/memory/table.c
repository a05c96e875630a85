/* SPDX-License-Identifier: MIT */
/*
 * The definition table: what was seen once is written once, for all threads and processes.
 *
 * A code is a record and an index beside it (open addressing, linear probing, 0 is empty). To
 * intern:
 *
 *   1. probe the index: a record with the same content ends the search
 *   2. at an empty place: take a number from the tail (fetch-and-add), fill the record, commit it
 *      (release store of its last word), publish the number (compare-and-swap into the place)
 *   3. the place was taken meanwhile: compare with that record, go on from there
 *
 * Who loses the race of step 3 against equal content uses the winner's number: its own record is
 * wasted, committed and named by nobody. Nothing is ever changed or removed, so readers need no
 * lock: a number found in the index, or in a sample, names a committed record.
 *
 * A node is found through its parent: the first CHAIN_MAX children hang in a chain from the parent,
 * newest first, published by a compare-and-swap of its head; the others are in an index as above.
 * Most parents have few children, made one after the other, so a new stack touches neighbouring
 * lines; the index, as large as it must be for the worst program, is touched for wide parents
 * alone. (With the index only, a new stack of 32 frames cost 12 us in a fresh recording, most of
 * it page faults; with the chain a quarter of it.) No node is in both: who pushes has seen a whole
 * chain shorter than CHAIN_MAX under the very head that it replaces, and a chain never shrinks.
 *
 * A parent has a smaller number than its children: its number was published, and thereby taken
 * from the tail, before anyone could ask for a child of it. The same holds for a code and the
 * nodes that name it being committed. A node's parent is thus always committed before the node.
 *
 * Tails may pass their bound (by one for each thread that was at it in that moment), and no more:
 * who finds the tail at the bound does not add to it.
 */
#include "core/memory/memory.h"

/* The index is at most half full; runs of that length do not occur with a fair hash. */
#define TABLE_PROBES_MAX 256

#define CHAIN_MAX 8 /* children found through their parent: two cache lines of them */

static uint32_t mix(uint64_t a, uint64_t b)
{
	uint64_t x =
		a * 0x9e3779b97f4a7c15ull ^ (b + 0x632be59bd9b4e019ull) * 0xd6e8feb86659fd93ull;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return (uint32_t)(x >> 32);
}

/* The next number of a tail below @bound, or 0. */
static uint32_t take_number(_Atomic uint32_t *tail, uint32_t bound)
{
	uint32_t number;

	if (atomic_load_explicit(tail, memory_order_relaxed) >= bound)
		return 0;
	number = atomic_fetch_add_explicit(tail, 1, memory_order_relaxed);
	return number < bound ? number : 0;
}

static bool publish(_Atomic uint32_t *place, uint32_t number, uint32_t *ret_present)
{
	return atomic_compare_exchange_strong_explicit(place, ret_present, number,
						       memory_order_acq_rel, memory_order_acquire);
}

static uint32_t make_node(struct memory *memory, uint32_t parent, uint32_t owner, uint64_t where)
{
	uint32_t number = take_number(&memory->header->nodes_used, memory->header->sizes.nr_nodes);

	if (number) {
		memory->nodes[number].parent = parent;
		memory->nodes[number].owner = owner;
		atomic_store_explicit(&memory->nodes[number].where, where, memory_order_release);
	}
	return number;
}

/* What is looked for, and the record made for it where it is new. */
struct wanted_node {
	uint32_t parent;
	uint32_t owner;
	uint64_t where;
	uint32_t mine; /* 0: none made yet */
};

static bool is_wanted(const struct node *node, const struct wanted_node *wanted)
{
	return node->owner == wanted->owner &&
	       atomic_load_explicit(&node->where, memory_order_relaxed) == wanted->where &&
	       node->parent == wanted->parent;
}

/* Makes the wanted node's record, once. Returns false: the table is full. */
static bool have_mine(struct memory *memory, struct wanted_node *wanted)
{
	if (!wanted->mine)
		wanted->mine = make_node(memory, wanted->parent, wanted->owner, wanted->where);
	return wanted->mine != 0;
}

/*
 * Finds the wanted node in its parent's chain, or pushes it there.
 * Returns its number; 0 with *ret_wide: the chain is full and it is not in there; 0 without: the
 * table is full. Tries again when others push: at most CHAIN_MAX times, then the chain is full.
 */
static uint32_t chain_node(struct memory *memory, struct wanted_node *wanted, bool *ret_wide)
{
	_Atomic uint32_t *head = &memory->nodes[wanted->parent].first_child;
	uint32_t first = atomic_load_explicit(head, memory_order_acquire);

	for (;;) {
		uint32_t length = 0;

		for (uint32_t number = first; number && length < CHAIN_MAX; length++) {
			const struct node *node = &memory->nodes[number];

			if (is_wanted(node, wanted))
				return number;
			number = node->next_sibling;
		}
		*ret_wide = length == CHAIN_MAX;
		if (*ret_wide || !have_mine(memory, wanted))
			return 0;
		memory->nodes[wanted->mine].next_sibling = first;
		if (publish(head, wanted->mine, &first))
			return wanted->mine;
	}
}

/* Finds the wanted node in the index, or publishes it there. 0: table or index full. */
static uint32_t indexed_node(struct memory *memory, struct wanted_node *wanted)
{
	uint32_t mask = memory->header->sizes.node_index_slots - 1;
	uint32_t hash = mix(wanted->where, (uint64_t)wanted->parent << 32 | wanted->owner);

	for (uint32_t probe = 0; probe < TABLE_PROBES_MAX; probe++) {
		_Atomic uint32_t *place = &memory->node_index[(hash + probe) & mask];
		uint32_t number = atomic_load_explicit(place, memory_order_acquire);

		if (!number &&
		    (!have_mine(memory, wanted) || publish(place, wanted->mine, &number)))
			return wanted->mine;
		if (is_wanted(&memory->nodes[number], wanted))
			return number;
	}
	return 0;
}

uint32_t table_node(struct memory *memory, uint32_t parent, uint32_t owner, uint64_t where)
{
	struct wanted_node wanted = {.parent = parent, .owner = owner, .where = where};
	bool wide = false;
	uint32_t number = chain_node(memory, &wanted, &wide);

	return wide ? indexed_node(memory, &wanted) : number;
}

/*
 * Finds the code with @identity. Where there is none and @mine is given, publishes that one.
 * Returns 0: not there, or no room in the index.
 */
static uint32_t find_or_publish_code(struct memory *memory, uint64_t identity, uint32_t mine)
{
	uint32_t mask = memory->header->sizes.code_index_slots - 1;
	uint32_t hash = mix(identity, 0);

	for (uint32_t probe = 0; probe < TABLE_PROBES_MAX; probe++) {
		_Atomic uint32_t *place = &memory->code_index[(hash + probe) & mask];
		uint32_t number = atomic_load_explicit(place, memory_order_acquire);

		if (!number && (!mine || publish(place, mine, &number)))
			return mine;
		if (memory->codes[number].identity == identity)
			return number;
	}
	return 0;
}

void table_prefetch_code(const struct memory *memory, uint64_t identity)
{
	uint32_t mask = memory->header->sizes.code_index_slots - 1;

	__builtin_prefetch((const void *)&memory->code_index[mix(identity, 0) & mask]);
}

uint32_t table_find_code(struct memory *memory, uint64_t identity)
{
	return find_or_publish_code(memory, identity, 0);
}

uint32_t table_reserve_code(struct memory *memory, uint64_t text_bytes, uint8_t **ret_text,
			    uint64_t *ret_text_at)
{
	struct memory_header *header = memory->header;
	uint64_t room = header->sizes.text_bytes;
	uint64_t at = atomic_load_explicit(&header->text_used, memory_order_relaxed);
	uint32_t number;

	if (at > room || text_bytes > room - at)
		return 0;
	number = take_number(&header->codes_used, header->sizes.nr_codes);
	if (!number)
		return 0;
	at = atomic_fetch_add_explicit(&header->text_used, text_bytes, memory_order_relaxed);
	if (at > room || text_bytes > room - at)
		return 0;
	*ret_text = memory->text + at;
	*ret_text_at = at;
	return number;
}

uint32_t table_commit_code(struct memory *memory, uint32_t id, uint64_t identity)
{
	struct code *code = &memory->codes[id];

	code->identity = identity;
	atomic_store_explicit(&code->committed, 1, memory_order_release);
	return find_or_publish_code(memory, identity, id);
}
