/* SPDX-License-Identifier: MIT */
/*
 * The frames of CPython 3.12 and later, leaf first.
 *
 *   thread state -> cframe (3.12) -> newest frame -> previous ...
 *   thread state --------- (3.13) -> newest frame -> previous ...
 *   frame        -> code object (or another reference, tagged from 3.14 on), previous,
 *                   prev_instr (3.12) or instr_ptr, owner
 *
 * An evaluation loop puts a frame of its own below the frame that entered it: on the C stack, owned
 * by nobody who runs Python code, with no code object that could be read. It is no frame here: the
 * frame before it, towards the leaf, is the one that native code entered. From 3.15 on another such
 * frame stands below all.
 *
 * prev_instr stands at the instruction that runs, or one unit before the first; instr_ptr stands at
 * the instruction that runs or is about to. In free-threaded builds from 3.14 on it may point into
 * the thread's own copy of the instructions.
 *
 * Code that is never traced, because it ends before its first traceable instruction, is the
 * interpreter's own (it calls __init__): the interpreter hides its frames, so does the walk.
 *
 * Two passes, as in walk_311.h. The thread may have been interrupted anywhere:
 *
 *   - 3.12: a new cframe is linked before its current_frame and previous are written (some 30
 *     instructions in the builds looked at). What they hold is rubbish or an evaluation loop that
 *     ended. The loop's own frame must stand on the frame at which the cframe before stands, and
 *     the frame that entered, if it is the leaf and has begun, must run (the stack top that it
 *     saved is negative) or be the newest in memory. One that returned has saved it, and is not.
 *     One whose callee has returned has saved it too, while the callee's variables are given back,
 *     which takes long: the callee is the newest in memory then (walk_312_ended_call()).
 *   - 3.13 on: a new frame is linked with the store that makes it current, as the last thing.
 *   - A called frame may be current before its previous is written, which then is that of the frame
 *     that had this memory before. It must stand where the memory of the first frame behind it ends
 *     that is no generator's, or at the start of a chunk. 3.12: if it has not begun, the frame
 *     behind it must not be one that resumed a generator: that says where it goes on when the
 *     generator ends, which after a call is nowhere else.
 *   - A generator's frame is current, but its previous is not yet or no longer written: NULL.
 *
 * What fails a check ends the walk as unreadable. The outermost frame is one that native code
 * entered. A cycle ends at a bound.
 */
#ifndef PATHPROF_CORE_CPYTHON_WALK_312_H
#define PATHPROF_CORE_CPYTHON_WALK_312_H

#include "core/cpython/walk_room.h"

/* The leaf, and the first frame behind it, towards the root, that lies in the thread's memory. */
struct walk_312_ends {
	uint64_t leaf, below; /* addresses; 0: none */
	size_t below_number;
	uint8_t leaf_owner;
	bool leaf_entered; /* the leaf is the frame that entered its evaluation loop */
};

/* Where the instructions of the frame's code are. */
WALK_INLINE bool walk_312_instructions(struct reader reader, const struct cpython_layout *layout,
				       uint64_t frame, uint64_t code, uint64_t *ret_address)
{
	uint64_t copies, number;
	uint32_t index = 0;

	*ret_address = code + layout->code_instructions;
	if (!layout->frame_code_copy)
		return true;
	if (!load_u32(reader, frame + layout->frame_code_copy, &index))
		return false;
	if (!index)
		return true;
	return load_u64(reader, code + layout->code_copies, &copies) &&
	       load_u64(reader, copies + layout->copies_number, &number) && index < number &&
	       load_u64(reader, copies + layout->copies_first + (uint64_t)index * WORD_BYTES,
			ret_address);
}

/* One frame, not yet checked against its code object. */
WALK_INLINE bool walk_312_frame(struct reader reader, const struct cpython_layout *layout,
				uint64_t frame, struct cpython_frame *to)
{
	uint64_t code, instruction, first;

	if (!load_u64(reader, frame + layout->frame_code, &code) ||
	    !load_u64(reader, frame + layout->frame_instruction, &instruction))
		return false;
	code &= ~(uint64_t)layout->frame_code_tags;
	if (!walk_312_instructions(reader, layout, frame, code, &first) ||
	    !walk_position(instruction + CODE_UNIT_BYTES - first, &to->position))
		return false;
	to->code_address = code;
	to->entry = 0;
	return true;
}

WALK_INLINE void walk_312_note(struct walk_312_ends *ends, uint64_t frame, uint8_t owner,
			       size_t nr_frames)
{
	if (nr_frames == 0) {
		ends->leaf = frame;
		ends->leaf_owner = owner;
	} else if (!ends->below && owner == OWNER_THREAD) {
		ends->below = frame;
		ends->below_number = nr_frames;
	}
}

/* A frame that is no Python code. The first one met is the newest evaluation loop's. */
WALK_INLINE void walk_312_pass(const struct cpython_layout *layout, struct walk_room *room,
			       struct walk_312_ends *ends, uint64_t previous)
{
	if (room->nr_frames)
		room->frames[room->nr_frames - 1].entry = 1;
	if (room->entered)
		return;
	room->entered = true;
	ends->leaf_entered = room->nr_frames == 1;
	room->torn = layout->state_cframe && previous != room->before;
}

WALK_INLINE enum cpython_end walk_312_chain(struct reader reader,
					    const struct cpython_layout *layout, uint64_t frame,
					    struct walk_room *room, struct walk_312_ends *ends)
{
	for (size_t steps = 0; frame; steps++) {
		struct cpython_frame found;
		uint64_t previous;
		uint8_t owner;

		if (!load_u8(reader, frame + layout->frame_owner, &owner) ||
		    !load_u64(reader, frame + layout->frame_previous, &previous))
			return CPYTHON_END_UNREADABLE;
		if (owner >= layout->frame_owner_none) {
			walk_312_pass(layout, room, ends, previous);
			if (room->torn)
				return CPYTHON_END_UNREADABLE;
			frame = previous;
		} else {
			if (room->nr_frames == room->max)
				return CPYTHON_END_TRUNCATED;
			if (!walk_312_frame(reader, layout, frame, &found))
				return CPYTHON_END_UNREADABLE;
			walk_fetch(reader, found.code_address, 4); /* up to the first instruction */
			walk_312_note(ends, frame, owner, room->nr_frames);
			room->frames[room->nr_frames++] = found;
			frame = previous;
		}
		if (steps > 2 * room->max)
			return CPYTHON_END_TRUNCATED;
	}
	if (room->nr_frames && !room->frames[room->nr_frames - 1].entry)
		return CPYTHON_END_UNREADABLE;
	return CPYTHON_END_ROOT;
}

/* The address behind a frame's memory. */
WALK_INLINE bool walk_312_end(struct reader reader, const struct cpython_layout *layout,
			      uint64_t frame, uint64_t code, uint64_t *ret_end)
{
	uint32_t words;

	if (!load_u32(reader, code + layout->code_frame_size, &words))
		return false;
	*ret_end = frame + (uint64_t)words * WORD_BYTES;
	return true;
}

/* Where the memory of a frame that is owned by its thread ends. */
WALK_INLINE bool walk_312_thread_end(struct reader reader, const struct cpython_layout *layout,
				     uint64_t frame, uint64_t *ret_end)
{
	uint64_t code;
	uint8_t owner;

	return load_u8(reader, frame + layout->frame_owner, &owner) && owner == OWNER_THREAD &&
	       load_u64(reader, frame + layout->frame_code, &code) &&
	       walk_312_end(reader, layout, frame, code, ret_end);
}

/*
 * Does the frame at @called, the newest in memory, give its variables back, and to the leaf, which
 * called it? The leaf must stand right on the frame from which its loop was entered: what ended
 * there before, and is linked once more by rubbish, was overwritten by the frame that enters now.
 */
WALK_INLINE bool walk_312_ended_call(struct reader reader, const struct cpython_layout *layout,
				     const struct walk_room *room, uint64_t leaf, uint64_t called,
				     uint64_t top)
{
	uint64_t previous, end;

	return load_u64(reader, called + layout->frame_previous, &previous) && previous == leaf &&
	       walk_312_thread_end(reader, layout, called, &end) && end == top &&
	       walk_312_thread_end(reader, layout, room->before, &end) && end == leaf;
}

/* Does the leaf, which entered its evaluation loop and has begun, run? */
WALK_INLINE bool walk_312_runs(struct reader reader, const struct cpython_layout *layout,
			       uint64_t state, const struct walk_room *room, uint64_t leaf)
{
	uint32_t stack_top;
	uint64_t top, end;

	if (!load_u32(reader, leaf + layout->frame_stack_top, &stack_top))
		return false;
	if ((int32_t)stack_top < 0)
		return true;
	return load_u64(reader, state + layout->state_top, &top) &&
	       walk_312_end(reader, layout, leaf, room->frames[0].code_address, &end) &&
	       (end == top || walk_312_ended_call(reader, layout, room, leaf, end, top));
}

/* Is the frame behind the leaf one that resumed a generator, and made no call? */
WALK_INLINE bool walk_312_resumed(struct reader reader, const struct cpython_layout *layout,
				  uint64_t leaf)
{
	uint64_t frame;
	uint32_t offset;

	return !load_u64(reader, leaf + layout->frame_previous, &frame) ||
	       !load_u32(reader, frame + layout->frame_return, &offset) || (offset & UINT16_MAX);
}

/* Is the leaf linked to its caller? What code objects say here is not yet checked. */
WALK_INLINE bool walk_312_is_linked(struct reader reader, const struct cpython_layout *layout,
				    uint64_t state, const struct walk_room *room,
				    const struct walk_312_ends *ends)
{
	uint64_t end;

	if (!ends->leaf || ends->leaf_owner != OWNER_THREAD)
		return true;
	if (ends->leaf_entered)
		return !layout->frame_stack_top || !room->frames[0].position ||
		       walk_312_runs(reader, layout, state, room, ends->leaf);
	if (room->nr_frames < 2)
		return true;
	if (layout->frame_return && !room->frames[0].position &&
	    walk_312_resumed(reader, layout, ends->leaf))
		return false;
	if (ends->below &&
	    walk_312_end(reader, layout, ends->below, room->frames[ends->below_number].code_address,
			 &end) &&
	    end == ends->leaf)
		return true;
	return walk_begins_chunk(reader, layout, state, ends->leaf);
}

/* What the walk must know of a code object. Asks for what cpython_read_code() will load. */
WALK_INLINE struct walk_code walk_312_code(struct reader reader,
					   const struct cpython_layout *layout,
					   const struct cpython *cpython, uint64_t address)
{
	struct walk_code code = {.address = address};
	uint64_t type, nr_units, name, line_table;
	uint32_t first_traceable;

	if (!load_u64(reader, address + layout->object_type, &type) || type != cpython->code_type ||
	    !load_u64(reader, address + layout->object_size, &nr_units) ||
	    !load_u64(reader, address + layout->code_qualified_name, &name) ||
	    !load_u64(reader, address + layout->code_line_table, &line_table) ||
	    !load_u32(reader, address + layout->code_first_traceable, &first_traceable))
		return code;
	code.nr_positions = nr_units + 1;
	code.hidden = first_traceable >= nr_units;
	if (!code.hidden) {
		walk_fetch(reader, name, 2);
		walk_fetch(reader, line_table, 3);
		walk_fetch_file(reader, address + layout->code_file);
	}
	return code;
}

/* Which frames are what they seem; what is towards the root of another is left out. */
WALK_INLINE enum cpython_end walk_312_checked(struct reader reader,
					      const struct cpython_layout *layout,
					      const struct cpython *cpython, struct walk_room *room,
					      enum cpython_end end)
{
	struct walk_code code = {0};
	size_t nr_good = 0;

	for (size_t i = 0; i < room->nr_frames; i++) {
		const struct cpython_frame *frame = &room->frames[i];

		if (frame->code_address != code.address)
			code = walk_312_code(reader, layout, cpython, frame->code_address);
		if (frame->position >= code.nr_positions) {
			end = CPYTHON_END_UNREADABLE;
			break;
		}
		if (!code.hidden)
			room->frames[nr_good++] = *frame;
		else if (nr_good && frame->entry)
			room->frames[nr_good - 1].entry = 1;
	}
	room->nr_frames = nr_good;
	return end;
}

/* The newest frame, and the one that the newest evaluation loop must stand on. */
WALK_INLINE bool walk_312_newest(struct reader reader, const struct cpython_layout *layout,
				 uint64_t state, struct walk_room *room, uint64_t *ret_frame)
{
	uint64_t cframe, before;

	if (!layout->state_cframe)
		return load_u64(reader, state + layout->state_frame, ret_frame);
	if (!load_u64(reader, state + layout->state_cframe, &cframe) ||
	    !load_u64(reader, cframe + layout->cframe_frame, ret_frame))
		return false;
	if (cframe == state + layout->state_root_cframe)
		return !*ret_frame; /* none runs */
	return *ret_frame && load_u64(reader, cframe + layout->cframe_previous, &before) &&
	       load_u64(reader, before + layout->cframe_frame, &room->before);
}

WALK_INLINE enum cpython_end walk_312(struct reader reader, const struct cpython_layout *layout,
				      const struct cpython *cpython, uint64_t thread_state,
				      struct walk_room *room)
{
	struct walk_312_ends ends = {0};
	enum cpython_end end;
	uint64_t frame;

	if (!walk_312_newest(reader, layout, thread_state, room, &frame))
		return CPYTHON_END_UNREADABLE;
	walk_fetch_below(reader, frame);
	end = walk_312_chain(reader, layout, frame, room, &ends);
	if (room->torn || !walk_312_is_linked(reader, layout, thread_state, room, &ends)) {
		room->nr_frames = 0;
		return CPYTHON_END_UNREADABLE;
	}
	return walk_312_checked(reader, layout, cpython, room, end);
}

#endif
