// SPDX-License-Identifier: MIT
/* Profiles for tests, in the format of README.md. */

export const HOSTILE = '</script><img src=x onerror="window.pwned=1">\'"`&lt;';
export const OVERRIDE = 'ab\u202ecod\u2066.py\u0000';

/** profile - a profile around what a test cares about */
export function profile(parts) {
	return {
		version: 1, title: 'test',
		recording: {
			command: ['python3', 'app.py', '--rounds', '3'], host: 'testbox', trigger: 'cpu-timer',
			start_ns: 0, end_ns: 2_500_000_000, interpreter: ['CPython 3.11'],
		},
		notices: [], events: [{ name: 'cpu', unit: 'ns', period: 1_000_000 }],
		threads: [{ pid: 10, tid: 10, name: 'main' }],
		frames: [], nodes: [], stacks: [], ...parts,
	};
}

/** fromStacks - rows of [event, thread, ['function', ...] root first, samples, count] */
export function fromStacks(rows, parts = {}) {
	const frames = [], nodes = [], known = new Map(), frameOf = new Map();
	const frame = (spec) => {
		const [name, line = 0] = spec.split('@');
		const kind = name.startsWith('c:') ? 'native' : 'python';
		if (!frameOf.has(spec)) {
			frameOf.set(spec, frames.length);
			frames.push([name, kind === 'python' ? 'app.py' : 'libc.so.6', Number(line), kind]);
		}
		return frameOf.get(spec);
	};
	const stacks = rows.map(([event, thread, names, samples, count]) => {
		let node = -1;
		for (const name of names) {
			const key = `${node} ${frame(name)}`;
			if (!known.has(key)) {
				known.set(key, nodes.length);
				nodes.push([node, frame(name)]);
			}
			node = known.get(key);
		}
		return [event, thread, node, samples, count];
	});
	return profile({ frames, nodes, stacks, ...parts });
}

/** small - two threads, two events, lines, recursion; weights are easy to add up */
export function small() {
	return fromStacks([
		[0, 0, ['main@1', 'parse@10', 'read@20'], 30, 30_000_000],
		[0, 0, ['main@1', 'parse@11', 'read@20'], 10, 10_000_000],
		[0, 0, ['main@1', 'render@30'], 20, 20_000_000],
		[0, 0, ['main@1', 'render@30', 'render@31', 'c:memcpy'], 15, 15_000_000],
		[0, 1, ['worker@50', 'read@20'], 25, 25_000_000],
		[1, 1, ['worker@50'], 4, 4000],
	], {
		threads: [{ pid: 10, tid: 10, name: 'main' }, { pid: 10, tid: 11, name: 'pool-1' }],
		events: [{ name: 'cpu', unit: 'ns', period: 1_000_000 },
			 { name: 'page-faults', unit: 'events', period: 1000 }],
		notices: ['12 samples were lost because the recorder could not keep up.'],
	});
}

/** hostile - foreign text in every place that text can be */
export function hostile() {
	const data = fromStacks([[0, 0, [HOSTILE, OVERRIDE, 'plain'], 5, 5_000_000]], {
		title: HOSTILE, notices: [HOSTILE, OVERRIDE],
		threads: [{ pid: 1, tid: 1, name: HOSTILE }, { pid: 1, tid: 2, name: OVERRIDE }],
		events: [{ name: HOSTILE, unit: 'ns', period: 1 },
			 { name: OVERRIDE, unit: HOSTILE, period: 1 }],
	});

	Object.assign(data.recording, { command: [HOSTILE, OVERRIDE], host: HOSTILE, trigger: HOSTILE,
		interpreter: [HOSTILE] });
	data.frames.forEach((frame) => { frame[1] = HOSTILE; });
	return data;
}

/** deep - one recursion of a depth, with something beside it */
export function deep(depth) {
	const names = Array.from({ length: depth }, (_, level) => level % 2 ? 'odd' : 'even');

	return fromStacks([[0, 0, names, 3, 3_000_000], [0, 0, ['even', 'leaf'], 1, 1_000_000]]);
}

/* A linear congruential generator: the same profile every time. */
function random(seed) {
	let state = seed;

	return () => {
		state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
		return state / 0x7fffffff;
	};
}

const WORDS = ['parse', 'read', 'render', 'encode', 'lookup', 'merge', 'walk', 'fit', 'load', 'send'];
const OBJECTS = ['request', 'tree', 'table', 'token', 'matrix', 'record', 'image', 'header'];
const FILES = ['app/server.py', 'app/model.py', 'lib/codec.py', 'lib/store.py', 'lib/graph.py'];

function randomFrames(count, next) {
	return Array.from({ length: count }, () => {
		const pick = (list) => list[Math.floor(next() * list.length)];
		const name = `${pick(WORDS)}_${pick(OBJECTS)}`;
		const kind = next();
		if (kind < 0.72)
			return [name, pick(FILES), 1 + Math.floor(next() * 900), 'python'];
		if (kind < 0.94)
			return [`${name}_impl`, 'libwork.so.1', 0, 'native'];
		return [`sys_${name}`, null, 0, 'kernel'];
	});
}

/** large - a random call tree of so many nodes, as deep as depth */
export function large(count, depth, nrFrames = 4000) {
	const next = random(7);
	const frames = randomFrames(nrFrames, next);
	const anyFrame = () => Math.floor(next() ** 4 * nrFrames); /* a few are hot */
	const nodes = [[-1, 0]], levels = [1], stacks = [];

	while (nodes.length < count) {
		let node = Math.floor(next() * nodes.length);
		for (let run = 1 + Math.floor(next() * 20); run > 0; run--) {
			if (levels[node] >= depth || nodes.length >= count)
				break;
			nodes.push([node, anyFrame()]);
			levels.push(levels[node] + 1);
			node = nodes.length - 1;
		}
	}
	nodes.forEach((_, node) => {
		const samples = 1 + Math.floor(next() * next() * 20);
		stacks.push([0, Math.floor(next() * 4), node, samples, samples * 1_000_000]);
	});
	return profile({
		frames, nodes, stacks, title: 'server.py --workers 3',
		threads: ['main', 'worker-1', 'worker-2', 'worker-3'].map((name, index) =>
			({ pid: 4100, tid: 4100 + index, name })),
		notices: ['214 samples (0.1 %) were lost because the recorder could not keep up.',
			  'Time in the kernel could not be seen: kernel.perf_event_paranoid is 2.'],
	});
}
