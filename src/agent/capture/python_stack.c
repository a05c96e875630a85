/* SPDX-License-Identifier: MIT */
/*
 * A walked Python stack becomes a node.
 *
 * The slot keeps the thread's last stack, root first, each frame with its node:
 *
 *   slot->stack   [main:7 -> 12] [run:40 -> 13] [step:9 -> 77] ...      previous_depth of them
 *   slot->walk     step:11  run:40  main:7                              leaf first
 *
 * From the root on, a frame with the kind, the content and the position of the one in slot->stack
 * at that depth, below only such frames, has that one's node: nothing is looked up, nothing is
 * written. At the first difference the rest is interned in the table and written over slot->stack.
 *
 * Identity is the hash of a code object's content, computed in this very walk: an address says
 * nothing from one tick to the next, for code objects die and their addresses come back. Within a
 * walk an address does identify its code (the frames hold references), and the slot's memo,
 * valid for one epoch, spares reading a code object again: recursion reads it once.
 *
 * Cost, n frames with c different code objects, of which r follow one of other code:
 *   always      n * (a quarter of a line of slot->walk, half a line of slot->stack)
 *               + r * a memo's line + c * cpython_identify()
 *   new frames  a table look-up each: the index's line and the node's
 *   new code    a look-up, and copying its names and line table; the misses of the look-ups overlap
 * cpython_walk() has asked for the lines that cpython_identify() reads.
 */
#include "agent/capture/python_stack.h"

#include <string.h>

#define CODE_NAME_CHARS_MAX	  4096	     /* longer names are cut */
#define CODE_LINE_TABLE_BYTES_MAX (1u << 20) /* longer tables are left out: lines unknown */
#define KIND_LOCKED		  0x100u     /* of a leaf, beside its kind: the lock is held */

_Static_assert(sizeof(struct cpython_frame) == sizeof(((struct slot *)0)->walk[0]),
	       "the walk writes into slot->walk");

/* One interning. */
struct interning {
	struct memory *memory;
	struct slot *slot;
	const struct cpython *cpython;
	struct cpython_file_memo file_memo;
	uint32_t depth;	    /* frames done */
	uint32_t parent;    /* node of the last one */
	bool same;	    /* all frames done are those of slot->stack */
	uint32_t leaf_kind; /* of the innermost frame */
	uint32_t degraded;  /* as in struct python_chain */
};

static const struct cpython_frame *walked(const struct slot *slot, size_t index)
{
	return (const struct cpython_frame *)&slot->walk[index];
}

/* The entries of earlier walks must never look like this one's, also when the epoch wraps. */
static void begin_walk_epoch(struct slot *slot)
{
	if (++slot->walk_epoch == 0) {
		memset(slot->memo, 0, sizeof(slot->memo));
		slot->walk_epoch = 1;
	}
}

static struct walk_memo *memo_of(struct slot *slot, uint64_t code_address)
{
	uint64_t hash = code_address * 0x9e3779b97f4a7c15ull;

	return &slot->memo[hash >> 32 & (WALK_MEMO_ENTRIES - 1)];
}

_Static_assert((WALK_MEMO_ENTRIES & (WALK_MEMO_ENTRIES - 1)) == 0, "memo_of() masks");

static uint64_t text_bytes(const struct cpython_text *text)
{
	return (uint64_t)text->length * text->width;
}

static void cut_text(struct cpython_text *text)
{
	if (text->length > CODE_NAME_CHARS_MAX)
		text->length = CODE_NAME_CHARS_MAX;
}

static bool copy_code(const struct cpython_code *code, uint8_t *to)
{
	uint64_t name = text_bytes(&code->name), file = text_bytes(&code->file);

	return cpython_copy(code->name.address, to, name) &&
	       cpython_copy(code->file.address, to + name, file) &&
	       cpython_copy(code->line_table, to + name + file, code->line_table_length);
}

static void fill_code(struct code *record, const struct cpython_code *code, uint64_t text_at)
{
	record->first_line = code->first_line;
	record->name_at = text_at;
	record->name_length = code->name.length;
	record->name_width = (uint8_t)code->name.width;
	record->file_at = record->name_at + text_bytes(&code->name);
	record->file_length = code->file.length;
	record->file_width = (uint8_t)code->file.width;
	record->line_table_at = record->file_at + text_bytes(&code->file);
	record->line_table_length = code->line_table_length;
	record->line_table_kind = code->line_table_kind;
}

enum code_result {
	CODE_OK,
	CODE_UNREADABLE,
	CODE_TABLE_FULL,
};

static enum code_result add_code(struct memory *memory, uint64_t identity,
				 struct cpython_code *code, uint32_t *ret_id)
{
	uint64_t text_at;
	uint8_t *text;
	uint32_t id;

	cut_text(&code->name);
	cut_text(&code->file);
	if (code->line_table_length > CODE_LINE_TABLE_BYTES_MAX) {
		code->line_table_length = 0;
		code->line_table_kind = LINE_TABLE_NONE;
	}
	id = table_reserve_code(
		memory, text_bytes(&code->name) + text_bytes(&code->file) + code->line_table_length,
		&text, &text_at);
	if (!id)
		return CODE_TABLE_FULL;
	if (!copy_code(code, text))
		return CODE_UNREADABLE;
	fill_code(&memory->codes[id], code, text_at);
	id = table_commit_code(memory, id, identity);
	if (!id)
		return CODE_TABLE_FULL;
	*ret_id = id;
	return CODE_OK;
}

/* As struct stack_frame has it. */
static uint32_t where_of(const struct cpython_frame *frame)
{
	return frame->position << 1 | frame->entry;
}

static bool is_frame(const struct stack_frame *old, uint64_t identity, uint32_t where,
		     uint32_t kind)
{
	return old->identity == identity && old->where == where && old->kind == kind;
}

static unsigned int flags_of(const struct stack_frame *frame)
{
	return (frame->where & 1 ? NODE_FLAG_ENTRY : 0) |
	       (frame->kind & KIND_LOCKED ? NODE_FLAG_LOCK_HELD : 0);
}

/* @frame is complete but for its node. Returns false: table full. */
static bool push_new(struct interning *in, struct stack_frame *frame)
{
	frame->node = table_node(in->memory, in->parent, frame->code,
				 node_where((enum node_kind)(frame->kind & 0xff), flags_of(frame),
					    frame->where >> 1));
	if (!frame->node)
		return false;
	in->slot->stack[in->depth++] = *frame;
	in->parent = frame->node;
	return true;
}

static bool push_marker(struct interning *in, enum node_kind kind, enum degraded_reason reason)
{
	struct stack_frame frame = {.kind = kind};
	const struct stack_frame *old = &in->slot->stack[in->depth];

	in->degraded |= 1u << reason;
	in->same = in->same && in->depth < in->slot->previous_depth && is_frame(old, 0, 0, kind);
	if (!in->same)
		return push_new(in, &frame);
	in->depth++;
	in->parent = old->node;
	return true;
}

/*
 * Makes memo->code, 0 so far, the id of the code object that the memo describes. Returns false:
 * table full. Where the code cannot be read after all, the identity is taken back.
 */
static bool name_code(struct interning *in, struct walk_memo *memo)
{
	struct cpython_code code;

	memo->code = table_find_code(in->memory, memo->identity);
	if (memo->code)
		return true;
	if (!cpython_read_code(in->cpython, memo->code_address, &code)) {
		memo->identity = 0;
		return true;
	}
	switch (add_code(in->memory, memo->identity, &code, &memo->code)) {
	case CODE_OK:
		return true;
	case CODE_UNREADABLE:
		memo->identity = 0;
		return true;
	default:
		return false;
	}
}

/* The memo of a code object, which is read if this walk has not met it. */
static inline struct walk_memo *identified(struct interning *in, uint64_t code_address)
{
	struct walk_memo *memo = memo_of(in->slot, code_address);

	if (memo->epoch != in->slot->walk_epoch || memo->code_address != code_address) {
		memo->epoch = in->slot->walk_epoch;
		memo->code_address = code_address;
		memo->code = 0;
		memo->identity = cpython_identify(in->cpython, code_address, &in->file_memo);
	}
	return memo;
}

static uint32_t kind_of(const struct interning *in, size_t index)
{
	return index == 0 ? in->leaf_kind : NODE_PYTHON;
}

/*
 * Passes over the frames that are those of the last stack, from the root on: all that a repeated
 * stack costs. Recursion repeats a code object, and the memo at hand is then the one. Returns how
 * many frames are left.
 */
static size_t push_repeated(struct interning *in, size_t nr_frames)
{
	static const struct walk_memo none;
	const struct slot *slot = in->slot;
	const struct stack_frame *old = &slot->stack[in->depth];
	const struct stack_frame *end = &slot->stack[slot->previous_depth];
	const struct walk_memo *memo = &none;
	size_t left = nr_frames;

	for (; left && old < end; left--, old++) {
		const struct cpython_frame *frame = walked(slot, left - 1);

		if (memo->code_address != frame->code_address)
			memo = identified(in, frame->code_address);
		if (!is_frame(old, memo->identity, where_of(frame), kind_of(in, left - 1)))
			break;
	}
	in->depth = (uint32_t)(old - slot->stack);
	in->parent = in->depth ? old[-1].node : 0;
	return left;
}

/*
 * Identifies the frames that are left before they are looked up, and asks for their lines of the
 * index: each is a miss of cache and TLB, some 0.25 us, and many of them overlap.
 */
static void identify_ahead(struct interning *in, size_t left)
{
	while (left-- > 0)
		table_prefetch_code(in->memory,
				    identified(in, walked(in->slot, left)->code_address)->identity);
}

/* As name_code(), which is spared where the last stack has the same code at this depth. */
static bool have_code(struct interning *in, struct walk_memo *memo)
{
	const struct stack_frame *old = &in->slot->stack[in->depth];

	if (in->depth < in->slot->previous_depth && old->identity == memo->identity)
		memo->code = old->code;
	return memo->code || name_code(in, memo);
}

static bool push_frame(struct interning *in, size_t index)
{
	const struct cpython_frame *frame = walked(in->slot, index);
	struct walk_memo *memo = identified(in, frame->code_address);

	if (memo->identity && !have_code(in, memo))
		return false;
	if (!memo->identity)
		return push_marker(in, NODE_UNREADABLE, DEGRADED_UNREADABLE);
	return push_new(in, &(struct stack_frame){.code_address = frame->code_address,
						  .identity = memo->identity,
						  .code = memo->code,
						  .where = where_of(frame),
						  .kind = kind_of(in, index)});
}

static bool push_all(struct interning *in, size_t nr_frames, enum cpython_end end)
{
	size_t left = nr_frames;

	if (end == CPYTHON_END_TRUNCATED && !push_marker(in, NODE_TRUNCATED, DEGRADED_TRUNCATED))
		return false;
	if (end == CPYTHON_END_UNREADABLE && !push_marker(in, NODE_UNREADABLE, DEGRADED_UNREADABLE))
		return false;
	if (in->same)
		left = push_repeated(in, nr_frames);
	if (!left)
		return true;
	in->same = false;
	if (!push_frame(in, --left)) /* often the leaf: of known code, at another place */
		return false;
	identify_ahead(in, left);
	while (left-- > 0)
		if (!push_frame(in, left))
			return false;
	return true;
}

bool python_stack_intern(struct capture *capture, struct slot *slot, size_t nr_frames,
			 enum cpython_end end, struct python_chain *ret_chain)
{
	struct interning in = {.memory = &capture->memory,
			       .slot = slot,
			       .cpython = &capture->cpython,
			       .same = true,
			       .leaf_kind = NODE_PYTHON | (slot->holds_lock ? KIND_LOCKED : 0)};
	bool done;

	begin_walk_epoch(slot);
	done = push_all(&in, nr_frames, end);
	/* A stack that is a prefix of the last one leaves what lies beyond it valid. */
	if (!in.same || slot->previous_depth < in.depth)
		slot->previous_depth = in.depth;
	if (!done)
		return false;
	ret_chain->node = in.parent;
	ret_chain->degraded = in.degraded;
	return true;
}

bool python_stack_unreadable(struct capture *capture, enum degraded_reason reason,
			     struct python_chain *ret_chain)
{
	uint32_t node = table_node(&capture->memory, 0, 0, node_where(NODE_UNREADABLE, 0, 0));

	if (!node)
		return false;
	ret_chain->node = node;
	ret_chain->degraded = 1u << reason;
	return true;
}
