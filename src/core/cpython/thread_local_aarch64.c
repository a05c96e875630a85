/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a function that returns a thread-local variable, on aarch64:
 *
 *   local-exec    mrs xA,tpidr_el0; add xA,xA,#HIGH,lsl #12; [add xA,xA,#LOW;] ldr x0,[xA,#LOW]
 *   initial-exec  mrs xA,tpidr_el0; adrp xB,ENTRY; ldr xB,[xB,#ENTRY]; ldr x0,[xA,xB]
 *   descriptors   adrp x0,PAIR; ldr x1,[x0,#PAIR]; add x0,x0,#PAIR; blr x1; mrs xA,tpidr_el0;
 *                 ldr x0,[xA,x0]
 *
 * in whatever registers and order: what each register holds is followed.
 */
#include "core/cpython/thread_local.h"

#define INSTRUCTIONS_MAX 32
#define REGISTERS	 32

enum holds {
	HOLDS_NOTHING,
	HOLDS_NUMBER,	/* @variable.offset: an address, or a distance from the thread pointer */
	HOLDS_DISTANCE, /* the distance of @variable, from a descriptor */
	HOLDS_PLACE,	/* the address of @variable */
};

struct held {
	enum holds holds;
	struct cpython_thread_local variable;
};

struct decoding {
	struct reader reader;
	uint64_t at;
	struct held registers[REGISTERS];
	bool done;
	struct cpython_thread_local variable;
};

static void hold_number(struct held *to, uint64_t number)
{
	*to = (struct held){HOLDS_NUMBER, {.known = 1, .offset = (int64_t)number}};
}

/* Does not change what the registers hold: hints, and pairs saved to and restored from the stack.
 */
static bool is_frame_work(uint32_t word)
{
	return (word & 0xfffff01f) == 0xd503201f || /* nop, bti, paciasp, autiasp */
	       (word & 0xffc07fff) == 0xa9007bfd || /* stp x29,x30,[sp,...] */
	       (word & 0xffc07fff) == 0xa9807bfd || /* with write-back */
	       (word & 0xffc07fff) == 0xa8c07bfd || /* ldp x29,x30,[sp],... */
	       word == 0x910003fd;		    /* mov x29,sp */
}

static bool adrp(struct decoding *decoding, uint32_t word)
{
	uint64_t pages = (word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);

	if (pages & 0x100000) /* sign of 21 bits */
		pages |= ~(uint64_t)0x1fffff;
	hold_number(&decoding->registers[word & 31],
		    (decoding->at & ~(uint64_t)0xfff) + (pages << 12));
	return true;
}

static bool add_immediate(struct decoding *decoding, uint32_t word)
{
	struct held from = decoding->registers[word >> 5 & 31];
	int64_t immediate = word >> 10 & 0xfff;

	if (word & 1u << 22)
		immediate <<= 12;
	from.variable.offset += immediate;
	decoding->registers[word & 31] = from;
	return from.holds != HOLDS_NOTHING && from.holds != HOLDS_DISTANCE;
}

/* Two registers of which one holds the thread pointer. */
static bool sum(const struct decoding *decoding, uint32_t word, struct held *ret_held)
{
	const struct held *one = &decoding->registers[word >> 5 & 31];
	const struct held *other = &decoding->registers[word >> 16 & 31];

	if (one->holds != HOLDS_PLACE) {
		const struct held *swap = one;

		one = other;
		other = swap;
	}
	if (one->holds != HOLDS_PLACE || one->variable.module ||
	    (other->holds != HOLDS_NUMBER && other->holds != HOLDS_DISTANCE))
		return false;
	*ret_held = (struct held){HOLDS_PLACE, other->variable};
	ret_held->variable.offset += one->variable.offset;
	return true;
}

static bool load_immediate(struct decoding *decoding, uint32_t word)
{
	struct held from = decoding->registers[word >> 5 & 31];
	uint64_t loaded;

	from.variable.offset += (word >> 10 & 0xfff) * 8;
	decoding->variable = from.variable;
	if (from.holds == HOLDS_PLACE)
		return decoding->done = true;
	if (from.holds != HOLDS_NUMBER ||
	    !load_u64(decoding->reader, (uint64_t)from.variable.offset, &loaded))
		return false;
	hold_number(&decoding->registers[word & 31], loaded);
	return true;
}

static bool load_sum(struct decoding *decoding, uint32_t word)
{
	struct held held;

	if (!sum(decoding, word, &held))
		return false;
	decoding->variable = held.variable;
	return decoding->done = true;
}

static bool add_registers(struct decoding *decoding, uint32_t word)
{
	return sum(decoding, word, &decoding->registers[word & 31]);
}

/* x0 is the address of a descriptor; all other registers keep what they hold. */
static bool call_descriptor(struct decoding *decoding)
{
	struct held *pair = &decoding->registers[0];
	uint64_t argument;

	if (pair->holds != HOLDS_NUMBER ||
	    !load_u64(decoding->reader, (uint64_t)pair->variable.offset + 8, &argument) ||
	    !thread_local_descriptor(decoding->reader, argument, &pair->variable))
		return false;
	pair->holds = HOLDS_DISTANCE;
	return true;
}

static bool step(struct decoding *decoding, uint32_t word)
{
	if (is_frame_work(word))
		return true;
	if ((word & 0xffffffe0) == 0xd53bd040) { /* mrs xR,tpidr_el0 */
		decoding->registers[word & 31] = (struct held){HOLDS_PLACE, {.known = 1}};
		return true;
	}
	if ((word & 0x9f000000) == 0x90000000)
		return adrp(decoding, word);
	if ((word & 0xff800000) == 0x91000000)
		return add_immediate(decoding, word);
	if ((word & 0xffe0fc00) == 0x8b000000)
		return add_registers(decoding, word);
	if ((word & 0xffc00000) == 0xf9400000)
		return load_immediate(decoding, word);
	if ((word & 0xffe0fc00) == 0xf8606800)
		return load_sum(decoding, word);
	if ((word & 0xfffffc1f) == 0xd63f0000)
		return call_descriptor(decoding);
	return false;
}

bool thread_local_decode_aarch64(struct reader reader, uint64_t getter,
				 struct cpython_thread_local *ret_variable)
{
	struct decoding decoding = {.reader = reader, .at = getter};

	for (unsigned int i = 0; i < INSTRUCTIONS_MAX; i++, decoding.at += 4) {
		uint32_t word;

		if (!load_u32(reader, decoding.at, &word) || !step(&decoding, word))
			return false;
		if (!decoding.done)
			continue;
		*ret_variable = decoding.variable;
		return true;
	}
	return false;
}
