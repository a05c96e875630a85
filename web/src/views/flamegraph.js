// SPDX-License-Identifier: MIT
/*
 * The flame graph: a tree (model.js) on flame-chart-js's canvas.
 *
 *   viewport (scrolls, takes the focus)
 *     canvas (sticky: stays where it is; the chart draws at the scroll position)
 *     spacer (as high as the tree is deep)
 *
 * The library draws, clusters what is narrower than a pixel, and finds what is under the mouse.
 * The tree is laid out already, so its own flattening, which recurses, is replaced. The wheel
 * scrolls the page's way; with Ctrl it zooms the library's way.
 */
import { FlameChartContainer, FlameChartPlugin } from 'flame-chart-js';
import { formatLabel } from '../format.js';
import { MATCH, frameType, palette, typeColor } from '../palette.js';

const ROW = 20; /* a frame and the pixel below it */
const BASELINE = 5; /* of a name above its frame's lower edge: centres 12 px letters in the row */
const FONT = '12px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif';

/* A function of a node, computed once for all nodes of a group. */
function byGroup(compute) {
	const known = new Map();

	return (node) => {
		if (!known.has(node.group))
			known.set(node.group, compute(node));
		return known.get(node.group);
	};
}

function chartNode(node, name, type) {
	return {
		source: { name, start: node.start, duration: node.duration, type, node },
		end: node.start + node.duration, parent: null, level: node.depth, index: node.index,
	};
}

class Plugin extends FlameChartPlugin {
	constructor(tree, view) {
		super({ data: [], name: 'flamegraph' });
		this.view = view;
		this.load(tree);
	}

	load(tree) {
		const name = byGroup(formatLabel);
		const type = byGroup((node) => this.view.typeOf(node));

		this.flatTree = tree.nodes.map((node) => chartNode(node, name(node), type(node)));
		this.calcMinMax();
	}

	/* The tree comes through load(); the library's own path has nothing to add. */
	parseData() {
		this.min = 0;
		this.max = 0;
	}

	getColor(type) {
		return typeColor(type, this.view.theme, this.view.matcher !== null);
	}

	handleSelect(region) {
		const found = this.findNodeInCluster(region);

		if (found)
			this.view.onZoom(found.data.source.node);
	}

	handleHover(region) {
		super.handleHover(region);
		this.view.onHover(this.hoveredRegion ? this.hoveredRegion.data.source.node : null);
	}

	handlePositionChange({ deltaX, deltaY }) {
		this.interactionsEngine.setCursor('grabbing');
		this.view.viewport.scrollTop += deltaY;
		this.renderEngine.tryToChangePosition(deltaX);
		this.renderEngine.parent.render();
	}

	/* The tooltip is the page's. */
	renderTooltip() {
		return true;
	}

	/* On the canvas that is seen, over the frames, so that hovering redraws nothing else. */
	postRender() {
		const { hover, focus } = palette(this.view.theme);

		if (this.hoveredRegion)
			this.outline(this.hoveredRegion.data.source.node, hover, 1);
		if (this.view.current)
			this.outline(this.view.current, focus, 2);
	}

	outline(node, color, width) {
		const { ctx } = this.renderEngine.parent;
		const { x, y, w } = this.calcRect(node.start, node.duration, node.depth);
		const left = Math.max(x, 0);
		const right = Math.min(x + Math.max(w, 2), this.renderEngine.width);

		if (right <= left)
			return;
		ctx.save();
		ctx.setLineDash([]);
		ctx.strokeStyle = color;
		ctx.lineWidth = width;
		ctx.strokeRect(left + width / 2, y + width / 2, Math.max(right - left - width, 1),
			       ROW - 1 - width);
		ctx.restore();
	}
}

export class FlameGraph {
	/**
	 * @viewport: the element to live in; it gets its children from here
	 * @callbacks: { onZoom(node), onHover(node or null, event), onCurrent(node) }
	 */
	constructor(viewport, tree, theme, callbacks) {
		this.viewport = viewport;
		this.callbacks = callbacks;
		this.theme = theme;
		this.matcher = null;
		this.current = null;
		this.zoomed = tree.root;
		this.tree = tree;
		this.canvas = document.createElement('canvas');
		this.spacer = document.createElement('div');
		viewport.replaceChildren(this.canvas, this.spacer);
		this.measure();
		this.canvas.width = this.width;
		this.canvas.height = this.height;
		this.plugin = new Plugin(tree, this);
		this.chart = new FlameChartContainer({
			canvas: this.canvas, plugins: [this.plugin], settings: this.settings(),
		});
		this.placeNames();
		this.recluster();
		this.listen();
	}

	settings() {
		const { background, text } = palette(this.theme);

		return { styles: {
			timeGrid: { color: 'rgba(0, 0, 0, 0)' },
			main: { blockHeight: ROW - 1, font: FONT, backgroundColor: background, fontColor: text },
		} };
	}

	/* The library would centre a line with all its descenders, and letters would sit too low. */
	placeNames() {
		this.plugin.renderEngine.blockPaddingTopBottom = BASELINE;
	}

	measure() {
		this.width = Math.max(this.viewport.clientWidth, 1);
		this.height = Math.max(this.viewport.clientHeight, 1);
		this.spacer.style.height = `${Math.max(this.tree.depth * ROW + 2 - this.height, 0)}px`;
	}

	listen() {
		this.viewport.addEventListener('scroll', () => {
			this.plugin.setPositionY(this.viewport.scrollTop);
			this.plugin.handleHover(null);
			this.chart.render();
		});
		this.viewport.addEventListener('wheel', (event) => {
			if (!event.ctrlKey && !event.metaKey)
				event.stopPropagation();
		}, { capture: true, passive: true });
		this.viewport.addEventListener('keydown', (event) => this.handleKey(event));
		this.canvas.addEventListener('mousemove', (event) => {
			this.pointer = event;
		}, { capture: true });
		this.canvas.addEventListener('mouseleave', () => this.onHover(null));
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(this.viewport);
	}

	resize() {
		const { width, height } = this;

		this.measure();
		if (width === this.width && height === this.height)
			return;
		this.chart.renderEngine.resize(this.width, this.height);
		this.zoomTo(this.zoomed);
	}

	onZoom(node) {
		this.callbacks.onZoom(node);
	}

	onHover(node) {
		this.callbacks.onHover(node, this.pointer);
	}

	/** show - another tree; the zoom is reset */
	show(tree) {
		this.tree = tree;
		this.current = null;
		this.zoomed = tree.root;
		this.plugin.reset();
		this.plugin.hoveredRegion = null;
		this.plugin.load(tree);
		this.measure();
		this.viewport.scrollTop = 0;
		this.chart.renderEngine.calcMinMax();
		this.recluster();
		this.zoomTo(tree.root);
	}

	/* At the zoom that shows everything: from these clusters every other zoom's are made. */
	recluster() {
		this.chart.renderEngine.resetView();
		this.plugin.initData();
	}

	/* Types carry the search: the library clusters neighbours of one type only. */
	typeOf(node) {
		return node.parent && this.matcher?.(node) ? MATCH : frameType(node);
	}

	/** search - highlight what the matcher accepts; null: nothing */
	search(matcher) {
		const type = byGroup((node) => this.typeOf(node));

		this.matcher = matcher;
		for (const { source } of this.plugin.flatTree)
			source.type = type(source.node);
		this.recluster();
		this.zoomTo(this.zoomed);
	}

	/** zoomTo - a node takes the whole width, its callers stay above it; not one without width */
	zoomTo(node) {
		if (!(node.duration > 0))
			return;
		this.zoomed = node;
		this.chart.setZoom(node.start, node.start + node.duration);
		this.reveal(node);
	}

	setTheme(theme) {
		this.theme = theme;
		this.chart.setSettings(this.settings());
		this.placeNames();
	}

	/* Scroll so that a node's row is seen. */
	reveal(node) {
		const top = node.depth * ROW;

		if (top < this.viewport.scrollTop)
			this.viewport.scrollTop = Math.max(top - ROW, 0);
		else if (top + ROW > this.viewport.scrollTop + this.height)
			this.viewport.scrollTop = top + 2 * ROW - this.height;
	}

	/** setCurrent - the frame the keyboard is on; null: none */
	setCurrent(node) {
		this.current = node;
		if (node) {
			if (!this.isWithin(node))
				this.onZoom(node);
			this.reveal(node);
		}
		this.chart.render();
		this.callbacks.onCurrent(node);
	}

	isWithin(node) {
		const { zoomed } = this;

		return node.start < zoomed.start + zoomed.duration &&
			node.start + node.duration > zoomed.start;
	}

	/* The frame beside one on its level, over gaps, or null. Levels are runs of tree.nodes. */
	beside(node, step) {
		const other = this.tree.nodes[node.index + step];

		return other && other.depth === node.depth ? other : null;
	}

	target(key) {
		const from = this.current ?? this.zoomed;

		if (!this.current)
			return from;
		switch (key) {
		case 'ArrowDown': return from.children[0] ?? null;
		case 'ArrowUp': return from.parent;
		case 'ArrowLeft': return this.beside(from, -1);
		case 'ArrowRight': return this.beside(from, 1);
		default: return this.tree.root;
		}
	}

	handleKey(event) {
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (['ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'Home'].includes(event.key)) {
			const node = this.target(event.key);
			if (node)
				this.setCurrent(node);
		} else if (event.key === 'Enter' || event.key === ' ') {
			if (this.current)
				this.onZoom(this.current);
		} else if (event.key === 'Escape') {
			this.onZoom(this.tree.root);
		} else {
			return;
		}
		event.preventDefault();
	}
}
