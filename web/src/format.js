// SPDX-License-Identifier: MIT
/* Numbers and names as a reader sees them. No DOM. */

/*
 * Characters that draw nothing, or move the text around them: controls, the bidirectional marks
 * and overrides, other format characters, line separators and lone surrogates.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const NS_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];

/** visible - a foreign name with what could hide or reorder text written as U+XXXX */
export function visible(name) {
	return name.replace(INVISIBLE, (character) =>
		`<U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}>`);
}

function significant(value) {
	return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** formatNumber - 1234567 as "1 234 567" with narrow spaces that do not break */
export function formatNumber(value) {
	return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** formatCount - a count of an event in its unit: ns become the time unit that fits */
export function formatCount(value, unit) {
	if (unit !== 'ns')
		return unit ? `${formatNumber(value)} ${unit}` : formatNumber(value);
	for (const [size, name] of NS_UNITS) {
		if (value >= size)
			return `${significant(value / size)} ${name}`;
	}
	return `${formatNumber(value)} ns`;
}

/** formatShare - part of whole as a percentage */
export function formatShare(part, whole) {
	const percent = whole > 0 ? 100 * part / whole : 0;

	if (percent > 0 && percent < 0.01)
		return '< 0.01 %';
	return `${percent >= 99.995 ? '100' : percent.toFixed(percent >= 10 ? 1 : 2)} %`;
}

/** formatPlace - "file:line", "file", or "" */
export function formatPlace({ file, line }) {
	return file && line ? `${visible(file)}:${line}` : visible(file);
}

/** formatLabel - what stands on a frame: "function", or "function:line" where lines are apart */
export function formatLabel({ name, line }) {
	return line ? `${visible(name)}:${line}` : visible(name);
}

/** formatWeight - "1.23 s (12.3 %), 123 samples" */
export function formatWeight(count, samples, whole, { unit, weightIsSamples }) {
	const amount = `${formatNumber(samples)} ${samples === 1 ? 'sample' : 'samples'}`;

	if (weightIsSamples)
		return `${amount} (${formatShare(samples, whole.totalSamples)})`;
	return `${formatCount(count, unit)} (${formatShare(count, whole.total)}), ${amount}`;
}
