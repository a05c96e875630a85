/* SPDX-License-Identifier: MIT */
/*
 * CPython 3.12, debug builds included: printed by print_layout.c. In a header so
 * that the hot paths fold its numbers.
 */
#ifndef PATHPROF_CORE_CPYTHON_LAYOUT_312_H
#define PATHPROF_CORE_CPYTHON_LAYOUT_312_H

#include "core/cpython/layout.h"
#include "core/event/event.h"

static const struct cpython_layout cpython_layout_312 = {
	.line_table_kind = LINE_TABLE_CPYTHON_311,
	.version = 0x30c,
	.runtime_first_interpreter = 0x28,
	.runtime_main_interpreter = 0x30,
	.runtime_key_initialized = 0x608,
	.runtime_key = 0x60c,
	.interpreter_next = 0x0,
	.interpreter_first_state = 0x48,
	.interpreter_runtime = 0x60,
	.interpreter_lock = 0x410,
	.interpreter_lock_bytes = 0xd0,
	.state_next = 0x8,
	.state_native_id = 0x90,
	.state_cframe = 0x38,
	.state_root_cframe = 0x110,
	.cframe_frame = 0x0,
	.cframe_previous = 0x8,
	.state_interpreter = 0x10,
	.state_status = 0x18,
	.state_chunk = 0xe8,
	.state_top = 0xf0,
	.chunk_previous = 0x0,
	.chunk_data = 0x18,
	.frame_code = 0x0,
	.frame_instruction = 0x38,
	.frame_previous = 0x8,
	.frame_owner = 0x46,
	.frame_stack_top = 0x40,
	.frame_return = 0x44,
	.frame_owner_none = 0x3,
	.object_type = 0x8,
	.object_size = 0x10,
	.code_first_line = 0x44,
	.code_file = 0x70,
	.code_qualified_name = 0x80,
	.code_line_table = 0x88,
	.code_instructions = 0xc0,
	.code_frame_size = 0x4c,
	.code_first_traceable = 0xb0,
	.bytes_data = 0x20,
	.string_length = 0x10,
	.string_state = 0x20,
	.string_ascii_data = 0x28,
	.string_compact_data = 0x38,
	.string_kind_shift = 0x2,
	.string_kind_mask = 0x7,
	.string_compact_bit = 0x20,
	.string_ascii_bit = 0x40,
	.type_basic_size = 0x20,
	.type_item_size = 0x28,
	.code_basic_size = 0xc0,
	.string_basic_size = 0x40,
	.bytes_basic_size = 0x21,
};

#endif
