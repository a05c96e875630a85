/* SPDX-License-Identifier: MIT */
/*
 * Prints the fields of a struct cpython_layout from an interpreter's headers, one a line, as they
 * stand in layout_3*.h:
 *
 *   cc $(python3.12-config --includes) print_layout.c -o print_layout && ./print_layout
 *
 * What a version does not have is not printed, and 0 in its table. No part of the build:
 * tests/run/test_cpython_layout.py compiles it against the headers of every interpreter of a known
 * version and compares. The versions' differences are spelled out here, so that no other file has
 * to.
 */
#define Py_BUILD_CORE 1

#include <Python.h>

#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#include <internal/pycore_stackref.h>
#endif

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SINCE(minor) (PY_VERSION_HEX >= 0x03000000 + ((minor) << 16))

#define PRINT(field, offset) printf("\t." #field " = 0x%zx,\n", (size_t)(offset))

static void print_runtime(void)
{
	PRINT(runtime_first_interpreter, offsetof(_PyRuntimeState, interpreters.head));
	PRINT(runtime_main_interpreter, offsetof(_PyRuntimeState, interpreters.main));
#if !SINCE(12)
	PRINT(runtime_current_state, offsetof(_PyRuntimeState, gilstate.tstate_current));
	PRINT(runtime_key_initialized,
	      offsetof(_PyRuntimeState, gilstate.autoTSSkey._is_initialized));
	PRINT(runtime_key, offsetof(_PyRuntimeState, gilstate.autoTSSkey._key));
#elif !SINCE(15)
	PRINT(runtime_key_initialized, offsetof(_PyRuntimeState, autoTSSkey._is_initialized));
	PRINT(runtime_key, offsetof(_PyRuntimeState, autoTSSkey._key));
#endif
	PRINT(interpreter_next, offsetof(PyInterpreterState, next));
	PRINT(interpreter_first_state, offsetof(PyInterpreterState, threads.head));
	PRINT(interpreter_runtime, offsetof(PyInterpreterState, runtime));
#if SINCE(12) && !SINCE(13)
	PRINT(interpreter_lock, offsetof(PyInterpreterState, _gil));
#endif
#if SINCE(12)
	PRINT(interpreter_lock_bytes, sizeof(struct _gil_runtime_state));
#endif
}

static void print_state(void)
{
	PRINT(state_next, offsetof(PyThreadState, next));
	PRINT(state_native_id, offsetof(PyThreadState, native_thread_id));
#if !SINCE(13)
	PRINT(state_cframe, offsetof(PyThreadState, cframe));
	PRINT(state_root_cframe, offsetof(PyThreadState, root_cframe));
	PRINT(cframe_frame, offsetof(_PyCFrame, current_frame));
	PRINT(cframe_previous, offsetof(_PyCFrame, previous));
#else
	PRINT(state_frame, offsetof(PyThreadState, current_frame));
	PRINT(state_attached, offsetof(PyThreadState, state));
#endif
#if SINCE(12)
	PRINT(state_interpreter, offsetof(PyThreadState, interp));
	PRINT(state_status, offsetof(PyThreadState, _status));
#endif
	PRINT(state_chunk, offsetof(PyThreadState, datastack_chunk));
#if SINCE(12)
	PRINT(state_top, offsetof(PyThreadState, datastack_top));
#endif
#if SINCE(14)
	PRINT(state_executor, offsetof(PyThreadState, current_executor));
#endif
	PRINT(chunk_previous, offsetof(_PyStackChunk, previous));
	PRINT(chunk_data, offsetof(_PyStackChunk, data));
}

static void print_frame(void)
{
#if !SINCE(13)
	PRINT(frame_code, offsetof(_PyInterpreterFrame, f_code));
	PRINT(frame_instruction, offsetof(_PyInterpreterFrame, prev_instr));
#else
	PRINT(frame_code, offsetof(_PyInterpreterFrame, f_executable));
	PRINT(frame_instruction, offsetof(_PyInterpreterFrame, instr_ptr));
#endif
	PRINT(frame_previous, offsetof(_PyInterpreterFrame, previous));
#if !SINCE(12)
	PRINT(frame_is_entry, offsetof(_PyInterpreterFrame, is_entry));
	PRINT(frame_locals, offsetof(_PyInterpreterFrame, localsplus));
#endif
	PRINT(frame_owner, offsetof(_PyInterpreterFrame, owner));
#if SINCE(12) && !SINCE(13)
	PRINT(frame_stack_top, offsetof(_PyInterpreterFrame, stacktop));
	PRINT(frame_return, offsetof(_PyInterpreterFrame, return_offset));
#endif
#if SINCE(12) && !SINCE(14)
	PRINT(frame_owner_none, FRAME_OWNED_BY_CSTACK);
#elif SINCE(14)
	PRINT(frame_owner_none, FRAME_OWNED_BY_INTERPRETER);
	PRINT(frame_code_tags, Py_TAG_BITS);
#endif
#if SINCE(14) && defined(Py_GIL_DISABLED)
	PRINT(frame_code_copy, offsetof(_PyInterpreterFrame, tlbc_index));
	PRINT(code_copies, offsetof(PyCodeObject, co_tlbc));
	PRINT(copies_number, offsetof(_PyCodeArray, size));
	PRINT(copies_first, offsetof(_PyCodeArray, entries));
#endif
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
#if !SINCE(12)
	PRINT(code_locals, offsetof(PyCodeObject, co_nlocalsplus));
	PRINT(code_values, offsetof(PyCodeObject, co_stacksize));
#else
	PRINT(code_frame_size, offsetof(PyCodeObject, co_framesize));
	PRINT(code_first_traceable, offsetof(PyCodeObject, _co_firsttraceable));
#endif
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

/* Where the interpreter itself says the same: checked when it is found. */
static void print_debug_offsets(void)
{
#if SINCE(13)
#define PRINT_DEBUG(field, path) PRINT(debug_##field, offsetof(_Py_DebugOffsets, path))
	PRINT_DEBUG(runtime_first_interpreter, runtime_state.interpreters_head);
	PRINT_DEBUG(interpreter_next, interpreter_state.next);
	PRINT_DEBUG(interpreter_first_state, interpreter_state.threads_head);
	PRINT_DEBUG(interpreter_lock, interpreter_state.gil_runtime_state);
	PRINT_DEBUG(state_next, thread_state.next);
	PRINT_DEBUG(state_interpreter, thread_state.interp);
	PRINT_DEBUG(state_frame, thread_state.current_frame);
	PRINT_DEBUG(state_native_id, thread_state.native_thread_id);
	PRINT_DEBUG(state_chunk, thread_state.datastack_chunk);
	PRINT_DEBUG(state_status, thread_state.status);
	PRINT_DEBUG(frame_previous, interpreter_frame.previous);
	PRINT_DEBUG(frame_code, interpreter_frame.executable);
	PRINT_DEBUG(frame_instruction, interpreter_frame.instr_ptr);
	PRINT_DEBUG(frame_owner, interpreter_frame.owner);
	PRINT_DEBUG(code_file, code_object.filename);
	PRINT_DEBUG(code_qualified_name, code_object.qualname);
	PRINT_DEBUG(code_line_table, code_object.linetable);
	PRINT_DEBUG(code_first_line, code_object.firstlineno);
	PRINT_DEBUG(code_instructions, code_object.co_code_adaptive);
	PRINT_DEBUG(object_type, pyobject.ob_type);
	PRINT_DEBUG(object_size, bytes_object.ob_size);
	PRINT_DEBUG(bytes_data, bytes_object.ob_sval);
	PRINT_DEBUG(string_state, unicode_object.state);
	PRINT_DEBUG(string_length, unicode_object.length);
	PRINT_DEBUG(string_ascii_data, unicode_object.asciiobject_size);
#endif
#if SINCE(14) && defined(Py_GIL_DISABLED)
	PRINT_DEBUG(frame_code_copy, interpreter_frame.tlbc_index);
	PRINT_DEBUG(code_copies, code_object.co_tlbc);
#endif
}

int main(void)
{
	PRINT(version, PY_VERSION_HEX >> 16);
#ifdef Py_GIL_DISABLED
	PRINT(free_threaded, 1);
#endif
	print_runtime();
	print_state();
	print_frame();
	print_objects();
	print_string_state();
	print_types();
	print_debug_offsets();
	return 0;
}
