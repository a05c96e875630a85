/* SPDX-License-Identifier: MIT */
/*
 * Where the fields of one CPython version stand. Private to this room.
 *
 * A table holds numbers only, in bytes from the start of the structure that the first word names.
 * print_layout.c prints a table from an interpreter's headers; README.md says how to add one.
 */
#ifndef PATHPROF_CORE_CPYTHON_LAYOUT_H
#define PATHPROF_CORE_CPYTHON_LAYOUT_H

#include <stdint.h>

struct cpython_layout {
	uint16_t version; /* upper half of Py_Version: major and minor */
	uint8_t line_table_kind;

	/* struct _PyRuntimeState, at _PyRuntime */
	uint16_t runtime_first_interpreter;
	uint16_t runtime_main_interpreter;
	uint16_t runtime_current_state;
	uint16_t runtime_key_initialized; /* the autoTSSkey */
	uint16_t runtime_key;

	/* struct _is */
	uint16_t interpreter_next;
	uint16_t interpreter_first_state;
	uint16_t interpreter_runtime;

	/* struct _ts and struct _PyCFrame */
	uint16_t state_next;
	uint16_t state_native_id;
	uint16_t state_cframe;
	uint16_t state_root_cframe;
	uint16_t cframe_frame;
	uint16_t cframe_previous;

	/* struct _PyInterpreterFrame */
	uint16_t frame_code;
	uint16_t frame_previous;
	uint16_t frame_instruction;
	uint16_t frame_is_entry;

	/* objects */
	uint16_t object_type;
	uint16_t object_size; /* ob_size of the variable-sized */
	uint16_t code_first_line;
	uint16_t code_file;
	uint16_t code_qualified_name;
	uint16_t code_line_table;
	uint16_t code_instructions;
	uint16_t bytes_data;
	uint16_t string_length;
	uint16_t string_state;
	uint16_t string_ascii_data;   /* compact and ASCII */
	uint16_t string_compact_data; /* compact, other characters */

	/* bits of string_state */
	uint8_t string_kind_shift;
	uint8_t string_kind_mask;
	uint8_t string_compact_bit;
	uint8_t string_ascii_bit;

	/* struct _typeobject: what cpython_find() checks */
	uint16_t type_basic_size;
	uint16_t type_item_size;
	uint16_t code_basic_size;
	uint16_t string_basic_size;
	uint16_t bytes_basic_size;
};

#endif
