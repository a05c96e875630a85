/* SPDX-License-Identifier: MIT */
/*
 * A small made-up interpreter for unit tests: objects at the offsets of the 3.11 table, in memory
 * that ends at an unmapped page, so that a load past an object's end faults.
 */
#ifndef PATHPROF_CORE_CPYTHON_WORLD_FOR_TESTS_H
#define PATHPROF_CORE_CPYTHON_WORLD_FOR_TESTS_H

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "core/cpython/cpython.h"
#include "core/cpython/layouts.h"

#define WORLD_BYTES (1 << 20)
#define PAGE_BYTES  4096

struct world {
	struct cpython cpython;
	uint8_t *memory;
	size_t free;	     /* objects are made from the end downwards, next to each other */
	uint64_t next_frame; /* frames upwards, so that each stands where the one before ends */
};

static inline const struct cpython_layout *world_layout(const struct world *world)
{
	return cpython_layout_at(world->cpython.layout);
}

static inline void world_on_fault(int signal_number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	uintptr_t recovery;

	(void)info;
#if defined(__x86_64__)
	recovery = load_recover((uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP]);
	interrupted->uc_mcontext.gregs[REG_RIP] = (greg_t)recovery;
#else
	recovery = load_recover(interrupted->uc_mcontext.pc);
	interrupted->uc_mcontext.pc = recovery;
#endif
	if (!recovery)
		signal(signal_number, SIG_DFL);
}

static inline bool world_init(struct world *world)
{
	*world = (struct world){.cpython = {.layout = CPYTHON_LAYOUT_311,
					    .code_type = 0x1000,
					    .string_type = 0x2000,
					    .bytes_type = 0x3000},
				.free = WORLD_BYTES};
	world->memory = mmap(NULL, WORLD_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (world->memory == MAP_FAILED)
		return false;
	world->next_frame = (uintptr_t)world->memory;
	return !mprotect(world->memory + WORLD_BYTES, PAGE_BYTES, PROT_NONE);
}

/* The world of a test, which calls this first: cmocka takes SIGSEGV after the setup function. */
static inline struct world *world_enter(void **state)
{
	struct sigaction action = {.sa_sigaction = world_on_fault, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &action, NULL);
	return *state;
}

static inline void world_release(struct world *world)
{
	munmap(world->memory, WORLD_BYTES + PAGE_BYTES);
}

/* An address from which on loads fault. */
static inline uint64_t world_end(const struct world *world)
{
	return (uintptr_t)world->memory + WORLD_BYTES;
}

/* @bytes of zeroes that end where the object made before begins, at any alignment. */
static inline uint64_t world_make(struct world *world, size_t bytes)
{
	world->free -= bytes;
	return (uintptr_t)world->memory + world->free;
}

static inline void world_put(uint64_t address, uint64_t value)
{
	memcpy((void *)(uintptr_t)address, &value, sizeof(value));
}

static inline void world_put_u32(uint64_t address, uint32_t value)
{
	memcpy((void *)(uintptr_t)address, &value, sizeof(value));
}

static inline uint64_t world_bytes(struct world *world, const void *data, size_t length)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t object = world_make(world, layout->bytes_data + length);

	world_put(object + layout->object_type, world->cpython.bytes_type);
	world_put(object + layout->object_size, length);
	memcpy((void *)(uintptr_t)(object + layout->bytes_data), data, length);
	return object;
}

static inline uint64_t world_string(struct world *world, const void *characters, size_t length,
				    unsigned int width, bool ascii)
{
	const struct cpython_layout *layout = world_layout(world);
	unsigned int data = ascii ? layout->string_ascii_data : layout->string_compact_data;
	uint64_t object = world_make(world, data + length * width);

	world_put(object + layout->object_type, world->cpython.string_type);
	world_put(object + layout->string_length, length);
	world_put_u32(object + layout->string_state,
		      width << layout->string_kind_shift | layout->string_compact_bit |
			      (ascii ? layout->string_ascii_bit : 0u));
	memcpy((void *)(uintptr_t)(object + data), characters, length * width);
	return object;
}

static inline uint64_t world_ascii(struct world *world, const char *text)
{
	return world_string(world, text, strlen(text), 1, true);
}

/* A code object of @nr_units code units, first line 10. */
static inline uint64_t world_code(struct world *world, uint64_t name, uint64_t file,
				  uint64_t line_table, uint64_t nr_units)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t code = world_make(world, layout->code_instructions + 2 * nr_units);

	world_put(code + layout->object_type, world->cpython.code_type);
	world_put(code + layout->object_size, nr_units);
	world_put_u32(code + layout->code_first_line, 10);
	world_put(code + layout->code_qualified_name, name);
	world_put(code + layout->code_file, file);
	world_put(code + layout->code_line_table, line_table);
	return code;
}

/* A frame that stands at @position, as in struct cpython_frame. */
static inline uint64_t world_frame(struct world *world, uint64_t code, uint32_t position,
				   bool is_entry, uint64_t previous)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t frame = world->next_frame;

	world->next_frame += layout->frame_locals;
	world_put(frame + layout->frame_code, code);
	world_put(frame + layout->frame_previous, previous);
	world_put(frame + layout->frame_instruction,
		  code + layout->code_instructions + 2 * (uint64_t)position - 2);
	world_put_u32(frame + layout->frame_is_entry, is_entry);
	return frame;
}

static inline uint64_t world_cframe(struct world *world, uint64_t frame, uint64_t previous)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t cframe = world_make(world, layout->cframe_previous + 8);

	world_put(cframe + layout->cframe_frame, frame);
	world_put(cframe + layout->cframe_previous, previous);
	return cframe;
}

static inline uint64_t world_state(struct world *world, uint32_t tid, uint64_t cframe)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t state = world_make(world, layout->state_root_cframe + 24);

	world_put(state + layout->state_native_id, tid);
	world_put(state + layout->state_cframe, cframe);
	return state;
}

/* A state that runs nothing. */
static inline uint64_t world_idle_state(struct world *world, uint32_t tid)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t state = world_state(world, tid, 0);

	world_put(state + layout->state_cframe, state + layout->state_root_cframe);
	return state;
}

#endif
