/* SPDX-License-Identifier: MIT */
/*
 * A look, in two steps: everything is copied first, then the caller checks that the thread stood
 * still, then the copy is interned. What was torn never reaches the definition table.
 *
 * Identities are those of the agent (a hash of a code object's content), so that both find each
 * other's codes. Codes whose identity the table has need no more; of others names and line table
 * are copied in the first step as well, for afterwards the thread may run and drop them.
 */
#include "tool/reader/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpython/layout_311.h"
#include "core/cpython/walk_311.h"

#define INTERPRETERS_MAX 256   /* bounds of the search: longer lists are cycles or lies */
#define STATES_MAX	 65536 /* over all interpreters */
#define ROOM_BYTES	 (8u << 20)
#define TEXT_BYTES_MAX	 (64u << 10)
#define TABLE_BYTES_MAX	 (1u << 20)

struct stack *stack_new(pid_t pid)
{
	struct stack *stack = calloc(1, sizeof(*stack));

	if (!stack)
		return NULL;
	stack->reader = (struct reader){
		.kind = READER_REMOTE, .pid = pid, .pages = calloc(1, sizeof(struct load_pages))};
	stack->room = malloc(ROOM_BYTES); /* what is not touched costs nothing */
	if (stack->reader.pages && stack->room)
		return stack;
	stack_free(stack);
	return NULL;
}

void stack_free(struct stack *stack)
{
	if (!stack)
		return;
	free(stack->reader.pages);
	free(stack->room);
	free(stack);
}

_Static_assert(sizeof(struct cpython) <= MEMORY_CPYTHON_BYTES, "it is handed over there");

bool stack_interpreter(struct stack *stack, const struct memory_interpreter *interpreter)
{
	memcpy(&stack->cpython, interpreter->cpython, sizeof(stack->cpython));
	stack->cpython.layout = NULL;
	if (stack->cpython.version >> 16 == cpython_layout_311.version)
		stack->cpython.layout = &cpython_layout_311;
	return stack->cpython.layout != NULL;
}

static bool is_of_thread(const struct stack *stack, uint64_t state, uint32_t tid)
{
	uint64_t native_id;

	return load_u64(stack->reader, state + stack->cpython.layout->state_native_id,
			&native_id) &&
	       native_id == tid;
}

/* Of the states of a thread the one with the lowest cframe runs: core/cpython/thread_state.c. */
static uint64_t find_state(struct stack *stack, uint32_t tid)
{
	const struct cpython_layout *layout = stack->cpython.layout;
	uint64_t interpreter, state, cframe, lowest = UINT64_MAX, found = 0;
	unsigned int nr_states = 0;

	if (!load_u64(stack->reader, stack->cpython.runtime + layout->runtime_first_interpreter,
		      &interpreter))
		return 0;
	for (unsigned int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		if (!load_u64(stack->reader, interpreter + layout->interpreter_first_state, &state))
			return found;
		for (; state && nr_states < STATES_MAX; nr_states++) {
			if (is_of_thread(stack, state, tid) &&
			    load_u64(stack->reader, state + layout->state_cframe, &cframe) &&
			    cframe < lowest) {
				found = state;
				lowest = cframe == state + layout->state_root_cframe
						 ? UINT64_MAX - 1
						 : cframe;
			}
			if (!load_u64(stack->reader, state + layout->state_next, &state))
				return found;
		}
		if (!load_u64(stack->reader, interpreter + layout->interpreter_next, &interpreter))
			return found;
	}
	return found;
}

/* @length bytes at @address, copied into the look's room. NULL: unreadable, or no room. */
static uint8_t *carry(struct stack *stack, uint64_t address, size_t length)
{
	uint8_t *copy = stack->room + stack->used;

	length = (length + 7) & ~(size_t)7; /* objects are so long */
	if (length > ROOM_BYTES - stack->used || !load_other(stack->reader, address, copy, length))
		return NULL;
	stack->used += length;
	return copy;
}

/* Replace the pointer at @place by one to a copy of the str or bytes object that it points to. */
static bool carry_object(struct stack *stack, uint8_t *place)
{
	const struct cpython_layout *layout = stack->cpython.layout;
	uint64_t address, type, length, bytes;
	uint32_t state = 0;
	uint8_t *copy;

	memcpy(&address, place, sizeof(address));
	if (!load_u64(stack->reader, address + layout->object_type, &type) ||
	    !load_u64(stack->reader, address + layout->object_size, &length))
		return false;
	if (type == stack->cpython.bytes_type) {
		bytes = length < TABLE_BYTES_MAX ? length : TABLE_BYTES_MAX;
		bytes += layout->bytes_data;
	} else {
		if (!load_u32(stack->reader, address + layout->string_state, &state))
			return false;
		bytes = (state >> layout->string_kind_shift & layout->string_kind_mask) *
			(length < TEXT_BYTES_MAX ? length : TEXT_BYTES_MAX);
		bytes += layout->string_compact_data;
	}
	copy = carry(stack, address, bytes);
	address = (uintptr_t)copy;
	memcpy(place, &address, sizeof(address));
	return copy != NULL;
}

/* A code object with its names and line table, as ours: core/cpython then reads it directly. */
static void carry_code(struct stack *stack, struct stack_code *code)
{
	const struct cpython_layout *layout = stack->cpython.layout;
	struct cpython_file_memo files = {0};
	uint8_t *copy = carry(stack, code->address, layout->code_instructions);

	if (!copy || !carry_object(stack, copy + layout->code_qualified_name) ||
	    !carry_object(stack, copy + layout->code_file) ||
	    !carry_object(stack, copy + layout->code_line_table))
		return;
	code->copy = (uintptr_t)copy;
	code->identity = cpython_identify(&stack->cpython, code->copy, &files);
}

/* The index of the code at @address, which is carried over where this look has not met it. */
static uint32_t code_at(struct stack *stack, uint64_t address)
{
	size_t i = 0;

	while (i < stack->nr_codes && stack->codes[i].address != address)
		i++;
	if (i == stack->nr_codes) {
		stack->codes[i] = (struct stack_code){.address = address};
		stack->nr_codes++;
		carry_code(stack, &stack->codes[i]);
	}
	return (uint32_t)i;
}

static void read_frames(struct stack *stack, uint64_t state)
{
	struct walk_room room = {.frames = stack->frames, .max = FRAMES_MAX};

	stack->end = walk_311(stack->reader, stack->cpython.layout, &stack->cpython, state, &room);
	stack->nr_frames = room.nr_frames;
	for (size_t i = 0; i < stack->nr_frames; i++)
		stack->code_of[i] = code_at(stack, stack->frames[i].code_address);
}

int stack_read(struct stack *stack, uint32_t tid, struct stack_memo *memo)
{
	struct load_pages *pages = stack->reader.pages;
	uint64_t holder;

	load_pages_clear(pages);
	stack->nr_frames = stack->nr_codes = stack->used = 0;
	stack->end = CPYTHON_END_ROOT;
	if (!stack->cpython.layout)
		return 0;
	load_pages_fetch(pages, stack->reader.pid, memo->pages, memo->nr_pages);
	if (!load_u64(stack->reader,
		      stack->cpython.runtime + stack->cpython.layout->runtime_current_state,
		      &holder))
		return -EFAULT;
	stack->lock_is_held = holder != 0;
	if (!memo->state || !is_of_thread(stack, memo->state, tid))
		memo->state = find_state(stack, tid);
	if (memo->state)
		read_frames(stack, memo->state);
	memo->nr_pages = pages->nr_loaded;
	memcpy(memo->pages, pages->loaded, pages->nr_loaded * sizeof(pages->loaded[0]));
	return 0;
}

bool stack_lock_is_held(const struct stack *stack)
{
	return stack->lock_is_held;
}

static uint64_t text_bytes(const struct cpython_text *text)
{
	return (uint64_t)text->length * text->width;
}

static uint8_t *put_text(uint8_t *to, uint64_t address, uint64_t bytes)
{
	return mempcpy(to, (const void *)(uintptr_t)address, bytes);
}

/* The record of a code that the table has not. Returns its id; 0: no room. */
static uint32_t make_code(const struct stack *stack, struct memory *memory,
			  const struct stack_code *from)
{
	struct cpython_code code;
	struct code *record;
	uint64_t text_at;
	uint8_t *text;
	uint32_t id;

	if (!cpython_read_code(&stack->cpython, from->copy, &code))
		return 0;
	id = table_reserve_code(
		memory, text_bytes(&code.name) + text_bytes(&code.file) + code.line_table_length,
		&text, &text_at);
	if (!id)
		return 0;
	text = put_text(text, code.name.address, text_bytes(&code.name));
	text = put_text(text, code.file.address, text_bytes(&code.file));
	put_text(text, code.line_table, code.line_table_length);
	record = &memory->codes[id];
	record->first_line = code.first_line;
	record->name_at = text_at;
	record->name_length = code.name.length;
	record->name_width = (uint8_t)code.name.width;
	record->file_at = record->name_at + text_bytes(&code.name);
	record->file_length = code.file.length;
	record->file_width = (uint8_t)code.file.width;
	record->line_table_at = record->file_at + text_bytes(&code.file);
	record->line_table_length = code.line_table_length;
	record->line_table_kind = code.line_table_kind;
	return table_commit_code(memory, id, from->identity);
}

static bool name_codes(struct stack *stack, struct memory *memory)
{
	for (size_t i = 0; i < stack->nr_codes; i++) {
		struct stack_code *code = &stack->codes[i];

		code->id = code->identity ? table_find_code(memory, code->identity) : 0;
		if (code->identity && !code->id)
			code->id = make_code(stack, memory, code);
		if (code->identity && !code->id)
			return false;
	}
	return true;
}

/* As agent/capture/python_stack.c has it: a marker takes the place of what cannot be shown. */
static uint32_t push(struct memory *memory, uint32_t parent, const struct cpython_frame *frame,
		     uint32_t code)
{
	if (!code)
		return table_node(memory, parent, 0, node_where(NODE_UNREADABLE, 0, 0));
	return table_node(
		memory, parent, code,
		node_where(NODE_PYTHON, frame->entry ? NODE_FLAG_ENTRY : 0, frame->position));
}

int stack_intern(struct stack *stack, struct memory *memory, uint32_t *ret_node)
{
	uint32_t node = 0;

	if (!name_codes(stack, memory))
		return -ENOSPC;
	if (stack->end != CPYTHON_END_ROOT) {
		node = table_node(memory, 0, 0,
				  node_where(stack->end == CPYTHON_END_TRUNCATED ? NODE_TRUNCATED
										 : NODE_UNREADABLE,
					     0, 0));
		if (!node)
			return -ENOSPC;
	}
	for (size_t i = stack->nr_frames; i-- > 0;) {
		node = push(memory, node, &stack->frames[i], stack->codes[stack->code_of[i]].id);
		if (!node)
			return -ENOSPC;
	}
	*ret_node = node;
	return 0;
}
