/* SPDX-License-Identifier: MIT */
/*
 * Raw nodes to what analyses want: each node's function and line, decoded once.
 *
 * Functions are equal where name, file, first line and kind are: a function defined again and again
 * (a closure, a module loaded twice) is one. Lines come from the code's line table; many nodes
 * stand at one place of one code (each caller has its own), so the last decoded places are
 * remembered. Checked here: that owners are defined, and that no chain is deeper than
 * TRACE_DEPTH_MAX, which is what lets everybody walk chains without a thought. Cost: about 20 ns a
 * node, and a decoded line table per distinct place.
 */
#include "tool/trace/trace_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "core/cpython/cpython.h"

#define PLACES (1u << 16) /* places remembered, direct-mapped: 1 MiB */

struct place {
	uint64_t key; /* code << 32 | position; 0: empty */
	uint32_t line;
};

struct resolving {
	struct reading *reading;
	struct trace *trace;
	struct map functions; /* hash of the function: index */
	struct place *places;
	uint16_t *depths;			/* by node */
	uint32_t truncated, unreadable, kernel; /* functions of markers */
	uint64_t nr_no_owner, nr_too_deep;
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return (hash ^ 0xff) * 0x100000001b3ull;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_function(const struct trace_function *a, const struct trace_function *b)
{
	return a->line == b->line && a->kind == b->kind && same_text(a->name, b->name) &&
	       same_text(a->file, b->file);
}

/* The index of a function, added where it is new. */
static int add_function(struct resolving *resolving, struct trace_function function,
			uint32_t *ret_index)
{
	struct trace *trace = resolving->trace;
	uint64_t hash = hash_text(0xcbf29ce484222325ull, function.name);
	uint32_t *index;

	hash = hash_text(hash, function.file) ^ (uint64_t)function.line << 8 ^ function.kind;
	for (;; hash++) { /* ends at a function's own hash or a free one */
		index = map_at(&resolving->functions, hash, UINT32_MAX);
		if (!index)
			return -ENOMEM;
		if (*index == UINT32_MAX)
			break;
		if (same_function(&trace->functions[*index], &function)) {
			*ret_index = *index;
			return 0;
		}
	}
	if (array_fit((void **)&trace->functions, &resolving->reading->room_functions,
		      trace->nr_functions, sizeof(function)))
		return -ENOMEM;
	*index = *ret_index = (uint32_t)trace->nr_functions;
	trace->functions[trace->nr_functions++] = function;
	return 0;
}

static int add_marker(struct resolving *resolving, const char *name, enum frame_kind kind,
		      uint32_t *ret_index)
{
	return add_function(resolving, (struct trace_function){.name = name, .kind = (uint8_t)kind},
			    ret_index);
}

static int add_fixed(struct resolving *resolving)
{
	uint32_t index;
	int rc;

	rc = add_marker(resolving, "[unknown]", FRAME_MARKER, &index);
	rc = rc ? rc : add_marker(resolving, "[no Python frame]", FRAME_MARKER, &index);
	rc = rc ? rc : add_marker(resolving, "[truncated]", FRAME_MARKER, &resolving->truncated);
	rc = rc ? rc : add_marker(resolving, "[unreadable]", FRAME_MARKER, &resolving->unreadable);
	return rc ? rc : add_marker(resolving, "[kernel]", FRAME_KERNEL, &resolving->kernel);
}

/* A marker frame for each state that is a wait, in front of the last node, "[unknown]". */
static int add_states(struct resolving *resolving)
{
	static const char *const names[NR_SAMPLE_STATES] = {
		[STATE_LOCK] = "[waiting for the GIL]",
		[STATE_RUNNABLE] = "[waiting for a CPU]",
		[STATE_WAITING] = "[waiting]",
		[STATE_UNSEEN] = "[not seen]",
	};
	struct trace *trace = resolving->trace;
	uint32_t node = (uint32_t)(trace->nr_nodes - 1 - NR_SAMPLE_STATES);
	int rc = 0;

	for (unsigned int state = 0; state < NR_SAMPLE_STATES && !rc; state++, node++) {
		if (!names[state])
			continue;
		trace->state_nodes[state] = node;
		trace->nodes[node].defined = 1;
		rc = add_marker(resolving, names[state], FRAME_MARKER,
				&trace->nodes[node].function);
	}
	return rc;
}

static int add_codes(struct resolving *resolving)
{
	struct reading *reading = resolving->reading;

	for (size_t i = 0; i < reading->nr_codes; i++) {
		struct raw_code *code = &reading->codes[i];
		struct trace_function function = {
			.name = code->name,
			.file = code->file && code->file[0] ? code->file : NULL,
			.line = code->first_line,
			.kind = FRAME_PYTHON,
		};

		if (code->defined && add_function(resolving, function, &code->function))
			return -ENOMEM;
	}
	return 0;
}

/* Native code is not resolved to symbols yet: one function a module, named after its file. */
static int add_modules(struct resolving *resolving)
{
	struct reading *reading = resolving->reading;

	for (size_t i = 0; i < reading->nr_modules; i++) {
		struct raw_module *module = &reading->modules[i];
		struct trace_function function = {.kind = FRAME_NATIVE, .file = module->path};
		const char *slash;
		size_t length;
		char *name;

		if (!module->path)
			continue;
		slash = strrchr(module->path, '/');
		slash = slash ? slash + 1 : module->path;
		length = strlen(slash);
		name = arena_take(reading->arena, length + 3);
		if (!name)
			return -ENOMEM;
		name[0] = '[';
		memcpy(name + 1, slash, length);
		name[length + 1] = ']';
		function.name = name;
		if (add_function(resolving, function, &module->function))
			return -ENOMEM;
	}
	return 0;
}

static uint32_t line_of(struct resolving *resolving, const struct raw_code *code, uint32_t owner,
			uint64_t position)
{
	uint64_t key = (uint64_t)owner << 32 | (uint32_t)position;
	struct place *place;

	if (position > UINT32_MAX)
		return 0;
	place = &resolving->places[map_mix(key) & (PLACES - 1)];
	if (place->key != key) {
		place->key = key;
		place->line =
			cpython_line(code->line_table_kind, code->line_table,
				     code->line_table_length, code->first_line, (uint32_t)position);
	}
	return place->line;
}

static void resolve_owner(struct resolving *resolving, const struct raw_node *raw,
			  struct trace_node *node)
{
	const struct reading *reading = resolving->reading;

	node->kind = FRAME_MARKER;
	switch (raw->kind) {
	case NODE_PYTHON:
		if (raw->owner >= reading->nr_codes || !reading->codes[raw->owner].defined)
			break;
		node->kind = FRAME_PYTHON;
		node->function = reading->codes[raw->owner].function;
		node->line =
			line_of(resolving, &reading->codes[raw->owner], raw->owner, raw->position);
		return;
	case NODE_NATIVE:
		if (raw->owner >= reading->nr_modules || !reading->modules[raw->owner].path)
			break;
		node->kind = FRAME_NATIVE;
		node->function = reading->modules[raw->owner].function;
		return;
	case NODE_KERNEL:
		node->kind = FRAME_KERNEL;
		node->function = resolving->kernel;
		return;
	case NODE_TRUNCATED:
		node->function = resolving->truncated;
		return;
	case NODE_UNREADABLE:
		node->function = resolving->unreadable;
		return;
	default:
		break;
	}
	resolving->nr_no_owner++; /* stays "[unknown]" */
}

static void resolve_nodes(struct resolving *resolving)
{
	const struct reading *reading = resolving->reading;
	struct trace_node *nodes = resolving->trace->nodes;

	for (size_t i = 1; i < reading->nr_nodes; i++) {
		const struct raw_node *raw = &reading->nodes[i];

		if (!raw->defined)
			continue;
		if (resolving->depths[raw->parent] >= TRACE_DEPTH_MAX) {
			resolving->nr_too_deep++;
			continue;
		}
		resolving->depths[i] = (uint16_t)(resolving->depths[raw->parent] + 1);
		nodes[i].parent = raw->parent;
		nodes[i].flags = raw->flags;
		nodes[i].defined = 1;
		resolve_owner(resolving, raw, &nodes[i]);
	}
}

static int resolve(struct resolving *resolving)
{
	struct reading *reading = resolving->reading;
	struct trace *trace = resolving->trace;

	trace->nr_nodes = (reading->nr_nodes ? reading->nr_nodes : 1) + 1;
	if (trace->wall.period_ns)
		trace->nr_nodes += NR_SAMPLE_STATES;
	trace->nodes = calloc(trace->nr_nodes, sizeof(*trace->nodes));
	resolving->places = calloc(PLACES, sizeof(*resolving->places));
	resolving->depths = calloc(trace->nr_nodes, sizeof(*resolving->depths));
	if (!trace->nodes || !resolving->places || !resolving->depths)
		return -ENOMEM;
	for (size_t i = 0; i < trace->nr_nodes; i++)
		trace->nodes[i].kind = FRAME_MARKER;
	trace->nodes[0].function = FUNCTION_NO_PYTHON;
	trace->nodes[0].defined = 1;
	if (add_fixed(resolving) || (trace->wall.period_ns && add_states(resolving)))
		return -ENOMEM;
	if (add_codes(resolving) || add_modules(resolving))
		return -ENOMEM;
	resolve_nodes(resolving);
	return 0;
}

int nodes_resolve(struct reading *reading)
{
	struct resolving resolving = {.reading = reading, .trace = reading->trace};
	int rc = resolve(&resolving);

	if (resolving.nr_no_owner)
		reading_problem(reading, "%llu frames are of code without a definition",
				(unsigned long long)resolving.nr_no_owner);
	if (resolving.nr_too_deep)
		reading_problem(reading, "%llu frames are deeper than %d and were left out",
				(unsigned long long)resolving.nr_too_deep, TRACE_DEPTH_MAX);
	free(resolving.places);
	free(resolving.depths);
	map_release(&resolving.functions);
	return rc;
}
