// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';
import {
	ALL, MAX_INVERTED_NODES, WIDTH, buildTree, eventWeights, loadProfile, makeMatcher, searchTotals,
	threadWeights,
} from '../src/model.js';
import { deep, fromStacks, large, profile, small } from './fixtures.js';

const TOP_DOWN = { event: 0, thread: ALL, inverted: false, byLine: false };
const MS = 1_000_000;

function outline(node) {
	const name = node.line ? `${node.name}@${node.line}` : node.name;

	return [name, node.total / MS, node.self / MS, ...node.children.map(outline)];
}

function treeOf(data, selection = {}) {
	return buildTree(loadProfile(data), { ...TOP_DOWN, ...selection });
}

test('buildTree: functions, callers first, heaviest first', () => {
	assert.deepEqual(outline(treeOf(small()).root), ['all', 100, 0,
		['main', 75, 0,
			['parse', 40, 0, ['read', 40, 40]],
			['render', 35, 20, ['render', 15, 0, ['c:memcpy', 15, 15]]]],
		['worker', 25, 0, ['read', 25, 25]]]);
});

test('buildTree: lines keep one function apart', () => {
	const [main] = treeOf(small(), { byLine: true }).root.children;

	assert.deepEqual(main.children.map((node) => [node.name, node.line, node.total / MS]),
		[['render', 30, 35], ['parse', 10, 30], ['parse', 11, 10]]);
});

test('buildTree: inverted merges callers under the innermost frame', () => {
	assert.deepEqual(outline(treeOf(small(), { inverted: true }).root), ['all', 100, 0,
		['read', 65, 65,
			['parse', 40, 0, ['main', 40, 0]],
			['worker', 25, 0]],
		['render', 20, 20, ['main', 20, 0]],
		['c:memcpy', 15, 15, ['render', 15, 0, ['render', 15, 0, ['main', 15, 0]]]]]);
});

test('buildTree: one thread, one event', () => {
	assert.deepEqual(outline(treeOf(small(), { thread: 1 }).root),
		['all', 25, 0, ['worker', 25, 0, ['read', 25, 25]]]);
	const faults = treeOf(small(), { event: 1 }).root;
	assert.equal(faults.total, 4000);
	assert.equal(faults.totalSamples, 4);
});

test('buildTree: nothing selected is an empty root', () => {
	const { root, nodes } = treeOf(small(), { event: 1, thread: 0 });

	assert.equal(root.totalSamples, 0);
	assert.equal(nodes.length, 1);
	assert.equal(treeOf(profile({})).nodes.length, 1);
});

test('buildTree: places children inside their parent, level by level', () => {
	const { nodes, depth } = treeOf(large(3000, 30));

	assert.equal(nodes[0].duration, WIDTH);
	assert.equal(depth, Math.max(...nodes.map((node) => node.depth)) + 1);
	nodes.forEach((node, index) => {
		assert.equal(node.index, index);
		if (index > 0) {
			const before = nodes[index - 1];
			assert.ok(node.depth === before.depth + 1 ||
				(node.depth === before.depth && node.start >= before.start));
			assert.ok(node.start >= node.parent.start - 1e-3);
			assert.ok(node.start + node.duration <=
				node.parent.start + node.parent.duration + 1e-3);
		}
	});
});

test('buildTree: both directions hold the same weight', () => {
	const data = large(3000, 30);
	const down = treeOf(data), up = treeOf(data, { inverted: true });
	const self = (nodes) => nodes.reduce((sum, node) => sum + node.selfSamples, 0);

	assert.equal(up.root.totalSamples, down.root.totalSamples);
	assert.equal(self(down.nodes), down.root.totalSamples);
	assert.equal(self(up.nodes), down.root.totalSamples);
});

test('buildTree: an inverted tree too large is unfolded heaviest first', () => {
	const { nodes, root } = treeOf(large(100_000, 60, 100_000), { inverted: true });
	const folded = nodes.filter((node) => node.folded);
	const heaviest = Math.max(...folded.map((node) => node.totalSamples));

	assert.ok(folded.length > 0);
	assert.ok(nodes.length >= MAX_INVERTED_NODES && nodes.length < 1.1 * MAX_INVERTED_NODES,
		`${nodes.length} nodes`);
	for (const node of nodes) {
		if (node.totalSamples > heaviest && node !== root)
			assert.equal(node.folded, false);
		if (node.folded)
			assert.equal(node.children.length, 0);
	}
	const whole = treeOf(large(3000, 30), { inverted: true });
	assert.ok(whole.nodes.every((node) => !node.folded));
});

test('buildTree: a recursion 20000 deep', () => {
	for (const inverted of [false, true])
		assert.ok(treeOf(deep(20_000), { inverted }).depth >= 20_000);
});

test('buildTree: samples are the width where the event counted nothing', () => {
	const { root, weightIsSamples } = treeOf(fromStacks([[0, 0, ['a'], 3, 0], [0, 0, ['b'], 1, 0]]));

	assert.equal(weightIsSamples, true);
	assert.deepEqual(root.children.map((node) => node.duration), [WIDTH * 3 / 4, WIDTH / 4]);
});

test('searchTotals: a stack counts once however many of its frames match', () => {
	const loaded = loadProfile(small());
	const total = (text, selection = {}) =>
		searchTotals(loaded, { ...TOP_DOWN, ...selection }, makeMatcher(text, false)).count / MS;

	assert.equal(total('render'), 35);
	assert.equal(total('read'), 65);
	assert.equal(total('READ', { thread: 1 }), 25);
	assert.equal(total('LIBC'), 15, 'files are searched too');
	assert.equal(total('app.py'), 100);
	assert.equal(total('nowhere'), 0);
	assert.equal(total('read', { inverted: true, byLine: true }), 65, 'in every order');
});

test('makeMatcher: text is text, an expression is an expression', () => {
	const frame = { name: 'f(x)', file: 'a.py' };

	assert.equal(makeMatcher('', false), null);
	assert.ok(makeMatcher('(x)', false)(frame));
	assert.ok(!makeMatcher('^x', false)(frame));
	assert.ok(makeMatcher('^f.x', true)({ name: 'fax', file: '' }));
	assert.throws(() => makeMatcher('(', true), SyntaxError);
});

test('weights: by event, and by thread heaviest first', () => {
	const loaded = loadProfile(small());

	assert.deepEqual(eventWeights(loaded),
		[{ samples: 100, count: 100 * MS }, { samples: 4, count: 4000 }]);
	assert.deepEqual(threadWeights(loaded, 1).map(({ index, samples }) => [index, samples]),
		[[1, 4], [0, 0]]);
});

test('loadProfile: children may come before their parents', () => {
	const { root } = treeOf(profile({
		frames: [['outer', null, 0, 'python'], ['inner', null, 0, 'python']],
		nodes: [[1, 1], [-1, 0]], stacks: [[0, 0, 0, 1, MS]],
	}));

	assert.deepEqual(outline(root), ['all', 1, 0, ['outer', 1, 0, ['inner', 1, 1]]]);
});

test('loadProfile: damaged data is refused with a sentence', () => {
	const frames = [['f', null, 0, 'python']];
	const bad = [
		[profile({ version: 2 }), /version is 2/],
		[profile({ nodes: null }), /"nodes" is not a list/],
		[profile({ frames, nodes: [[7, 0]] }), /no parent/],
		[profile({ frames, nodes: [[-1, 1]] }), /no frame/],
		[profile({ frames, nodes: [[1, 0], [0, 0]] }), /never reach a root/],
		[profile({ frames, nodes: [[0, 0]] }), /never reach a root/],
		[profile({ frames, nodes: [[-1, 0]], stacks: [[0, 0, 1, 1, 1]] }), /no node/],
		[profile({ frames, nodes: [[-1, 0]], stacks: [[1, 0, 0, 1, 1]] }), /no event/],
		[profile({ frames, nodes: [[-1, 0]], stacks: [[0, 5, 0, 1, 1]] }), /no thread/],
		[profile({ frames, nodes: [[-1, 0]], stacks: [[0, 0, 0, -1, 1]] }), /no weight/],
		[null, /not an object/],
	];

	for (const [data, sentence] of bad)
		assert.throws(() => loadProfile(data), sentence);
});
