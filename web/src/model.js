// SPDX-License-Identifier: MIT
/*
 * From the profile in the page to trees: pure functions, no DOM.
 *
 *   data (README.md) --loadProfile--> profile --buildTree(selection)--> tree
 *                                        |------searchTotals(matches)--> weight
 *
 * The profile's nodes are a prefix tree shared by every thread and event; what fell on them is in
 * `stacks`. A tree is what one selection of event, thread, direction and granularity looks like.
 * Nothing here recurses, so depth is bounded only by the data.
 *
 * A tree node: { name, file, line, kind, group, parent, children, depth, total, self,
 * totalSamples, selfSamples, folded, start, duration, index }. `group` identifies what was merged
 * into one (a function, or a function's line); `start` and `duration` place it in 0..WIDTH.
 */

export const WIDTH = 1e9; /* the root's width; plenty for sub-pixel zooms and exact as a double */
export const ALL = -1; /* every thread */

/* An inverted tree stops unfolding callers here, heaviest first done: each leaf can bring its whole
 * stack, so 10^5 leaves of depth 60 would make 6 * 10^6 nodes. */
export const MAX_INVERTED_NODES = 100_000;

/** check - throws Error(sentence) unless the condition holds */
function check(condition, sentence) {
	if (!condition)
		throw new Error(`This page's data is damaged: ${sentence}.`);
}

function isIndex(value, length) {
	return Number.isInteger(value) && value >= 0 && value < length;
}

function isWeight(value) {
	return Number.isFinite(value) && value >= 0;
}

/** parentsFirst - node indices, parents before children; throws on a cycle */
function parentsFirst(parents) {
	const count = parents.length;
	const firstChild = new Int32Array(count).fill(-1);
	const next = new Int32Array(count).fill(-1);
	const order = new Int32Array(count);
	let filled = 0;

	for (let node = count - 1; node >= 0; node--) {
		const parent = parents[node];
		if (parent < 0)
			continue;
		next[node] = firstChild[parent];
		firstChild[parent] = node;
	}
	for (let node = 0; node < count; node++) {
		if (parents[node] < 0)
			order[filled++] = node;
	}
	for (let done = 0; done < filled; done++) {
		for (let child = firstChild[order[done]]; child >= 0; child = next[child])
			order[filled++] = child;
	}
	check(filled === count, 'some call paths never reach a root');
	return order;
}

/**
 * loadProfile - check the page's data once; later code trusts it
 * Throws Error with a sentence for the reader.
 */
export function loadProfile(data) {
	check(data && typeof data === 'object', 'it is not an object');
	check(data.version === 1, `its version is ${String(data.version)}, and this page knows 1`);
	for (const name of ['events', 'threads', 'frames', 'nodes', 'stacks'])
		check(Array.isArray(data[name]), `"${name}" is not a list`);

	const frames = data.frames.map(([name, file, line, kind]) => ({
		name: String(name),
		file: file === null || file === undefined ? '' : String(file),
		line: Number.isInteger(line) && line > 0 ? line : 0,
		kind: String(kind),
	}));
	const parents = new Int32Array(data.nodes.length);
	const nodeFrame = new Int32Array(data.nodes.length);
	data.nodes.forEach(([parent, frame], node) => {
		check(parent === -1 || isIndex(parent, parents.length), `node ${node} has no parent`);
		check(isIndex(frame, frames.length), `node ${node} has no frame`);
		parents[node] = parent;
		nodeFrame[node] = frame;
	});
	data.stacks.forEach(([event, thread, node, samples, count], stack) => {
		check(isIndex(event, data.events.length), `stack ${stack} has no event`);
		check(isIndex(thread, data.threads.length), `stack ${stack} has no thread`);
		check(isIndex(node, parents.length), `stack ${stack} has no node`);
		check(isWeight(samples) && isWeight(count), `stack ${stack} has no weight`);
	});
	return {
		title: String(data.title ?? ''),
		recording: data.recording ?? {},
		notices: Array.isArray(data.notices) ? data.notices.map(String) : [],
		events: data.events,
		threads: data.threads,
		stacks: data.stacks,
		frames, parents, nodeFrame,
		order: parentsFirst(parents),
	};
}

/** eventWeights - samples and count of each event, over every thread */
export function eventWeights(profile) {
	const weights = profile.events.map(() => ({ samples: 0, count: 0 }));

	for (const [event, , , samples, count] of profile.stacks) {
		weights[event].samples += samples;
		weights[event].count += count;
	}
	return weights;
}

/** threadWeights - what fell on each thread for one event, heaviest first */
export function threadWeights(profile, event) {
	const rows = profile.threads.map((thread, index) => ({ thread, index, samples: 0, count: 0 }));

	for (const [stackEvent, thread, , samples, count] of profile.stacks) {
		if (stackEvent === event) {
			rows[thread].samples += samples;
			rows[thread].count += count;
		}
	}
	return rows.sort((a, b) => b.count - a.count || b.samples - a.samples || a.index - b.index);
}

/** selfWeights - samples and count that ended on each node, for one event and thread or ALL */
function selfWeights(profile, { event, thread }) {
	const samples = new Float64Array(profile.parents.length);
	const count = new Float64Array(profile.parents.length);

	for (const [stackEvent, stackThread, node, stackSamples, stackCount] of profile.stacks) {
		if (stackEvent !== event || (thread !== ALL && stackThread !== thread))
			continue;
		samples[node] += stackSamples;
		count[node] += stackCount;
	}
	return { samples, count };
}

/** frameGroups - for each frame, a number shared by the frames shown as one */
export function frameGroups(frames, byLine) {
	const numbers = new Map();

	return Int32Array.from(frames, ({ name, file, line, kind }) => {
		const key = JSON.stringify([kind, file, name, byLine ? line : 0]);
		if (!numbers.has(key))
			numbers.set(key, numbers.size);
		return numbers.get(key);
	});
}

function makeNode(parent, frame, group, byLine) {
	return {
		name: frame.name, file: frame.file, line: byLine ? frame.line : 0, kind: frame.kind,
		group, parent, children: [], depth: parent ? parent.depth + 1 : 0,
		total: 0, self: 0, totalSamples: 0, selfSamples: 0, folded: false,
		start: 0, duration: 0, index: -1,
	};
}

/* Nodes under construction, found by (parent, group). */
class Nodes {
	constructor(profile, byLine) {
		this.profile = profile;
		this.byLine = byLine;
		this.groups = frameGroups(profile.frames, byLine);
		this.known = new Map();
		this.list = [makeNode(null, { name: 'all', file: '', line: 0, kind: 'root' }, -1, false)];
		this.list[0].index = 0;
	}

	child(parent, profileNode) {
		const frame = this.profile.nodeFrame[profileNode];
		const group = this.groups[frame];
		const key = parent.index * this.profile.frames.length + group;
		let node = this.known.get(key);

		if (!node) {
			node = makeNode(parent, this.profile.frames[frame], group, this.byLine);
			node.index = this.list.length;
			this.list.push(node);
			this.known.set(key, node);
			parent.children.push(node);
		}
		return node;
	}
}

function buildTopDown(nodes, { samples, count }) {
	const { order, parents } = nodes.profile;
	const totalSamples = samples.slice();
	const totalCount = count.slice();
	const made = new Array(parents.length);

	for (let at = order.length - 1; at >= 0; at--) {
		const parent = parents[order[at]];
		if (parent >= 0) {
			totalSamples[parent] += totalSamples[order[at]];
			totalCount[parent] += totalCount[order[at]];
		}
	}
	for (const from of order) {
		if (!totalSamples[from] && !totalCount[from])
			continue;
		const parent = parents[from] < 0 ? nodes.list[0] : made[parents[from]];
		const node = nodes.child(parent, from);
		made[from] = node;
		node.total += totalCount[from];
		node.totalSamples += totalSamples[from];
		node.self += count[from];
		node.selfSamples += samples[from];
		if (parents[from] < 0) {
			parent.total += totalCount[from];
			parent.totalSamples += totalSamples[from];
		}
	}
}

/* A binary heap of { weight, ... }, heaviest on top. */
class Heap {
	constructor() {
		this.items = [];
	}

	push(item) {
		const { items } = this;
		let at = items.push(item) - 1;

		while (at > 0 && items[(at - 1) >> 1].weight < item.weight) {
			items[at] = items[(at - 1) >> 1];
			at = (at - 1) >> 1;
		}
		items[at] = item;
	}

	pop() {
		const { items } = this;
		const top = items[0];
		const item = items.pop();
		let at = 0;

		if (!items.length)
			return top;
		for (let child = 1; child < items.length; child = 2 * at + 1) {
			if (child + 1 < items.length && items[child + 1].weight > items[child].weight)
				child++;
			if (items[child].weight <= item.weight)
				break;
			items[at] = items[child];
			at = child;
		}
		items[at] = item;
		return top;
	}
}

/*
 * Each tree node waiting for its callers holds the stacks that pass through it, as pairs of where
 * they ended (the weight) and where they are now (the next caller).
 */
function buildBottomUp(nodes, weights) {
	const { samples, count } = weights;
	const root = nodes.list[0];
	const waiting = new Heap();
	const passing = [];

	for (let node = 0; node < samples.length; node++) {
		if (!samples[node] && !count[node])
			continue;
		root.total += count[node];
		root.totalSamples += samples[node];
		passing.push({ end: node, at: node });
	}
	waiting.push({ weight: 0, node: root, passing });
	while (waiting.items.length) {
		const next = waiting.pop();
		if (nodes.list.length >= MAX_INVERTED_NODES)
			next.node.folded = true;
		else
			addCallers(nodes, next, waiting, weights);
	}
}

function addCallers(nodes, { node: parent, passing }, waiting, { samples, count }) {
	const { parents } = nodes.profile;
	const callers = new Map();

	for (const { end, at } of passing) {
		const node = nodes.child(parent, at);
		node.total += count[end];
		node.totalSamples += samples[end];
		if (end === at) {
			node.self += count[end];
			node.selfSamples += samples[end];
		}
		if (parents[at] < 0)
			continue;
		if (!callers.has(node))
			callers.set(node, []);
		callers.get(node).push({ end, at: parents[at] });
	}
	for (const [node, above] of callers)
		waiting.push({ weight: node.totalSamples, node, passing: above });
}

function heaviestFirst(a, b) {
	return b.total - a.total || b.totalSamples - a.totalSamples ||
		(a.name < b.name ? -1 : a.name > b.name ? 1 : a.group - b.group);
}

/* Children in order, and every node placed; breadth first, so each level is sorted by start. */
function layOut(root, weigh) {
	const scale = weigh(root) > 0 ? WIDTH / weigh(root) : 0;
	const list = [root];

	root.duration = WIDTH;
	for (let at = 0; at < list.length; at++) {
		const node = list[at];
		let start = node.start;

		node.index = at;
		node.children.sort(heaviestFirst);
		for (const child of node.children) {
			child.start = start;
			child.duration = weigh(child) * scale;
			start += child.duration;
			list.push(child);
		}
	}
	return list;
}

/**
 * buildTree - what a selection looks like
 * @selection: { event, thread (or ALL), inverted, byLine }
 * Returns { root, nodes, depth, weightIsSamples }: nodes in breadth-first order; widths follow the
 * event's count, or samples where the event counted nothing.
 */
export function buildTree(profile, selection) {
	const nodes = new Nodes(profile, selection.byLine);
	const weights = selfWeights(profile, selection);

	if (selection.inverted)
		buildBottomUp(nodes, weights);
	else
		buildTopDown(nodes, weights);

	const root = nodes.list[0];
	const weightIsSamples = root.total === 0;
	const list = layOut(root, weightIsSamples ? (node) => node.totalSamples : (node) => node.total);
	return { root, nodes: list, depth: list[list.length - 1].depth + 1, weightIsSamples };
}

/**
 * makeMatcher - a test of frames ({ name, file }) for a search
 * @regex: the text is a regular expression; plain text and expressions ignore case
 * Returns null for an empty text; throws SyntaxError for a broken expression.
 */
export function makeMatcher(text, regex) {
	if (!text)
		return null;
	if (regex) {
		const expression = new RegExp(text, 'i');
		return ({ name, file }) => expression.test(name) || expression.test(file);
	}
	const wanted = text.toLowerCase();
	return ({ name, file }) => name.toLowerCase().includes(wanted) ||
		file.toLowerCase().includes(wanted);
}

/**
 * searchTotals - what fell on stacks with at least one matching frame, each stack once
 * Returns { samples, count, frames }: frames, the number of distinct frames that match.
 */
export function searchTotals(profile, selection, matcher) {
	const { order, parents, nodeFrame, frames } = profile;
	const hit = frames.map((frame) => matcher(frame));
	const within = new Uint8Array(parents.length);
	const weights = selfWeights(profile, selection);
	const result = { samples: 0, count: 0, frames: hit.filter(Boolean).length };

	for (const node of order) {
		const parent = parents[node];
		if (hit[nodeFrame[node]] || (parent >= 0 && within[parent])) {
			within[node] = 1;
			result.samples += weights.samples[node];
			result.count += weights.count[node];
		}
	}
	return result;
}
