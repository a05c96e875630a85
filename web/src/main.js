// SPDX-License-Identifier: MIT
/*
 * The page: reads the data, holds the state, and connects the controls with the views. Names come
 * from the profiled program, so text reaches the document as text only (textContent, option
 * labels, the canvas).
 */
import './theme.css';
import {
	ALL, buildTree, eventWeights, loadProfile, makeMatcher, searchTotals, threadWeights,
} from './model.js';
import {
	formatCount, formatNumber, formatPlace, formatShare, formatWeight, visible,
} from './format.js';
import { typeColor } from './palette.js';
import { readHash, writeHash } from './state.js';
import { FlameGraph } from './views/flamegraph.js';

const KIND_NAMES = { python: 'Python', native: 'native', kernel: 'kernel', marker: 'marker' };
const SEARCH_DELAY_MS = 120; /* after the last key, before 10^5 frames are searched */

const $ = (id) => document.getElementById(id);

function option(value, label) {
	const element = document.createElement('option');

	element.value = String(value);
	element.textContent = label;
	return element;
}

function showMessage(sentence) {
	$('message').textContent = sentence;
	$('message').hidden = !sentence;
	$('viewport').hidden = Boolean(sentence);
}

/* The command as it was typed, near enough to read. */
function commandLine(command) {
	return command.map((word) => visible(String(word))).map((word) =>
		/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`).join(' ');
}

class Page {
	constructor(profile) {
		this.profile = profile;
		this.view = null;
		this.tree = null;
		this.matcher = null;
		this.darkScheme = matchMedia('(prefers-color-scheme: dark)');
		this.state = this.readState();
	}

	readState() {
		const { events, threads } = this.profile;

		return readHash(location.hash, { events: events.length, threads: threads.length });
	}

	start() {
		this.describe();
		this.fillControls();
		this.listen();
		this.applyTheme();
		this.rebuild();
		if (this.state.search)
			this.search();
		if (this.state.zoom)
			this.zoom(this.tree?.nodes[this.state.zoom] ?? null);
	}

	/* What was recorded, and first of all what was not. */
	describe() {
		const { title, recording, notices } = this.profile;
		const list = $('notices').querySelector('ul');
		const facts = [];

		document.title = title ? `${visible(title)} - pathprof` : 'pathprof';
		$('title').textContent = title ? visible(title) : 'pathprof';
		if (Array.isArray(recording.command) && recording.command.length)
			facts.push(commandLine(recording.command));
		if (Array.isArray(recording.interpreter) && recording.interpreter.length)
			facts.push(recording.interpreter.map((name) => visible(String(name))).join(', '));
		if (recording.host)
			facts.push(`on ${visible(String(recording.host))}`);
		if (recording.trigger)
			facts.push(`triggered by ${visible(String(recording.trigger))}`);
		if (recording.end_ns > recording.start_ns)
			facts.push(`${formatCount(recording.end_ns - recording.start_ns, 'ns')} long`);
		$('recording').textContent = facts.join(' \u00b7 ');
		for (const notice of notices) {
			const item = document.createElement('li');
			item.textContent = visible(notice);
			list.append(item);
		}
		$('notices').hidden = notices.length === 0;
	}

	fillControls() {
		const { events } = this.profile;
		const weights = eventWeights(this.profile);

		$('event').replaceChildren(...events.map(({ name, unit }, index) => option(index,
			`${visible(String(name))} (${formatCount(weights[index].count, unit)})`)));
		$('event-label').hidden = events.length < 2;
		this.fillLegend();
		this.showState();
	}

	fillThreads() {
		const { event } = this.state;
		const rows = threadWeights(this.profile, event);
		const whole = rows.reduce((sum, { count }) => sum + count, 0);
		const manyProcesses = new Set(rows.map(({ thread }) => thread.pid)).size > 1;

		$('thread').replaceChildren(option(ALL, `all threads (${formatNumber(rows.length)})`),
			...rows.map(({ thread, index, count }) => {
				const process = manyProcesses ? `process ${thread.pid}, ` : '';
				const name = visible(String(thread.name ?? ''));
				return option(index,
					`${name} (${process}${thread.tid}) ${formatShare(count, whole)}`);
			}));
		$('thread').value = String(this.state.thread);
	}

	fillLegend() {
		const kinds = new Set(this.profile.frames.map(({ kind }) => kind));

		$('legend').replaceChildren(...Object.keys(KIND_NAMES).filter((kind) => kinds.has(kind))
			.map((kind) => {
				const item = document.createElement('span');
				item.dataset.kind = kind;
				item.textContent = KIND_NAMES[kind];
				return item;
			}));
	}

	showState() {
		const { state } = this;

		$('event').value = String(state.event);
		this.fillThreads();
		$('direction').value = state.inverted ? 'inverted' : 'top-down';
		$('granularity').value = state.byLine ? 'line' : 'function';
		$('search').value = state.search;
		$('regex').checked = state.regex;
	}

	listen() {
		this.onSelect('event', (value) => ({ event: Number(value) }));
		this.onSelect('thread', (value) => ({ thread: Number(value) }));
		this.onSelect('direction', (value) => ({ inverted: value === 'inverted' }));
		this.onSelect('granularity', (value) => ({ byLine: value === 'line' }));
		$('controls').addEventListener('submit', (event) => event.preventDefault());
		$('search').addEventListener('input', () => {
			clearTimeout(this.searchTimer);
			this.searchTimer = setTimeout(() => this.readSearch(), SEARCH_DELAY_MS);
		});
		$('regex').addEventListener('change', () => this.readSearch());
		$('reset').addEventListener('click', () => this.zoom(this.tree.root));
		$('theme').addEventListener('change', () => this.applyTheme());
		this.darkScheme.addEventListener('change', () => this.applyTheme());
		document.addEventListener('keydown', (event) => this.handleKey(event));
		window.addEventListener('hashchange', () => this.follow());
	}

	onSelect(id, change) {
		$(id).addEventListener('change', () => {
			Object.assign(this.state, change($(id).value), { zoom: 0 });
			if (id === 'event')
				this.fillThreads();
			this.rebuild();
			this.search();
		});
	}

	handleKey(event) {
		const typing = event.target instanceof HTMLInputElement ||
			event.target instanceof HTMLSelectElement;

		if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
			event.preventDefault();
			$('search').select();
		} else if (event.key === 'Escape' && event.target === $('search')) {
			event.preventDefault();
			$('search').value = '';
			this.readSearch();
			$('viewport').focus();
		}
	}

	/* The hash was changed by the reader, not by us. */
	follow() {
		if (location.hash === writeHash(this.state))
			return;
		this.state = this.readState();
		this.showState();
		this.rebuild();
		this.search();
		this.zoom(this.tree?.nodes[this.state.zoom] ?? null);
	}

	remember() {
		const hash = writeHash(this.state);

		history.replaceState(null, '', hash || location.pathname + location.search);
	}

	rebuild() {
		const { profile, state } = this;

		this.tree = null;
		this.hover(null);
		if (!profile.stacks.length) {
			showMessage('This recording holds no samples, so there is nothing to draw.');
			return;
		}
		const tree = buildTree(profile, state);
		if (!tree.root.totalSamples) {
			showMessage('No sample of this event fell on this thread.');
			return;
		}
		this.tree = tree;
		showMessage('');
		this.draw();
		this.explain(null);
		this.remember();
	}

	draw() {
		if (this.view) {
			this.view.show(this.tree);
			return;
		}
		this.view = new FlameGraph($('viewport'), this.tree, this.theme(), {
			onZoom: (node) => this.zoom(node),
			onHover: (node, pointer) => this.hover(node, pointer),
			onCurrent: (node) => this.explain(node),
		});
	}

	zoom(node) {
		if (!node || !this.tree)
			return;
		this.view.zoomTo(node);
		this.state.zoom = node.index;
		this.explain(node === this.tree.root ? null : node);
		this.remember();
	}

	readSearch() {
		clearTimeout(this.searchTimer);
		this.state.search = $('search').value;
		this.state.regex = $('regex').checked;
		this.search();
		this.remember();
	}

	search() {
		const { search, regex } = this.state;
		let matcher = null;
		let problem = '';

		try {
			matcher = makeMatcher(search, regex);
		} catch (error) {
			problem = 'not a regular expression';
		}
		$('search').toggleAttribute('aria-invalid', Boolean(problem));
		$('matched').textContent = problem || (matcher ? this.matchedText(matcher) : '');
		$('matched').title = $('matched').textContent; /* it may be cut */
		if (this.tree && (matcher || this.matcher))
			this.view.search(matcher);
		this.matcher = matcher;
	}

	matchedText(matcher) {
		if (!this.tree)
			return '';
		const { samples, count, frames } = searchTotals(this.profile, this.state, matcher);
		const { root, weightIsSamples } = this.tree;
		if (!frames)
			return 'no match';
		return weightIsSamples ? `matched ${formatShare(samples, root.totalSamples)}` :
			`matched ${formatShare(count, root.total)} (${formatCount(count, this.unit())})`;
	}

	unit() {
		return this.profile.events[this.state.event].unit;
	}

	/* A frame in sentences: what, where, and its weights. */
	lines(node) {
		const { root, weightIsSamples } = this.tree;
		const how = { unit: this.unit(), weightIsSamples };
		const kind = KIND_NAMES[node.kind];
		const lines = [
			['what', visible(node.name)],
			['where', [formatPlace(node), kind].filter(Boolean).join(' \u00b7 ')],
			['total', `total ${formatWeight(node.total, node.totalSamples, root, how)}`],
			['self', `self ${formatWeight(node.self, node.selfSamples, root, how)}`],
		];

		if (this.state.inverted)
			lines.pop();
		if (node.folded)
			lines.push(['note', 'its callers are not unfolded: the inverted tree is too large']);
		return lines.filter(([, text]) => text);
	}

	explain(node) {
		if (!this.tree)
			return;
		$('details').textContent = this.lines(node ?? this.tree.root)
			.map(([, text]) => text).join(' \u2014 ');
	}

	hover(node, pointer) {
		const tooltip = $('tooltip');

		tooltip.hidden = !node || !pointer;
		if (tooltip.hidden)
			return;
		tooltip.replaceChildren(...this.lines(node).map(([className, text]) => {
			const line = document.createElement('div');
			line.className = className;
			line.textContent = text;
			return line;
		}));
		const { offsetWidth, offsetHeight } = tooltip;
		const { innerWidth, innerHeight } = window;
		const left = Math.min(pointer.clientX + 14, innerWidth - offsetWidth - 8);
		const below = pointer.clientY + 18;
		const top = below + offsetHeight + 8 > innerHeight ? pointer.clientY - offsetHeight - 10 : below;
		tooltip.style.left = `${Math.max(left, 4)}px`;
		tooltip.style.top = `${Math.max(top, 4)}px`;
	}

	theme() {
		const chosen = $('theme').value;

		return chosen === 'auto' ? (this.darkScheme.matches ? 'dark' : 'light') : chosen;
	}

	applyTheme() {
		const theme = this.theme();

		document.documentElement.dataset.theme = theme;
		for (const item of $('legend').children) {
			const { kind } = item.dataset;
			item.style.setProperty('--swatch', typeColor(`${kind}:4`, theme, false));
		}
		this.view?.setTheme(theme);
	}
}

function main() {
	if (!window.PATHPROF_DATA) {
		showMessage('This is the empty page that pathprof export --format flamegraph fills with a recording.');
		$('controls').hidden = true;
		return;
	}
	try {
		new Page(loadProfile(window.PATHPROF_DATA)).start();
	} catch (error) {
		showMessage(visible(error.message));
		$('controls').hidden = true;
		console.error(error);
	}
}

main();
