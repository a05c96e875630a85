/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a function that returns a thread-local variable, on x86-64. What the models
 * look like once compiled and linked (the linker rewrites one model into a cheaper one):
 *
 *   local-exec       mov %fs:DISTANCE,%rax
 *                    mov %fs:0,%rax; lea DISTANCE(%rax),%rax or mov DISTANCE(%rax),%rax
 *   initial-exec     mov ENTRY(%rip),%rax or mov $DISTANCE,%rax; mov %fs:(%rax),%rax
 *                    mov %fs:0,%rax; add ENTRY(%rip),%rax; mov (%rax),%rax
 *   general-dynamic  lea PAIR(%rip),%rdi; call __tls_get_addr; mov (%rax),%rax
 *   local-dynamic    the same, with mov OFFSET(%rax),%rax
 *   descriptors      lea PAIR(%rip),%rax; call *(%rax); mov %fs:(%rax),%rax
 *
 * with padding prefixes, and a frame set up and taken down around them. Builds without optimization
 * call a small function that does it.
 */
#include "core/cpython/thread_local.h"

#include <string.h>

#define INSTRUCTIONS_MAX 24
#define PATTERN_MAX	 8

enum act {
	ACT_SKIP,
	ACT_LOAD_THREAD,      /* mov %fs:operand,%rax */
	ACT_SET_DISTANCE,     /* mov $operand,%rax */
	ACT_LOAD_DISTANCE,    /* mov operand(%rip),%rax */
	ACT_ADD,	      /* lea operand(%rax),%rax */
	ACT_ADD_LOADED,	      /* add operand(%rip),%rax */
	ACT_SET_PAIR,	      /* lea operand(%rip),%rdi or %rax */
	ACT_CALL,	      /* call operand */
	ACT_CALL_DESCRIPTOR,  /* call *(%rax) */
	ACT_LOAD_AT_DISTANCE, /* mov %fs:(%rax),%rax */
	ACT_LOAD,	      /* mov operand(%rax),%rax */
};

static const struct instruction {
	uint8_t pattern[PATTERN_MAX];
	uint8_t length;
	uint8_t operand_length;
	uint8_t act; /* enum act */
} instructions[] = {
	{{0xf3, 0x0f, 0x1e, 0xfa}, 4, 0, ACT_SKIP}, /* endbr64 */
	{{0x66}, 1, 0, ACT_SKIP},		    /* a prefix without meaning here */
	{{0x90}, 1, 0, ACT_SKIP},		    /* nop */
	{{0x53}, 1, 0, ACT_SKIP},		    /* push %rbx */
	{{0x55}, 1, 0, ACT_SKIP},		    /* push %rbp */
	{{0x5d}, 1, 0, ACT_SKIP},		    /* pop %rbp */
	{{0x48, 0x89, 0xe5}, 3, 0, ACT_SKIP},	    /* mov %rsp,%rbp */
	{{0x48, 0x83, 0xec}, 3, 1, ACT_SKIP},	    /* sub $operand,%rsp */
	{{0x48, 0x83, 0xc4}, 3, 1, ACT_SKIP},	    /* add $operand,%rsp */
	{{0x64, 0x48, 0x8b, 0x04, 0x25}, 5, 4, ACT_LOAD_THREAD},
	{{0x48, 0xc7, 0xc0}, 3, 4, ACT_SET_DISTANCE},
	{{0x48, 0x8b, 0x05}, 3, 4, ACT_LOAD_DISTANCE},
	{{0x48, 0x8d, 0x80}, 3, 4, ACT_ADD},
	{{0x48, 0x05}, 2, 4, ACT_ADD},
	{{0x48, 0x03, 0x05}, 3, 4, ACT_ADD_LOADED},
	{{0x48, 0x8d, 0x3d}, 3, 4, ACT_SET_PAIR},
	{{0x48, 0x8d, 0x05}, 3, 4, ACT_SET_PAIR},
	{{0xe8}, 1, 4, ACT_CALL},
	{{0x48, 0xe8}, 2, 4, ACT_CALL},
	{{0x67, 0xe8}, 2, 4, ACT_CALL},
	{{0xff, 0x15},
	 2,
	 4,
	 ACT_CALL}, /* through the GOT; follows a pair, so its target is known */
	{{0x48, 0xff, 0x15}, 3, 4, ACT_CALL},
	{{0xff, 0x10}, 2, 0, ACT_CALL_DESCRIPTOR},
	{{0x64, 0x48, 0x8b, 0x00}, 4, 0, ACT_LOAD_AT_DISTANCE},
	{{0x48, 0x8b, 0x00}, 3, 0, ACT_LOAD},
	{{0x48, 0x8b, 0x40}, 3, 1, ACT_LOAD},
	{{0x48, 0x8b, 0x80}, 3, 4, ACT_LOAD},
};

/* What %rax is known to hold. */
enum holds {
	HOLDS_NOTHING,
	HOLDS_PLACE,	/* the address of @variable */
	HOLDS_DISTANCE, /* the distance of @variable from the thread pointer */
};

struct decoding {
	struct reader reader;
	uint64_t at;	  /* of the next instruction */
	uint64_t pair;	  /* {module, offset} or a descriptor; 0: none */
	enum holds holds; /* %rax */
	bool followed;	  /* a call */
	bool done;
	struct cpython_thread_local variable;
};

static const struct instruction *instruction_at(const struct decoding *decoding)
{
	uint8_t bytes[PATTERN_MAX] = {0};

	for (size_t i = 0; i < PATTERN_MAX; i++)
		if (!load_u8(decoding->reader, decoding->at + i, &bytes[i]))
			break;
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++)
		if (!memcmp(bytes, instructions[i].pattern, instructions[i].length))
			return &instructions[i];
	return NULL;
}

static bool operand_of(struct decoding *decoding, const struct instruction *instruction,
		       int64_t *ret_operand)
{
	uint64_t at = decoding->at + instruction->length;
	uint32_t four = 0;
	uint8_t one = 0;

	*ret_operand = 0;
	if (instruction->operand_length == 1 && !load_u8(decoding->reader, at, &one))
		return false;
	if (instruction->operand_length == 4 && !load_u32(decoding->reader, at, &four))
		return false;
	*ret_operand = instruction->operand_length == 1 ? (int8_t)one : (int32_t)four;
	decoding->at = at + instruction->operand_length;
	return true;
}

static bool hold(struct decoding *decoding, enum holds holds, int64_t offset)
{
	decoding->holds = holds;
	decoding->variable = (struct cpython_thread_local){.known = 1, .offset = offset};
	return true;
}

static bool call(struct decoding *decoding, int64_t operand)
{
	uint64_t module, offset;

	if (!decoding->pair) {
		decoding->at += (uint64_t)operand;
		if (decoding->followed)
			return false;
		decoding->followed = true;
		return true;
	}
	if (!load_u64(decoding->reader, decoding->pair, &module) ||
	    !load_u64(decoding->reader, decoding->pair + 8, &offset) || !module ||
	    module > UINT32_MAX)
		return false;
	hold(decoding, HOLDS_PLACE, (int64_t)offset);
	decoding->variable.module = (uint32_t)module;
	return true;
}

static bool call_descriptor(struct decoding *decoding)
{
	uint64_t argument;

	decoding->holds = HOLDS_DISTANCE;
	return decoding->pair && load_u64(decoding->reader, decoding->pair + 8, &argument) &&
	       thread_local_descriptor(decoding->reader, argument, &decoding->variable);
}

static bool load_thread(struct decoding *decoding, int64_t operand)
{
	decoding->done = operand != 0;
	return hold(decoding, HOLDS_PLACE, operand);
}

static bool add(struct decoding *decoding, int64_t operand)
{
	decoding->variable.offset += operand;
	return decoding->holds == HOLDS_PLACE;
}

/* Returns false: not the code of a known model. */
static bool act(struct decoding *decoding, enum act act, int64_t operand)
{
	uint64_t loaded;

	switch (act) {
	case ACT_SKIP:
		return true;
	case ACT_LOAD_THREAD:
		return load_thread(decoding, operand);
	case ACT_SET_DISTANCE:
		return hold(decoding, HOLDS_DISTANCE, operand);
	case ACT_LOAD_DISTANCE:
		return load_u64(decoding->reader, decoding->at + (uint64_t)operand, &loaded) &&
		       hold(decoding, HOLDS_DISTANCE, (int64_t)loaded);
	case ACT_ADD:
		return add(decoding, operand);
	case ACT_ADD_LOADED:
		return load_u64(decoding->reader, decoding->at + (uint64_t)operand, &loaded) &&
		       add(decoding, (int64_t)loaded);
	case ACT_SET_PAIR:
		decoding->pair = decoding->at + (uint64_t)operand;
		return true;
	case ACT_CALL:
		return call(decoding, operand);
	case ACT_CALL_DESCRIPTOR:
		return call_descriptor(decoding);
	case ACT_LOAD_AT_DISTANCE:
		decoding->done = true;
		return decoding->holds == HOLDS_DISTANCE;
	case ACT_LOAD:
		decoding->done = true;
		return add(decoding, operand);
	}
	return false;
}

bool thread_local_decode_x86_64(struct reader reader, uint64_t getter,
				struct cpython_thread_local *ret_variable)
{
	struct decoding decoding = {.reader = reader, .at = getter};

	for (unsigned int i = 0; i < INSTRUCTIONS_MAX; i++) {
		const struct instruction *instruction = instruction_at(&decoding);
		int64_t operand;

		if (!instruction || !operand_of(&decoding, instruction, &operand) ||
		    !act(&decoding, instruction->act, operand))
			return false;
		if (!decoding.done)
			continue;
		*ret_variable = decoding.variable;
		return true;
	}
	return false;
}
