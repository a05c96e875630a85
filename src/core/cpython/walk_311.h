/* SPDX-License-Identifier: MIT */
/*
 * The frame walk of CPython 3.11 (and 3.12, with its own table), over a memory reader that is a
 * compile-time constant at each place of use.
 *
 *   thread state -> cframe (on the C stack, one per run of the evaluation loop)
 *                     current_frame -> frame -> previous -> ... -> NULL
 *                                        f_code, prev_instr, is_entry
 *
 * Two passes, so that cold cache lines are fetched side by side and not one after the other: the
 * first follows the frames and asks for the lines of their code objects, the second checks the
 * code objects and asks for the lines of their names and line tables.
 *
 * The thread may have been interrupted anywhere, and two things are then half done:
 *
 *   - A new cframe is linked before its current_frame and previous are written (four instructions
 *     in the builds looked at). What they hold is rubbish, or what an evaluation loop left there
 *     that ended before. The first frame marked is_entry tells: its previous is the frame that the
 *     cframe before stands at. Where the leaf is no frame at all, the walk starts at the cframe
 * before.
 *   - A new frame is current before its previous is written, which then is rubbish or that of the
 *     frame that had this memory before. A frame that no loop entered stands where the memory of
 *     the first frame behind it ends that is no generator's, or at the start of a chunk. The
 *     outermost frame is always one that native code entered.
 *
 * A cycle ends at the room's bound.
 */
#ifndef PATHPROF_CORE_CPYTHON_WALK_311_H
#define PATHPROF_CORE_CPYTHON_WALK_311_H

#include "core/cpython/walk_room.h"

/* One frame, not yet checked against its code object. prev_instr of a frame that has not begun
 * stands one unit before the first. */
WALK_INLINE bool walk_311_frame(struct reader reader, const struct cpython_layout *layout,
				uint64_t frame, struct cpython_frame *to)
{
	uint64_t code, instruction;
	uint8_t is_entry;

	if (!load_u64(reader, frame + layout->frame_code, &code) ||
	    !load_u64(reader, frame + layout->frame_instruction, &instruction) ||
	    !load_u8(reader, frame + layout->frame_is_entry, &is_entry) ||
	    !walk_position(instruction + CODE_UNIT_BYTES - (code + layout->code_instructions),
			   &to->position))
		return false;
	to->code_address = code;
	to->entry = is_entry != 0;
	return true;
}

WALK_INLINE enum cpython_end walk_311_chain(struct reader reader,
					    const struct cpython_layout *layout, uint64_t frame,
					    struct walk_room *room)
{
	while (frame) {
		struct cpython_frame found;

		if (room->nr_frames == room->max)
			return CPYTHON_END_TRUNCATED;
		if (!walk_311_frame(reader, layout, frame, &found) ||
		    !load_u64(reader, frame + layout->frame_previous, &frame))
			return CPYTHON_END_UNREADABLE;
		walk_fetch(reader, found.code_address, 3); /* up to the pointer to the line table */
		room->frames[room->nr_frames++] = found;
		if (!found.entry || room->entered)
			continue;
		room->entered = true;
		room->torn = frame != room->before;
		if (room->torn)
			return CPYTHON_END_UNREADABLE;
	}
	if (room->nr_frames && !room->frames[room->nr_frames - 1].entry)
		return CPYTHON_END_UNREADABLE;
	return CPYTHON_END_ROOT;
}

/* What the walk must know of a code object. Asks for what cpython_read_code() will load. */
WALK_INLINE struct walk_code walk_311_code(struct reader reader,
					   const struct cpython_layout *layout,
					   const struct cpython *cpython, uint64_t address)
{
	struct walk_code code = {.address = address};
	uint64_t type, nr_units, name, line_table;

	if (!load_u64(reader, address + layout->object_type, &type) || type != cpython->code_type ||
	    !load_u64(reader, address + layout->object_size, &nr_units) ||
	    !load_u64(reader, address + layout->code_qualified_name, &name))
		return code;
	walk_fetch(reader, name, 2);
	if (!load_u64(reader, address + layout->code_line_table, &line_table))
		return code;
	walk_fetch(reader, line_table, 3);
	walk_fetch_file(reader, address + layout->code_file);
	code.nr_positions = nr_units + 1;
	return code;
}

/* Which frames are what they seem; what is towards the root of another is left out. */
WALK_INLINE enum cpython_end walk_311_checked(struct reader reader,
					      const struct cpython_layout *layout,
					      const struct cpython *cpython, struct walk_room *room,
					      enum cpython_end end)
{
	struct walk_code code = {0};
	size_t nr_good = 0;

	for (; nr_good < room->nr_frames; nr_good++) {
		const struct cpython_frame *frame = &room->frames[nr_good];

		if (frame->code_address != code.address)
			code = walk_311_code(reader, layout, cpython, frame->code_address);
		if (frame->position >= code.nr_positions)
			break;
	}
	if (nr_good < room->nr_frames) {
		room->nr_frames = nr_good;
		room->torn = room->torn && nr_good;
		end = CPYTHON_END_UNREADABLE;
	}
	if (room->torn)
		room->nr_frames = 0;
	return end;
}

/* The frames of an evaluation loop and of those before it. Only the root cframe, which has no
 * frame, has no cframe before it. */
WALK_INLINE enum cpython_end walk_311_from(struct reader reader,
					   const struct cpython_layout *layout,
					   const struct cpython *cpython, uint64_t cframe,
					   struct walk_room *room)
{
	uint64_t frame, before;

	if (!load_u64(reader, cframe + layout->cframe_frame, &frame) ||
	    !load_u64(reader, cframe + layout->cframe_previous, &before))
		return CPYTHON_END_UNREADABLE;
	if (cframe == room->root && !frame)
		return CPYTHON_END_ROOT;
	if (!frame || !load_u64(reader, before + layout->cframe_frame, &room->before))
		return CPYTHON_END_UNREADABLE;
	walk_fetch_below(reader, frame);
	return walk_311_checked(reader, layout, cpython, room,
				walk_311_chain(reader, layout, frame, room));
}

/* Does this frame's memory end there? */
WALK_INLINE bool walk_311_ends_at(struct reader reader, const struct cpython_layout *layout,
				  uint64_t frame, uint64_t code, uint64_t end)
{
	uint32_t nr_locals, nr_values;

	return load_u32(reader, code + layout->code_locals, &nr_locals) &&
	       load_u32(reader, code + layout->code_values, &nr_values) &&
	       frame + layout->frame_locals + ((uint64_t)nr_locals + nr_values) * WORD_BYTES == end;
}

/* Is the leaf, which no loop entered, linked to its caller? */
WALK_INLINE bool walk_311_is_linked(struct reader reader, const struct cpython_layout *layout,
				    uint64_t state, uint64_t cframe, const struct walk_room *room)
{
	uint64_t leaf, frame;
	uint8_t owner;

	if (!load_u64(reader, cframe + layout->cframe_frame, &leaf))
		return false;
	frame = leaf;
	for (size_t i = 1; i < room->nr_frames; i++) {
		if (!load_u64(reader, frame + layout->frame_previous, &frame) ||
		    !load_u8(reader, frame + layout->frame_owner, &owner))
			return false;
		if (owner != OWNER_THREAD)
			continue;
		if (walk_311_ends_at(reader, layout, frame, room->frames[i].code_address, leaf))
			return true;
		break;
	}
	return walk_begins_chunk(reader, layout, state, leaf);
}

WALK_INLINE enum cpython_end walk_311(struct reader reader, const struct cpython_layout *layout,
				      const struct cpython *cpython, uint64_t thread_state,
				      struct walk_room *room)
{
	enum cpython_end end;
	uint64_t cframe;

	room->root = thread_state + layout->state_root_cframe;
	if (!load_u64(reader, thread_state + layout->state_cframe, &cframe))
		return CPYTHON_END_UNREADABLE;
	end = walk_311_from(reader, layout, cpython, cframe, room);
	if (room->nr_frames > 1 && !room->frames[0].entry &&
	    !walk_311_is_linked(reader, layout, thread_state, cframe, room)) {
		room->nr_frames = 0;
		return CPYTHON_END_UNREADABLE;
	}
	if (end != CPYTHON_END_UNREADABLE || room->nr_frames || room->torn)
		return end;
	room->entered = false;
	if (!load_u64(reader, cframe + layout->cframe_previous, &cframe))
		return CPYTHON_END_UNREADABLE;
	return walk_311_from(reader, layout, cpython, cframe, room);
}

#endif
