/* SPDX-License-Identifier: MIT */
/*
 * Finding the interpreter by its dynamic symbols: at the start in the executable and what was
 * loaded with it, later in each object that the loader has added (an embedding program may load
 * libpython, and for itself alone). At the start the interpreter is not yet initialized, so the
 * checks are of what stands in its data from the start: the version, the sizes of the types that
 * the walk reads, and from 3.13 on the offsets that the interpreter itself states. A build with
 * other structures (Py_TRACE_REFS) has other sizes.
 *
 * An interpreter that is linked into the program statically may have no dynamic symbols: then the
 * program's file is looked into (hidden.h).
 */
#include "core/cpython/cpython.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "core/cpython/hidden.h"
#include "core/cpython/layouts.h"
#include "core/cpython/loaded.h"
#include "core/cpython/thread_local.h"
#include "core/cpython/walk_room.h"

#define FIRST_FINAL_RELEASE	    0xf0       /* Py_Version of X.Y.0 final, lower half */
#define MICRO_RELEASE		    0xff00     /* the bits of it */
#define DEBUG_OFFSETS_SINCE	    0x030d0000 /* 3.13 */
#define DEBUG_OFFSETS_COOKIE	    "xdebugpy" /* its first 8 bytes, at _PyRuntime; version; then: */
#define DEBUG_OFFSETS_FREE_THREADED 16	       /* a word, 0 or 1 */

static const struct reader here = {.kind = READER_DIRECT};

#define OBJECTS_A_LOOK 16 /* of the loader's list, each some 100 loads: 20 us at most */

/* Where symbols are looked up. */
struct place {
	uint64_t object;	     /* of the loader; 0: all that were loaded globally, or: */
	const struct hidden *hidden; /* the program's file; neither is signal-safe */
};

static uint64_t symbol(const struct place *place, const char *name)
{
	uint64_t bytes;

	if (place->hidden)
		return hidden_symbol(place->hidden, name, &bytes);
	return place->object ? loaded_symbol(here, place->object, name)
			     : (uintptr_t)dlsym(RTLD_DEFAULT, name);
}

/* Does this interpreter say where its fields are? And is it free-threaded? */
static bool states_offsets(const struct cpython *found, bool *ret_free_threaded)
{
	uint64_t cookie, version, free_threaded;

	*ret_free_threaded = false;
	if (found->version < DEBUG_OFFSETS_SINCE)
		return true;
	if (!load_u64(here, found->runtime, &cookie) ||
	    !load_u64(here, found->runtime + 8, &version) ||
	    !load_u64(here, found->runtime + DEBUG_OFFSETS_FREE_THREADED, &free_threaded))
		return false;
	*ret_free_threaded = free_threaded;
	return !memcmp(&cookie, DEBUG_OFFSETS_COOKIE, sizeof(cookie)) && version == found->version;
}

/* Returns CPYTHON_LAYOUT_NONE for a version that nobody taught. */
static uint32_t layout_of(uint32_t version, bool free_threaded)
{
	if ((version & 0xffff) < FIRST_FINAL_RELEASE)
		return CPYTHON_LAYOUT_NONE;
	for (uint32_t i = CPYTHON_LAYOUT_NONE + 1; i < NR_CPYTHON_LAYOUTS; i++)
		if (cpython_layout_at(i)->version == version >> 16 &&
		    cpython_layout_at(i)->free_threaded == free_threaded)
			return i;
	return CPYTHON_LAYOUT_NONE;
}

/* Are the instances of the type at @type as long as the table thinks? */
static bool sizes_are(const struct cpython_layout *layout, uint64_t type, uint64_t basic,
		      uint64_t item)
{
	uint64_t basic_size, item_size;

	return type && load_u64(here, type + layout->type_basic_size, &basic_size) &&
	       load_u64(here, type + layout->type_item_size, &item_size) && basic_size == basic &&
	       item_size == item;
}

/* Once there is a main interpreter, it points back to the runtime. */
static bool runtime_is(const struct cpython_layout *layout, uint64_t runtime)
{
	uint64_t main_interpreter, back;

	if (!load_u64(here, runtime + layout->runtime_main_interpreter, &main_interpreter))
		return false;
	if (!main_interpreter)
		return true;
	return load_u64(here, main_interpreter + layout->interpreter_runtime, &back) &&
	       back == runtime;
}

#define OFFSET(field)                                           \
	{                                                       \
		offsetof(struct cpython_layout, debug_##field), \
			offsetof(struct cpython_layout, field)  \
	}

/* Is what the interpreter says about itself what the table says? */
static bool offsets_are(const struct cpython_layout *layout, uint64_t runtime)
{
	static const struct {
		size_t stated, field;
	} offsets[] = {
		OFFSET(runtime_first_interpreter),
		OFFSET(interpreter_next),
		OFFSET(interpreter_first_state),
		OFFSET(state_next),
		OFFSET(state_interpreter),
		OFFSET(state_frame),
		OFFSET(state_native_id),
		OFFSET(state_chunk),
		OFFSET(state_status),
		OFFSET(frame_previous),
		OFFSET(frame_code),
		OFFSET(frame_instruction),
		OFFSET(frame_owner),
		OFFSET(frame_code_copy),
		OFFSET(code_file),
		OFFSET(code_qualified_name),
		OFFSET(code_line_table),
		OFFSET(code_first_line),
		OFFSET(code_instructions),
		OFFSET(code_copies),
		OFFSET(object_type),
		OFFSET(object_size),
		OFFSET(bytes_data),
		OFFSET(string_state),
		OFFSET(string_length),
		OFFSET(string_ascii_data),
	};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		uint16_t at, expected;
		uint64_t stated;

		memcpy(&at, (const char *)layout + offsets[i].stated, sizeof(at));
		memcpy(&expected, (const char *)layout + offsets[i].field, sizeof(expected));
		if (at && (!load_u64(here, runtime + at, &stated) || stated != expected))
			return false;
	}
	return true;
}

static bool structures_are(const struct cpython *found, const struct cpython_layout *layout)
{
	return sizes_are(layout, found->code_type, layout->code_basic_size, CODE_UNIT_BYTES) &&
	       sizes_are(layout, found->string_type, layout->string_basic_size, 0) &&
	       sizes_are(layout, found->bytes_type, layout->bytes_basic_size, 1) &&
	       runtime_is(layout, found->runtime) && offsets_are(layout, found->runtime);
}

/* Of a program that is stripped: its types are known by their names and sizes. */
static void find_types(struct cpython *found, const struct hidden *hidden,
		       const struct cpython_layout *layout)
{
	const uint16_t at = layout->type_basic_size;

	found->code_type =
		hidden_type_find(hidden, &(struct hidden_type){"code", layout->code_basic_size,
							       CODE_UNIT_BYTES, at});
	found->string_type = hidden_type_find(
		hidden, &(struct hidden_type){"str", layout->string_basic_size, 0, at});
	found->bytes_type = hidden_type_find(
		hidden, &(struct hidden_type){"bytes", layout->bytes_basic_size, 1, at});
}

static int check(struct cpython *found, const struct place *place, struct errbuf *err)
{
	unsigned int major = found->version >> 24, minor = found->version >> 16 & 0xff;
	unsigned int micro = found->version >> 8 & 0xff;
	bool free_threaded, states = states_offsets(found, &free_threaded);
	uint32_t layout = layout_of(found->version, free_threaded);

	if (!layout)
		return errbuf_set(err, -ENOTSUP,
				  "The frames of CPython %u.%u.%u%s cannot be read: only final "
				  "releases of 3.11 to 3.15 can",
				  major, minor, micro, free_threaded ? " (free-threaded)" : "");
	if (place->hidden && !found->code_type)
		find_types(found, place->hidden, cpython_layout_at(layout));
	if (!states || !structures_are(found, cpython_layout_at(layout)))
		return errbuf_set(err, -ENOTSUP,
				  "The frames of this CPython %u.%u.%u cannot be read: its "
				  "structures are not those of the builds that are known",
				  major, minor, micro);
	found->layout = layout;
	return 0;
}

/* What is not found here is searched at every tick (thread_state.c). */
static void find_variables(struct cpython *found, const struct place *place)
{
	uint64_t current = symbol(place, "PyThreadState_GetUnchecked"); /* new in 3.13 */
	uint64_t last = symbol(place, "PyGILState_GetThisThreadState");

	if (!current)
		current = symbol(place, "_PyThreadState_UncheckedGet");
	if (current)
		thread_local_decode(here, current, &found->current_state);
	if (last && !cpython_layout_at(found->layout)->runtime_key)
		thread_local_decode(here, last, &found->last_state);
}

/* The version as the interpreter's own state has it from 3.13 on. */
static bool stated_version(uint64_t runtime, uint32_t *ret_version)
{
	uint64_t cookie;

	return load_u64(here, runtime, &cookie) &&
	       !memcmp(&cookie, DEBUG_OFFSETS_COOKIE, sizeof(cookie)) &&
	       load_u32(here, runtime + sizeof(cookie), ret_version);
}

/* Before 3.13, of a program that is stripped: the constant Py_Version. That it is, and no number
 * that looks so, is known when the types have the version's sizes. */
static bool constant_version(const struct hidden *hidden, uint32_t *ret_version)
{
	unsigned int found = 0;
	uint64_t word;

	for (uint32_t i = CPYTHON_LAYOUT_NONE + 1; i < NR_CPYTHON_LAYOUTS; i++) {
		uint64_t version = cpython_layout_at(i)->version;

		if (version >= DEBUG_OFFSETS_SINCE >> 16 ||
		    !hidden_constant(hidden, version << 16 | FIRST_FINAL_RELEASE, MICRO_RELEASE,
				     &word))
			continue;
		*ret_version = (uint32_t)word;
		found++;
	}
	return found == 1;
}

static bool find_version(const struct place *place, struct cpython *found)
{
	uint64_t version = symbol(place, "Py_Version"); /* new in 3.11; unsigned long */

	if (version)
		return load_u32(here, version, &found->version);
	return place->hidden && (stated_version(found->runtime, &found->version) ||
				 constant_version(place->hidden, &found->version));
}

static int too_old(struct errbuf *err)
{
	return errbuf_set(err, -ENOTSUP,
			  "The frames of this CPython cannot be read: it is older than 3.11");
}

static int find_in(const struct place *place, struct cpython *ret_cpython, struct errbuf *err)
{
	int rc;

	memset(ret_cpython, 0, sizeof(*ret_cpython));
	ret_cpython->runtime = symbol(place, "_PyRuntime");
	if (!ret_cpython->runtime && place->hidden)
		ret_cpython->runtime = place->hidden->runtime;
	if (!ret_cpython->runtime && !symbol(place, "Py_IsInitialized"))
		return errbuf_set(err, -ENOENT, "There is no CPython in this process");
	if (!ret_cpython->runtime || !find_version(place, ret_cpython))
		return too_old(err);
	ret_cpython->code_type = symbol(place, "PyCode_Type");
	ret_cpython->string_type = symbol(place, "PyUnicode_Type");
	ret_cpython->bytes_type = symbol(place, "PyBytes_Type");
	rc = check(ret_cpython, place, err);
	if (!rc && !cpython_layout_at(ret_cpython->layout)->runtime_current_state)
		find_variables(ret_cpython, place);
	return rc;
}

static int find_hidden(struct cpython *ret_cpython, struct errbuf *err)
{
	struct hidden hidden;
	int rc;

	if (!hidden_open(&hidden))
		return errbuf_set(err, -ENOENT, "There is no CPython in this process");
	rc = find_in(&(struct place){.hidden = &hidden}, ret_cpython, err);
	if (rc == -ENOTSUP && !hidden.symbols)
		rc = errbuf_set(
			err, -ENOTSUP,
			"The CPython that is linked into this program is stripped, and not a known "
			"one: link it with -rdynamic");
	hidden_close(&hidden);
	return rc;
}

int cpython_find(struct cpython *ret_cpython, struct errbuf *err)
{
	int exported = find_in(&(struct place){0}, ret_cpython, err), hidden;

	if (!exported || ret_cpython->runtime)
		return exported;
	hidden = find_hidden(ret_cpython, err);
	return hidden == -ENOENT && exported == -ENOTSUP ? too_old(err) : hidden;
}

void cpython_late_begin(struct cpython_late *late)
{
	*late = (struct cpython_late){.r_debug = (uintptr_t)dlsym(RTLD_DEFAULT, "_r_debug")};
}

/* Has the interpreter begun? Its library is then loaded in whole: relocated. */
static bool has_begun(const struct cpython *found)
{
	uint64_t main_interpreter;

	return load_u64(here,
			found->runtime + cpython_layout_at(found->layout)->runtime_main_interpreter,
			&main_interpreter) &&
	       main_interpreter;
}

/* Other threads read @cpython meanwhile: its layout last. */
static void publish(struct cpython *cpython, const struct cpython *found)
{
	struct cpython hidden = *found;

	hidden.layout = CPYTHON_LAYOUT_NONE;
	*cpython = hidden;
	__atomic_store_n(&cpython->layout, found->layout, __ATOMIC_RELEASE);
}

static enum cpython_late_found look_in(struct cpython_late *late, uint64_t object,
				       struct cpython *cpython)
{
	struct cpython found;
	int rc = find_in(&(struct place){.object = object}, &found, NULL);

	if (rc == -ENOENT)
		return CPYTHON_LATE_NONE;
	late->object = object;
	late->version = found.version;
	if (rc)
		return CPYTHON_LATE_UNREADABLE;
	if (!has_begun(&found)) {
		late->waits_for = object;
		return CPYTHON_LATE_NONE;
	}
	late->runtime_bytes = (uint32_t)loaded_symbol_bytes(here, object, "_PyRuntime");
	publish(cpython, &found);
	return CPYTHON_LATE_READABLE;
}

static enum cpython_late_found look(struct cpython_late *late, struct cpython *cpython)
{
	enum cpython_late_found found = CPYTHON_LATE_NONE;
	uint64_t next = late->waits_for;

	late->waits_for = 0;
	if (next)
		return look_in(late, next, cpython);
	for (unsigned int i = 0; i < OBJECTS_A_LOOK && !found && !late->waits_for; i++) {
		if (!late->seen || !loaded_next(here, late->r_debug, late->seen, &next))
			next = loaded_first(here, late->r_debug);
		if (!next)
			break;
		found = look_in(late, next, cpython);
		late->seen = next;
	}
	return found;
}

enum cpython_late_found cpython_late_look(struct cpython_late *late, struct cpython *cpython)
{
	enum cpython_late_found found;

	if (!late->r_debug || __atomic_exchange_n(&late->busy, 1, __ATOMIC_ACQUIRE))
		return CPYTHON_LATE_NONE;
	found = look(late, cpython);
	if (!found) /* else nobody looks again */
		__atomic_store_n(&late->busy, 0, __ATOMIC_RELEASE);
	return found;
}

void cpython_late_path(const struct cpython_late *late, char *to, size_t room)
{
	loaded_path(here, late->object, to, room);
}
