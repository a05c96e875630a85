/* SPDX-License-Identifier: MIT */
/*
 * Prints the fields of a struct cpython_layout from an interpreter's headers, one a line, as they
 * stand in layout_311.c:
 *
 *   cc $(python3.11-config --includes) print_layout.c -o print_layout && ./print_layout
 *
 * No part of the build: tests/run/test_cpython_layout.py compiles it against the headers of every
 * interpreter of a known version and compares.
 */
#define Py_BUILD_CORE 1

#include <Python.h>

#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PRINT(field, offset) printf("\t." #field " = 0x%zx,\n", (size_t)(offset))

static void print_runtime(void)
{
	PRINT(runtime_first_interpreter, offsetof(_PyRuntimeState, interpreters.head));
	PRINT(runtime_main_interpreter, offsetof(_PyRuntimeState, interpreters.main));
	PRINT(runtime_current_state, offsetof(_PyRuntimeState, gilstate.tstate_current));
	PRINT(runtime_key_initialized,
	      offsetof(_PyRuntimeState, gilstate.autoTSSkey._is_initialized));
	PRINT(runtime_key, offsetof(_PyRuntimeState, gilstate.autoTSSkey._key));
	PRINT(interpreter_next, offsetof(PyInterpreterState, next));
	PRINT(interpreter_first_state, offsetof(PyInterpreterState, threads.head));
	PRINT(interpreter_runtime, offsetof(PyInterpreterState, runtime));
	PRINT(state_next, offsetof(PyThreadState, next));
	PRINT(state_native_id, offsetof(PyThreadState, native_thread_id));
	PRINT(state_cframe, offsetof(PyThreadState, cframe));
	PRINT(state_root_cframe, offsetof(PyThreadState, root_cframe));
	PRINT(cframe_frame, offsetof(_PyCFrame, current_frame));
	PRINT(cframe_previous, offsetof(_PyCFrame, previous));
	PRINT(frame_code, offsetof(_PyInterpreterFrame, f_code));
	PRINT(frame_previous, offsetof(_PyInterpreterFrame, previous));
	PRINT(frame_instruction, offsetof(_PyInterpreterFrame, prev_instr));
	PRINT(frame_is_entry, offsetof(_PyInterpreterFrame, is_entry));
}

static void print_objects(void)
{
	PRINT(object_type, offsetof(PyObject, ob_type));
	PRINT(object_size, offsetof(PyVarObject, ob_size));
	PRINT(code_first_line, offsetof(PyCodeObject, co_firstlineno));
	PRINT(code_file, offsetof(PyCodeObject, co_filename));
	PRINT(code_qualified_name, offsetof(PyCodeObject, co_qualname));
	PRINT(code_line_table, offsetof(PyCodeObject, co_linetable));
	PRINT(code_instructions, offsetof(PyCodeObject, co_code_adaptive));
	PRINT(bytes_data, offsetof(PyBytesObject, ob_sval));
	PRINT(string_length, offsetof(PyASCIIObject, length));
	PRINT(string_state, offsetof(PyASCIIObject, state));
	PRINT(string_ascii_data, sizeof(PyASCIIObject));
	PRINT(string_compact_data, sizeof(PyCompactUnicodeObject));
}

static unsigned int state_bits(const PyASCIIObject *string)
{
	unsigned int bits;

	memcpy(&bits, &string->state, sizeof(bits));
	return bits;
}

static void print_string_state(void)
{
	PyASCIIObject kind = {.state.kind = 7};
	PyASCIIObject compact = {.state.compact = 1};
	PyASCIIObject ascii = {.state.ascii = 1};
	int shift = __builtin_ctz(state_bits(&kind));

	PRINT(string_kind_shift, shift);
	PRINT(string_kind_mask, state_bits(&kind) >> shift);
	PRINT(string_compact_bit, state_bits(&compact));
	PRINT(string_ascii_bit, state_bits(&ascii));
}

static void print_types(void)
{
	PRINT(type_basic_size, offsetof(PyTypeObject, tp_basicsize));
	PRINT(type_item_size, offsetof(PyTypeObject, tp_itemsize));
	PRINT(code_basic_size, offsetof(PyCodeObject, co_code_adaptive));
	PRINT(string_basic_size, sizeof(PyUnicodeObject));
	PRINT(bytes_basic_size, offsetof(PyBytesObject, ob_sval) + 1);
}

int main(void)
{
	PRINT(version, PY_VERSION_HEX >> 16);
	print_runtime();
	print_objects();
	print_string_state();
	print_types();
	return 0;
}
