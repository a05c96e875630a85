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

#define ROOM_BYTES (8u << 20)

_Static_assert(sizeof(struct cpython) <= MEMORY_CPYTHON_BYTES, "it is handed over there");

struct stack *stack_new(pid_t pid)
{
	struct stack *stack = calloc(1, sizeof(*stack));

	if (!stack)
		return NULL;
	stack->pid = pid;
	stack->room = malloc(ROOM_BYTES); /* what is not touched costs nothing */
	if (stack->room)
		return stack;
	free(stack);
	return NULL;
}

void stack_free(struct stack *stack)
{
	if (!stack)
		return;
	free(stack->room);
	free(stack);
}

void stack_interpreter(struct stack *stack, const struct memory_interpreter *interpreter)
{
	memcpy(&stack->cpython, interpreter->cpython, sizeof(stack->cpython));
}

static uint64_t text_bytes(const struct cpython_text *text)
{
	return (uint64_t)text->length * text->width;
}

static bool carry(struct stack *stack, uint64_t address, uint64_t length)
{
	if (length > ROOM_BYTES - stack->used ||
	    !cpython_remote_copy(&stack->remote, address, stack->room + stack->used, length))
		return false;
	stack->used += length;
	return true;
}

/* Names and line table of a code that the table lacks. */
static bool carry_code(struct stack *stack, struct stack_code *code)
{
	code->text = stack->room + stack->used;
	return cpython_remote_read_code(&stack->remote, &stack->cpython, code->address,
					&code->code) &&
	       carry(stack, code->code.name.address, text_bytes(&code->code.name)) &&
	       carry(stack, code->code.file.address, text_bytes(&code->code.file)) &&
	       carry(stack, code->code.line_table, code->code.line_table_length);
}

/* The index of the code at @address, which is read where this look has not met it. */
static uint32_t code_at(struct stack *stack, struct memory *memory, uint64_t address,
			struct cpython_file_memo *files)
{
	struct stack_code *code;
	size_t i = 0;

	while (i < stack->nr_codes && stack->codes[i].address != address)
		i++;
	if (i < stack->nr_codes)
		return (uint32_t)i;
	code = &stack->codes[stack->nr_codes++];
	*code = (struct stack_code){.address = address};
	code->identity = cpython_remote_identify(&stack->remote, &stack->cpython, address, files);
	if (code->identity)
		code->id = table_find_code(memory, code->identity);
	if (code->identity && !code->id && !carry_code(stack, code))
		code->identity = 0;
	return (uint32_t)i;
}

static bool is_readable(const struct stack *stack)
{
	uint8_t byte;

	return load_remote(stack->pid, stack->cpython.runtime, &byte, sizeof(byte));
}

bool stack_waits_for_lock(struct stack *stack, uint64_t state, uint64_t futex)
{
	return cpython_remote_waits_for_lock(&stack->remote, &stack->cpython, state, futex);
}

int stack_read(struct stack *stack, struct memory *memory, uint32_t tid, uint64_t *state)
{
	struct cpython_file_memo files = {0};
	bool holds_lock;

	stack->walk = (struct cpython_remote_stack){
		.frames = stack->frames, .max = FRAMES_MAX, .end = CPYTHON_END_ROOT};
	stack->nr_codes = stack->used = 0;
	if (!stack->cpython.layout)
		return 0;
	cpython_remote_begin(&stack->remote, stack->pid);
	*state = cpython_remote_thread_state(&stack->remote, &stack->cpython, tid, *state,
					     &holds_lock);
	if (!*state)
		return is_readable(stack) ? 0 : -EFAULT;
	cpython_remote_walk(&stack->remote, &stack->cpython, *state, &stack->walk);
	for (size_t i = 0; i < stack->walk.nr_frames; i++)
		stack->code_of[i] = code_at(stack, memory, stack->frames[i].code_address, &files);
	return 0;
}

/* The record of a code that the table has not. Returns its id; 0: no room. */
static uint32_t make_code(struct memory *memory, const struct stack_code *from)
{
	const struct cpython_code *code = &from->code;
	uint64_t name = text_bytes(&code->name), file = text_bytes(&code->file), text_at;
	struct code *record;
	uint8_t *text;
	uint32_t id =
		table_reserve_code(memory, name + file + code->line_table_length, &text, &text_at);

	if (!id)
		return 0;
	memcpy(text, from->text, name + file + code->line_table_length);
	record = &memory->codes[id];
	record->first_line = code->first_line;
	record->name_at = text_at;
	record->name_length = code->name.length;
	record->name_width = (uint8_t)code->name.width;
	record->file_at = text_at + name;
	record->file_length = code->file.length;
	record->file_width = (uint8_t)code->file.width;
	record->line_table_at = text_at + name + file;
	record->line_table_length = code->line_table_length;
	record->line_table_kind = code->line_table_kind;
	return table_commit_code(memory, id, from->identity);
}

static bool name_codes(struct stack *stack, struct memory *memory)
{
	for (size_t i = 0; i < stack->nr_codes; i++) {
		struct stack_code *code = &stack->codes[i];

		if (code->identity && !code->id)
			code->id = make_code(memory, code);
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
	if (stack->walk.end != CPYTHON_END_ROOT) {
		node = table_node(memory, 0, 0,
				  node_where(stack->walk.end == CPYTHON_END_TRUNCATED
						     ? NODE_TRUNCATED
						     : NODE_UNREADABLE,
					     0, 0));
		if (!node)
			return -ENOSPC;
	}
	for (size_t i = stack->walk.nr_frames; i-- > 0;) {
		node = push(memory, node, &stack->frames[i], stack->codes[stack->code_of[i]].id);
		if (!node)
			return -ENOSPC;
	}
	*ret_node = node;
	return 0;
}
