// SPDX-License-Identifier: MIT
/*
 * What the reader selected, and its spelling in the URL's hash, so that a view can be linked to:
 * #event=0&thread=2&inverted=1&line=1&search=parse&regex=1&zoom=17. What is at its default is left
 * out. zoom is a node's index in the tree that the rest selects. No DOM.
 */
import { ALL } from './model.js';

export const DEFAULTS = Object.freeze({
	event: 0, thread: ALL, inverted: false, byLine: false, search: '', regex: false, zoom: 0,
});

function index(text, length) {
	return /^\d{1,9}$/.test(text ?? '') && Number(text) < length ? Number(text) : null;
}

/** readHash - a state from a hash; what is unknown or out of range takes its default */
export function readHash(hash, { events, threads }) {
	const fields = new URLSearchParams(hash.replace(/^#/, ''));

	return {
		event: index(fields.get('event'), events) ?? DEFAULTS.event,
		thread: index(fields.get('thread'), threads) ?? DEFAULTS.thread,
		inverted: fields.get('inverted') === '1',
		byLine: fields.get('line') === '1',
		search: fields.get('search') ?? '',
		regex: fields.get('regex') === '1',
		zoom: index(fields.get('zoom'), Infinity) ?? DEFAULTS.zoom,
	};
}

/** writeHash - the inverse; "" where everything is at its default */
export function writeHash(state) {
	const fields = new URLSearchParams();

	if (state.event !== DEFAULTS.event)
		fields.set('event', state.event);
	if (state.thread !== DEFAULTS.thread)
		fields.set('thread', state.thread);
	if (state.inverted)
		fields.set('inverted', '1');
	if (state.byLine)
		fields.set('line', '1');
	if (state.search)
		fields.set('search', state.search);
	if (state.search && state.regex)
		fields.set('regex', '1');
	if (state.zoom)
		fields.set('zoom', state.zoom);
	return fields.toString() ? `#${fields}` : '';
}
