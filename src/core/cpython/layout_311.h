/* SPDX-License-Identifier: MIT */
/*
 * CPython 3.11, the same from 3.11.0 on, debug builds included: printed by print_layout.c. In a
 * header so that the hot paths fold its numbers.
 */
#ifndef PATHPROF_CORE_CPYTHON_LAYOUT_311_H
#define PATHPROF_CORE_CPYTHON_LAYOUT_311_H

#include "core/cpython/layout.h"
#include "core/event/event.h"

static const struct cpython_layout cpython_layout_311 = {
	.line_table_kind = LINE_TABLE_CPYTHON_311,
	.version = 0x30b,
	.runtime_first_interpreter = 0x28,
	.runtime_main_interpreter = 0x30,
	.runtime_current_state = 0x240,
	.runtime_key_initialized = 0x250,
	.runtime_key = 0x254,
	.interpreter_next = 0x0,
	.interpreter_first_state = 0x10,
	.interpreter_runtime = 0x28,
	.state_next = 0x8,
	.state_native_id = 0xa0,
	.state_cframe = 0x38,
	.state_root_cframe = 0x150,
	.cframe_frame = 0x8,
	.cframe_previous = 0x10,
	.state_chunk = 0x128,
	.chunk_previous = 0x0,
	.chunk_data = 0x18,
	.frame_code = 0x20,
	.frame_instruction = 0x38,
	.frame_previous = 0x30,
	.frame_is_entry = 0x44,
	.frame_locals = 0x48,
	.frame_owner = 0x45,
	.object_type = 0x8,
	.object_size = 0x10,
	.code_first_line = 0x48,
	.code_file = 0x70,
	.code_qualified_name = 0x80,
	.code_line_table = 0x88,
	.code_instructions = 0xb8,
	.code_locals = 0x4c,
	.code_values = 0x44,
	.bytes_data = 0x20,
	.string_length = 0x10,
	.string_state = 0x20,
	.string_ascii_data = 0x30,
	.string_compact_data = 0x48,
	.string_kind_shift = 0x2,
	.string_kind_mask = 0x7,
	.string_compact_bit = 0x20,
	.string_ascii_bit = 0x40,
	.type_basic_size = 0x20,
	.type_item_size = 0x28,
	.code_basic_size = 0xb8,
	.string_basic_size = 0x50,
	.bytes_basic_size = 0x21,
};

#endif
