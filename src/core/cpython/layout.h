/* SPDX-License-Identifier: MIT */
/*
 * Where the fields of one CPython version stand. Private to this room.
 *
 * A table holds numbers only, in bytes from the start of the structure that the first word names; 0
 * where the version has no such field. print_layout.c prints a table from an interpreter's headers;
 * README.md says how to add one.
 */
#ifndef PATHPROF_CORE_CPYTHON_LAYOUT_H
#define PATHPROF_CORE_CPYTHON_LAYOUT_H

#include <stdint.h>

struct cpython_layout {
	uint16_t version; /* upper half of Py_Version: major and minor */
	uint8_t line_table_kind;
	uint8_t free_threaded;

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
	uint16_t interpreter_lock; /* its own, where it has one; from 3.13 on it says where */
	uint16_t interpreter_lock_bytes;

	/* struct _ts, struct _PyCFrame and struct _stack_chunk */
	uint16_t state_next;
	uint16_t state_interpreter;
	uint16_t state_native_id;
	uint16_t state_status;	 /* bits: STATE_STATUS_ACTIVE */
	uint16_t state_attached; /* a number: STATE_ATTACHED */
	uint16_t state_frame;	 /* the newest */
	uint16_t state_cframe;
	uint16_t state_root_cframe;
	uint16_t state_chunk;
	uint16_t state_top;	 /* where the memory of the newest frame ends */
	uint16_t state_executor; /* not NULL: code of the JIT's runs */
	uint16_t cframe_frame;
	uint16_t cframe_previous;
	uint16_t chunk_previous;
	uint16_t chunk_data;

	/* struct _PyInterpreterFrame */
	uint16_t frame_code;
	uint16_t frame_code_tags; /* bits of the reference that are no address */
	uint16_t frame_previous;
	uint16_t frame_instruction;
	uint16_t frame_is_entry;
	uint16_t frame_owner;
	uint16_t frame_owner_none; /* owners from this one on: no frame of Python code */
	uint16_t frame_stack_top;  /* negative while the frame runs */
	uint16_t frame_return;	   /* how far behind the call it goes on; 0 after calls */
	uint16_t frame_code_copy;  /* which copy of the instructions */
	uint16_t frame_locals;	   /* what is behind it is code_locals and code_values words long */

	/* objects */
	uint16_t object_type;
	uint16_t object_size; /* ob_size of the variable-sized */
	uint16_t code_first_line;
	uint16_t code_frame_size;      /* of its frames, in words */
	uint16_t code_locals;	       /* of its frames, in words */
	uint16_t code_values;	       /* room for values, in words */
	uint16_t code_first_traceable; /* code unit before which the interpreter hides a frame */
	uint16_t code_file;
	uint16_t code_qualified_name;
	uint16_t code_line_table;
	uint16_t code_instructions;
	uint16_t code_copies; /* a list of copies, one a thread */
	uint16_t copies_number;
	uint16_t copies_first;
	uint16_t bytes_data;
	uint16_t string_length;
	uint16_t string_state;
	uint16_t string_ascii_data;   /* compact and ASCII */
	uint16_t string_compact_data; /* compact, other characters */

	/* bits of string_state */
	uint8_t string_kind_shift;
	uint8_t string_kind_mask;
	uint16_t string_compact_bit;
	uint16_t string_ascii_bit;

	/* struct _typeobject: what cpython_find() checks */
	uint16_t type_basic_size;
	uint16_t type_item_size;
	uint16_t code_basic_size;
	uint16_t string_basic_size;
	uint16_t bytes_basic_size;

	/* struct _Py_DebugOffsets, at _PyRuntime: where the field of that name stands as a word */
	uint16_t debug_runtime_first_interpreter;
	uint16_t debug_interpreter_next;
	uint16_t debug_interpreter_first_state;
	uint16_t debug_interpreter_lock;
	uint16_t debug_state_next;
	uint16_t debug_state_interpreter;
	uint16_t debug_state_frame;
	uint16_t debug_state_native_id;
	uint16_t debug_state_chunk;
	uint16_t debug_state_status;
	uint16_t debug_frame_previous;
	uint16_t debug_frame_code;
	uint16_t debug_frame_instruction;
	uint16_t debug_frame_owner;
	uint16_t debug_frame_code_copy;
	uint16_t debug_code_file;
	uint16_t debug_code_qualified_name;
	uint16_t debug_code_line_table;
	uint16_t debug_code_first_line;
	uint16_t debug_code_instructions;
	uint16_t debug_code_copies;
	uint16_t debug_object_type;
	uint16_t debug_object_size;
	uint16_t debug_bytes_data;
	uint16_t debug_string_state;
	uint16_t debug_string_length;
	uint16_t debug_string_ascii_data;
};

#define STATE_STATUS_ACTIVE 0x10 /* 3.12 on: the state is its thread's current one */
#define STATE_ATTACHED	    1	 /* 3.13 on */

#endif
