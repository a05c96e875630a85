// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';
import { formatCount, formatLabel, formatPlace, formatShare, formatWeight, visible } from '../src/format.js';
import { MATCH, SHADES, frameType, palette, typeColor } from '../src/palette.js';
import { DEFAULTS, readHash, writeHash } from '../src/state.js';

const LIMITS = { events: 2, threads: 3 };

test('visible: what hides or reorders text is spelled out', () => {
	assert.equal(visible('a\u202eb\u0000\n'), 'a<U+202E>b<U+0000><U+000A>');
	assert.equal(visible('\ud800'), '<U+D800>');
	assert.equal(visible('<b>שלום é 😀'), '<b>שלום é 😀');
});

test('formatCount: time in the unit that fits, counts in theirs', () => {
	assert.equal(formatCount(1_234_000_000, 'ns'), '1.23 s');
	assert.equal(formatCount(45_600_000, 'ns'), '45.6 ms');
	assert.equal(formatCount(999, 'ns'), '999 ns');
	assert.equal(formatCount(1_234_567, 'events'), '1\u202f234\u202f567 events');
});

test('formatShare: small is not nothing, nearly all is not all', () => {
	assert.equal(formatShare(1, 1_000_000), '< 0.01 %');
	assert.equal(formatShare(0, 10), '0.00 %');
	assert.equal(formatShare(0, 0), '0.00 %');
	assert.equal(formatShare(1, 8), '12.5 %');
	assert.equal(formatShare(10, 10), '100 %');
});

test('formatWeight, formatPlace, formatLabel: whole phrases', () => {
	const whole = { total: 4_000_000, totalSamples: 4 };

	assert.equal(formatWeight(1_000_000, 1, whole, { unit: 'ns', weightIsSamples: false }),
		'1.00 ms (25.0 %), 1 sample');
	assert.equal(formatWeight(0, 2, whole, { unit: 'ns', weightIsSamples: true }),
		'2 samples (50.0 %)');
	assert.equal(formatPlace({ file: 'a.py', line: 3 }), 'a.py:3');
	assert.equal(formatPlace({ file: 'a.py', line: 0 }), 'a.py');
	assert.equal(formatPlace({ file: '', line: 0 }), '');
	assert.equal(formatLabel({ name: 'parse', file: 'a.py', line: 3 }), 'parse:3');
	assert.equal(formatLabel({ name: 'parse', file: 'a.py', line: 0 }), 'parse');
	assert.equal(formatLabel({ name: 'a\u202e', file: '', line: 3 }), 'a<U+202E>:3');
});

test('state: a hash and back', () => {
	const state = { event: 1, thread: 2, inverted: true, byLine: true, search: 'a&b=#c', regex: true,
			zoom: 17 };

	assert.deepEqual(readHash(writeHash(state), LIMITS), state);
	assert.equal(writeHash({ ...DEFAULTS }), '');
	assert.deepEqual(readHash('', LIMITS), { ...DEFAULTS });
});

test('state: a hash from elsewhere falls back to defaults', () => {
	assert.deepEqual(readHash('#event=2&thread=-1&zoom=1e9&inverted=yes&nonsense', LIMITS),
		{ ...DEFAULTS });
});

test('palette: every kind has a colour, an unknown one too', () => {
	for (const kind of ['python', 'native', 'kernel', 'marker', 'root', 'toString']) {
		const type = frameType({ kind, name: 'f', file: 'a.py' });
		for (const theme of ['light', 'dark']) {
			assert.match(typeColor(type, theme, false), /^hsl\(\d+ [\d.]+% [\d.]+%\)$/);
			assert.notEqual(typeColor(type, theme, true), typeColor(type, theme, false));
		}
	}
});

function channels(color) {
	const hex = /^#(..)(..)(..)$/.exec(color);

	if (hex)
		return hex.slice(1).map((part) => parseInt(part, 16) / 255);
	const [hue, saturation, lightness] = color.match(/[\d.]+/g).map(Number);
	const spread = saturation / 100 * Math.min(lightness / 100, 1 - lightness / 100);
	return [0, 8, 4].map((offset) => {
		const at = (offset + hue / 30) % 12;
		return lightness / 100 - spread * Math.max(-1, Math.min(at - 3, 9 - at, 1));
	});
}

function luminance(color) {
	const [red, green, blue] = channels(color).map((part) =>
		part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);

	return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test('palette: names can be read on every colour (contrast of 4.5 and more)', () => {
	const types = [MATCH];

	for (const kind of ['python', 'native', 'kernel', 'marker', 'root'])
		types.push(...Array.from({ length: SHADES }, (_, shade) => `${kind}:${shade}`));
	for (const theme of ['light', 'dark']) {
		for (const type of types) {
			for (const dimmed of [false, true]) {
				const [light, dark] = [palette(theme).text, typeColor(type, theme, dimmed)]
					.map(luminance).sort((a, b) => b - a);
				const contrast = (light + 0.05) / (dark + 0.05);
				assert.ok(contrast >= 4.5, `${theme} ${type}: ${contrast.toFixed(2)}`);
			}
		}
	}
});
