// SPDX-License-Identifier: MIT
/*
 * Colours of frames: a hue per kind, a shade per function. A node's type for the chart is
 * "kind:shade", or MATCH; the theme's colour is looked up when it is drawn, so a change of theme
 * rebuilds nothing.
 */
export const MATCH = 'match';
export const SHADES = 8;

/* Hue, how far shades spread around it, saturation. */
const KINDS = {
	python: { hue: 44, spread: 26, saturation: 82 },
	native: { hue: 202, spread: 26, saturation: 58 },
	kernel: { hue: 14, spread: 12, saturation: 74 },
	marker: { hue: 220, spread: 10, saturation: 10 },
	root: { hue: 220, spread: 0, saturation: 12 },
};

const THEMES = {
	light: {
		lightness: 74, lightnessSpread: 10, match: '#c45cf0',
		background: '#ffffff', text: '#15181e', focus: '#0b57d0', hover: '#15181e',
	},
	dark: {
		lightness: 24, lightnessSpread: 6, match: '#9a35c8',
		background: '#16191f', text: '#f2f4f8', focus: '#8ab4f8', hover: '#f2f4f8',
	},
};

/** frameType - the type of a node's colour; the same function has the same everywhere */
export function frameType({ kind, name, file }) {
	let hash = 2166136261;

	for (let at = 0; at < name.length; at++)
		hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
	for (let at = 0; at < file.length; at++)
		hash = Math.imul(hash ^ file.charCodeAt(at), 16777619);
	hash ^= hash >>> 15;
	return `${Object.hasOwn(KINDS, kind) ? kind : 'marker'}:${(hash >>> 0) % SHADES}`;
}

/** palette - the colours of a theme ("light" or "dark") */
export function palette(theme) {
	return THEMES[theme];
}

/** typeColor - the colour of a type; dimmed: a search is on and this does not match */
export function typeColor(type, theme, dimmed) {
	const { lightness, lightnessSpread, match } = THEMES[theme];

	if (type === MATCH)
		return match;
	const [kind, shade] = type.split(':');
	const { hue, spread, saturation } = KINDS[kind];
	const at = Number(shade) / (SHADES - 1) - 0.5;
	return `hsl(${Math.round(hue + at * spread)} ${dimmed ? saturation / 4 : saturation}% ` +
		`${(lightness + lightnessSpread * (Number(shade) % 3 / 2 - 0.5)).toFixed(1)}%)`;
}
