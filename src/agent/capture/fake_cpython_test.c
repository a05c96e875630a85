/* SPDX-License-Identifier: MIT */
#include "agent/capture/fake_cpython_test.h"

#include <stdio.h>
#include <string.h>

__thread struct fake_cpython fake;

uint64_t cpython_thread_state(const struct cpython *cpython, uint32_t tid, bool *ret_holds_lock)
{
	(void)cpython;
	fake.calls++;
	fake.tid = tid;
	*ret_holds_lock = fake.holds_lock;
	return fake.thread_state;
}

bool cpython_runs_jitted(const struct cpython *cpython, uint64_t thread_state)
{
	(void)cpython;
	(void)thread_state;
	return fake.runs_jitted;
}

void cpython_late_path(const struct cpython_late *late, char *to, size_t room)
{
	(void)late;
	snprintf(to, room, "libfake.so");
}

enum cpython_late_found cpython_late_look(struct cpython_late *late, struct cpython *cpython)
{
	(void)late;
	fake.late_looks++;
	if (fake.late_found == CPYTHON_LATE_READABLE)
		cpython->layout = 1;
	return fake.late_found;
}

size_t cpython_walk(const struct cpython *cpython, uint64_t thread_state,
		    struct cpython_frame *frames, size_t max, enum cpython_end *ret_end)
{
	size_t nr_frames = fake.nr_frames < max ? fake.nr_frames : max;
	void (*during_walk)(void) = fake.during_walk;

	(void)cpython;
	(void)thread_state;
	fake.calls++;
	memcpy(frames, fake.frames, nr_frames * sizeof(*frames));
	*ret_end = fake.nr_frames > max ? CPYTHON_END_TRUNCATED : fake.end;
	fake.during_walk = NULL;
	if (during_walk)
		during_walk();
	return nr_frames;
}

static struct cpython_text text(const char *characters)
{
	return (struct cpython_text){.address = (uint64_t)(uintptr_t)characters,
				     .length = (uint32_t)strlen(characters),
				     .width = 1};
}

static const struct fake_code *fake_code_at(uint64_t code_address)
{
	uint64_t number = (code_address - FAKE_ADDRESS) / 256;

	if (number >= FAKE_CODES || fake.codes[number].identity == 0)
		return NULL;
	return &fake.codes[number];
}

uint64_t cpython_identify(const struct cpython *cpython, uint64_t code_address,
			  struct cpython_file_memo *file_memo)
{
	const struct fake_code *code = fake_code_at(code_address);

	(void)cpython;
	(void)file_memo;
	fake.calls++;
	fake.reads++;
	return code ? code->identity : 0;
}

bool cpython_read_code(const struct cpython *cpython, uint64_t code_address,
		       struct cpython_code *ret_code)
{
	const struct fake_code *code = fake_code_at(code_address);

	(void)cpython;
	fake.calls++;
	if (!code)
		return false;
	*ret_code = (struct cpython_code){
		.first_line = code->first_line,
		.line_table_length = (uint32_t)strlen(code->line_table),
		.line_table = (uint64_t)(uintptr_t)code->line_table,
		.name = text(code->name),
		.file = text(code->file),
		.line_table_kind = LINE_TABLE_CPYTHON_311,
	};
	if (code->uncopyable)
		ret_code->name.address = 0;
	return true;
}

bool cpython_copy(uint64_t address, void *to, size_t length)
{
	fake.calls++;
	if (address == 0)
		return false;
	memcpy(to, (const void *)(uintptr_t)address, length);
	return true;
}
