// SPDX-License-Identifier: MIT
/*
 * The built page in headless Chromium, as a reader uses it: file://, mouse, keyboard, no network.
 *
 * FLAMEGRAPH_HTML: the built page; CHROMIUM: the browser; SCREENSHOTS: a folder to keep pictures
 * in. Skips, with the reason, where the browser or the driver is missing.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deep, hostile, large, profile, small } from './fixtures.js';

const PLACEHOLDER = '/*PATHPROF_DATA*/null';
const ROW = 20;
const VIEW = { width: 1280, height: 800 };
const web = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const modules = resolve(process.env.WEB_NODE_MODULES ?? join(web, 'node_modules'));
const built = process.env.FLAMEGRAPH_HTML ?? join(web, 'dist/flamegraph.html');
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const missing = [executablePath, built, join(modules, 'playwright-core')]
	.find((path) => !existsSync(path));
const skip = missing ? `${missing} is missing` : false;

let folder, context;

before(async () => {
	if (skip)
		return;
	const { chromium } = createRequire(join(modules, 'package.json'))('playwright-core');
	folder = mkdtempSync(join(tmpdir(), 'pathprof-web-'));
	context = await chromium.launchPersistentContext(join(folder, 'user-data'), {
		executablePath, headless: true, viewport: VIEW,
		args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
			'--disable-background-networking', '--disable-component-update', '--disable-sync'],
	});
});

after(async () => {
	await context?.close();
	if (folder)
		rmSync(folder, { recursive: true, force: true });
});

/* As the exporter does: JSON that cannot end the script it stands in. */
function writePage(name, data) {
	const path = join(folder, `${name}.html`);
	const json = data === null ? PLACEHOLDER : JSON.stringify(data).replaceAll('<', '\\u003c');

	writeFileSync(path, readFileSync(built, 'utf8').replace(PLACEHOLDER, () => json));
	return pathToFileURL(path).href;
}

/* Opens a page with data; afterwards nothing may have been fetched or complained about. */
async function withPage(t, name, data, use, { address = '', complains = false } = {}) {
	const page = await context.newPage();
	const complaints = [], fetched = [];
	const url = writePage(name, data);

	t.after(() => page.close());
	page.on('console', (message) => {
		if (message.type() === 'error')
			complaints.push(message.text());
	});
	page.on('pageerror', (error) => complaints.push(error.message));
	page.on('request', (request) => fetched.push(request.url()));
	await page.addInitScript(() => {
		document.addEventListener('DOMContentLoaded', () => requestAnimationFrame(() =>
			requestAnimationFrame(() => { window.firstFrameMs = performance.now(); })));
	});
	await page.goto(url + address);
	await page.waitForFunction(() => window.firstFrameMs);
	await use(page);
	assert.deepEqual(fetched.filter((one) => !one.startsWith(url) && !one.startsWith('data:')), []);
	if (!complains)
		assert.deepEqual(complaints, []);
}

/* Not page.url(), which follows the page's own changes late. */
const hash = (page) => page.evaluate(() => location.hash);
const details = (page) => page.textContent('#details');

function at(x, row) {
	return { position: { x, y: row * ROW + ROW / 2 } };
}

/* Redraws are awaited: the chart draws in the next animation frame. */
function drawn(page) {
	return page.evaluate(() => new Promise((done) =>
		requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)))));
}

function pixel(page, x, y) {
	return page.evaluate(([px, py]) => Array.from(document.querySelector('#viewport canvas')
		.getContext('2d').getImageData(px, py, 1, 1).data.slice(0, 3)), [x, y]);
}

async function picture(page, name) {
	if (!process.env.SCREENSHOTS)
		return;
	mkdirSync(process.env.SCREENSHOTS, { recursive: true });
	await drawn(page);
	await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
}

function brightness(color) {
	return color.reduce((sum, part) => sum + part, 0) / 3;
}

test('the built page holds one placeholder and no address', { skip }, () => {
	const page = readFileSync(built, 'utf8');

	assert.equal(page.split(PLACEHOLDER).length, 2);
	assert.doesNotMatch(page.replace(/<!--[^]*?-->/, ''), /\b(https?|wss?):\/\//);
	assert.doesNotMatch(page, /\b(src|href)="(?!data:)/);
});

test('zooms with Ctrl and the wheel, moves by dragging', { skip }, (t) =>
	withPage(t, 'wheel', small(), async (page) => {
		await drawn(page);
		const shade = await pixel(page, 1000, ROW + 3);
		const box = await page.locator('#viewport canvas').boundingBox();
		await page.mouse.move(box.x + 100, box.y + ROW + 5);
		await page.keyboard.down('Control');
		await page.mouse.wheel(0, -500);
		await page.keyboard.up('Control');
		await drawn(page);
		assert.notDeepEqual(await pixel(page, 1000, ROW + 3), shade, 'main is wider');
		await page.mouse.move(box.x + 1000, box.y + ROW + 5);
		await page.mouse.down();
		await page.mouse.move(box.x + 100, box.y + ROW + 5, { steps: 4 });
		await page.mouse.up();
		await drawn(page);
		assert.deepEqual(await pixel(page, 1000, ROW + 3), shade, 'worker came into view');
		await page.click('#reset');
		await drawn(page);
		assert.deepEqual(await pixel(page, 920, ROW + 3), await pixel(page, 100, ROW + 3));
	}));

test('shows the recording, the notices first, and the whole', { skip }, (t) =>
	withPage(t, 'small', small(), async (page) => {
		assert.equal(await page.title(), 'test - pathprof');
		assert.match(await page.textContent('#recording'),
			/python3 app\.py --rounds 3.*CPython 3\.11.*testbox.*cpu-timer.*2\.50 s/);
		assert.match(await page.textContent('#notices li'), /12 samples were lost/);
		const top = async (selector) => (await page.locator(selector).boundingBox()).y;
		assert.ok(await top('#notices') < await top('#viewport'));
		assert.match(await details(page), /^all — total 100 ms \(100 %\), 100 samples/);
		await picture(page, 'small-light');
	}));

test('zooms by click, resets, and keeps the zoom in the address', { skip }, (t) =>
	withPage(t, 'zoom', small(), async (page) => {
		await drawn(page);
		await page.locator('#viewport canvas').click(at(1100, 1));
		assert.match(await details(page), /^worker — app\.py · Python — total 25\.0 ms \(25\.0 %\)/);
		assert.match(await hash(page), /^#zoom=2$/);
		await drawn(page);
		await page.locator('#viewport canvas').click(at(20, 2));
		assert.match(await details(page), /^read /, 'the zoomed frame took the whole width');
		await page.click('#reset');
		assert.match(await details(page), /^all /);
		assert.equal(await hash(page), '');
	}));

test('tells of a frame under the mouse', { skip }, (t) =>
	withPage(t, 'tooltip', small(), async (page) => {
		await drawn(page);
		assert.ok(await page.isHidden('#tooltip'));
		await page.locator('#viewport canvas').hover(at(100, 2));
		await page.waitForSelector('#tooltip:not([hidden])');
		const text = await page.locator('#tooltip div').allTextContents();
		assert.deepEqual(text, ['parse', 'app.py · Python', 'total 40.0 ms (40.0 %), 40 samples',
			'self 0 ns (0.00 %), 0 samples']);
		await page.mouse.move(2, 2);
		await page.waitForSelector('#tooltip', { state: 'hidden' });
	}));

test('searches, marks what matches and says how much', { skip }, (t) =>
	withPage(t, 'search', small(), async (page) => {
		await drawn(page);
		const before = await pixel(page, 900, 2 * ROW + 3);
		await page.keyboard.press('/');
		await page.keyboard.type('rend');
		await page.waitForFunction(() => document.getElementById('matched').textContent);
		assert.equal(await page.textContent('#matched'), 'matched 35.0 % (35.0 ms)');
		await drawn(page);
		assert.notDeepEqual(await pixel(page, 900, 2 * ROW + 3), before);
		assert.match(await hash(page), /^#search=rend$/);
		await page.check('#regex');
		await page.fill('#search', '^(parse|c:m)');
		await page.waitForFunction(() => /55/.test(document.getElementById('matched').textContent));
		await page.fill('#search', '(');
		await page.waitForFunction(() =>
			document.getElementById('matched').textContent === 'not a regular expression');
		await page.locator('#search').press('Escape');
		assert.equal(await page.textContent('#matched'), '');
		await drawn(page);
		assert.deepEqual(await pixel(page, 900, 2 * ROW + 3), before);
	}));

test('no control moves when it is said what matched', { skip }, (t) =>
	withPage(t, 'still', small(), async (page) => {
		for (const width of [1500, 1300, 900, 500]) {
			const places = () => page.evaluate(() =>
				['reset', 'regex', 'viewport'].map((id) => {
					const { left, top } = document.getElementById(id).getBoundingClientRect();
					return [id, left, top];
				}));
			await page.setViewportSize({ ...VIEW, width });
			await drawn(page);
			const before = await places();
			if (width >= 900)
				assert.ok(Math.abs(before[0][2] - before[1][2]) < 20, 'reset is in the row of regex');
			await page.check('#regex');
			for (const [text, said] of [['rend', /^matched/], ['(', /^not a reg/], ['', /^$/]]) {
				await page.fill('#search', text);
				await page.waitForFunction((expected) =>
					new RegExp(expected).test(document.getElementById('matched').textContent),
				said.source);
				await picture(page, `still-${width}-${text ? said.source.slice(1, 4) : 'none'}`);
				assert.deepEqual(await places(), before, `${width}: ${text}`);
			}
			await page.uncheck('#regex');
		}
	}));

test('by line, a frame is labelled with its line', { skip }, (t) =>
	withPage(t, 'labels', small(), async (page) => {
		const labels = (granularity) => page.evaluate(async (value) => {
			const { prototype } = CanvasRenderingContext2D;
			const { fillText } = prototype;
			const written = new Set();
			prototype.fillText = function (text, ...rest) {
				written.add(text);
				return fillText.call(this, text, ...rest);
			};
			const select = document.getElementById('granularity');
			select.value = value;
			select.dispatchEvent(new Event('change'));
			await new Promise((done) => requestAnimationFrame(() =>
				requestAnimationFrame(() => setTimeout(done, 30))));
			prototype.fillText = fillText;
			return [...written];
		}, granularity);
		const byLine = await labels('line');
		for (const label of ['all', 'main:1', 'parse:10', 'render:30', 'c:memcpy'])
			assert.ok(byLine.includes(label), `${label} of ${byLine}`);
		await picture(page, 'labels');
		const byFunction = await labels('function');
		assert.ok(byFunction.includes('parse') && !byFunction.some((label) => /:\d/.test(label)),
			byFunction.join());
	}));

test('inverts, keeps lines apart, selects a thread and an event', { skip }, (t) =>
	withPage(t, 'select', small(), async (page) => {
		await page.selectOption('#direction', 'inverted');
		await page.focus('#viewport');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('ArrowDown');
		assert.match(await details(page), /^read — app\.py · Python — total 65\.0 ms/);
		await page.keyboard.press('ArrowDown');
		assert.match(await details(page), /^parse — app\.py · Python — total 40\.0 ms/);
		await page.selectOption('#granularity', 'line');
		await page.focus('#viewport');
		for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown'])
			await page.keyboard.press(key);
		assert.match(await details(page), /^parse — app\.py:10 · Python — total 30\.0 ms/);
		await page.selectOption('#thread', { label: 'pool-1 (11) 25.0 %' });
		assert.match(await details(page), /^all — total 25\.0 ms/);
		await page.selectOption('#event', '1');
		assert.match(await details(page), /^all — total 4\u202f000 events \(100 %\), 4 samples/);
		await page.selectOption('#thread', '0');
		assert.equal(await page.textContent('#message'), 'No sample of this event fell on this thread.');
		await page.selectOption('#thread', '-1');
		assert.ok(await page.isVisible('#viewport'));
		assert.match(await hash(page), /event=1&inverted=1&line=1$/);
	}));

test('opens as the address says', { skip }, (t) =>
	withPage(t, 'address', small(), async (page) => {
		assert.equal(await page.inputValue('#thread'), '1');
		assert.equal(await page.inputValue('#direction'), 'inverted');
		assert.match(await details(page), /^worker /);
		assert.match(await page.textContent('#matched'), /^matched 100 %/);
		await page.evaluate(() => { location.hash = '#search=parse'; });
		await page.waitForFunction(() => /40/.test(document.getElementById('matched').textContent));
		assert.equal(await page.inputValue('#thread'), '-1');
	}, { address: '#thread=1&inverted=1&search=read&zoom=2' }));

test('is walked with the keyboard', { skip }, (t) =>
	withPage(t, 'keyboard', small(), async (page) => {
		await page.focus('#viewport');
		const walk = [['ArrowDown', /^all /], ['ArrowDown', /^main /], ['ArrowRight', /^worker /],
			['ArrowRight', /^worker /], ['ArrowLeft', /^main /], ['ArrowDown', /^parse /],
			['ArrowRight', /^render /], ['ArrowUp', /^main /], ['Home', /^all /]];
		for (const [key, expected] of walk) {
			await page.keyboard.press(key);
			assert.match(await details(page), expected, key);
		}
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('ArrowRight');
		await page.keyboard.press('Enter');
		assert.match(await hash(page), /zoom=2$/);
		await page.keyboard.press('ArrowLeft');
		assert.match(await hash(page), /zoom=1$/, 'a frame outside the zoom is zoomed to');
		await page.keyboard.press('Escape');
		assert.doesNotMatch(await hash(page), /zoom/);
		const focusable = await page.evaluate(() => {
			const viewport = document.getElementById('viewport');
			return [viewport.tabIndex, viewport.getAttribute('aria-label'),
				document.getElementById('details').getAttribute('aria-live')];
		});
		assert.deepEqual(focusable, [0, 'Flame graph', 'polite']);
	}));

test('is light or dark as the system, or as chosen', { skip }, (t) =>
	withPage(t, 'theme', small(), async (page) => {
		const corner = async () => {
			await drawn(page);
			const ground = await page.evaluate(() =>
				getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
			return [brightness(await pixel(page, 1, 7 * ROW)) > 127, brightness(ground) > 127];
		};
		assert.deepEqual(await corner(), [true, true]);
		await page.emulateMedia({ colorScheme: 'dark' });
		assert.deepEqual(await corner(), [false, false]);
		await picture(page, 'small-dark');
		await page.selectOption('#theme', 'light');
		assert.deepEqual(await corner(), [true, true]);
		await page.emulateMedia({ colorScheme: 'light' });
		await page.selectOption('#theme', 'dark');
		assert.deepEqual(await corner(), [false, false]);
	}));

test('names from the program stay text', { skip }, (t) =>
	withPage(t, 'hostile', hostile(), async (page) => {
		await page.focus('#viewport');
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('ArrowDown');
		assert.match(await details(page), /<\/script><img src=x onerror=/);
		await page.keyboard.press('ArrowDown');
		assert.match(await details(page), /ab<U\+202E>cod<U\+2066>\.py<U\+0000>/);
		await drawn(page);
		await page.locator('#viewport canvas').hover(at(300, 1));
		await page.waitForSelector('#tooltip:not([hidden])');
		assert.equal(await page.evaluate(() => window.pwned), undefined);
		assert.equal(await page.locator('img').count(), 0);
		assert.doesNotMatch(await page.innerText('body'), /[\u202a-\u202e\u2066-\u2069]/);
		await picture(page, 'hostile');
	}));

test('an empty recording and an empty page say so', { skip }, async (t) => {
	await withPage(t, 'empty', profile({}), async (page) => {
		assert.match(await page.textContent('#message'), /holds no samples/);
		assert.ok(await page.isHidden('#viewport'));
		await page.selectOption('#direction', 'inverted');
		await page.fill('#search', 'x');
	});
	await withPage(t, 'template', null, async (page) =>
		assert.match(await page.textContent('#message'), /empty page that pathprof export/));
	await withPage(t, 'damaged', profile({ version: 9 }), async (page) =>
		assert.match(await page.textContent('#message'), /version is 9/), { complains: true });
});

test('a recursion 1000 deep scrolls to its end', { skip }, (t) =>
	withPage(t, 'deep', deep(1000), async (page) => {
		await drawn(page);
		await page.focus('#viewport');
		await page.evaluate(() => {
			const viewport = document.getElementById('viewport');
			for (let step = 0; step < 1001; step++)
				viewport.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }));
		});
		assert.match(await details(page), /^odd .* self 3\.00 ms \(75\.0 %\)/);
		await drawn(page);
		const [scrolled, height] = await page.evaluate(() => {
			const viewport = document.getElementById('viewport');
			return [viewport.scrollTop, viewport.clientHeight];
		});
		assert.ok(scrolled > 1000 * ROW - height, `${scrolled}`);
		assert.notDeepEqual(await pixel(page, 100, 1000 * ROW - Math.round(scrolled) + 4),
			[255, 255, 255], 'the innermost frame is drawn');
		await page.evaluate(() => { document.getElementById('viewport').scrollTop = 0; });
		await drawn(page);
		await page.locator('#viewport canvas').hover(at(100, 5));
		await page.mouse.wheel(0, 400);
		await page.waitForFunction(() => document.getElementById('viewport').scrollTop > 0);
		await page.waitForSelector('#tooltip', { state: 'hidden' });
		await picture(page, 'deep');
	}));

test('a recursion 20000 deep is drawn in both orders', { skip }, (t) =>
	withPage(t, 'deeper', deep(20_000), async (page) => {
		for (const order of ['top-down', 'inverted']) {
			await page.selectOption('#direction', order);
			await drawn(page);
			const [height, scrolled] = await page.evaluate(() => {
				const viewport = document.getElementById('viewport');
				viewport.scrollTop = 1e9;
				return [viewport.scrollHeight, viewport.scrollTop];
			});
			assert.ok(height > 20_000 * ROW, order);
			await drawn(page);
			const y = 20_000 * ROW - Math.round(scrolled) + 4;
			assert.notDeepEqual(await pixel(page, 100, y), [255, 255, 255], order);
		}
	}));

/* How long until the next drawn frame after an action in the page. */
function timed(page, action, argument) {
	return page.evaluate(async ([source, value]) => {
		const start = performance.now();
		new Function('value', source)(value);
		await new Promise((done) =>
			requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
		return performance.now() - start;
	}, [action, argument]);
}

const PRESS = `document.getElementById('viewport')
	.dispatchEvent(new KeyboardEvent('keydown', { key: value }));`;
const CHOOSE = `const [id, chosen] = value; const element = document.getElementById(id);
	element.value = chosen; element.dispatchEvent(new Event('change'));`;

test('100000 frames: everything works; the times are printed', { skip }, (t) =>
	withPage(t, 'large', large(100_000, 60, 20_000), async (page) => {
		const ms = { 'first frame': await page.evaluate(() => window.firstFrameMs) };
		await picture(page, 'large-light');
		await page.emulateMedia({ colorScheme: 'dark' });
		await picture(page, 'large-dark');
		await timed(page, PRESS, 'ArrowDown');
		await timed(page, PRESS, 'ArrowDown');
		await timed(page, PRESS, 'ArrowDown');
		ms.zoom = await timed(page, PRESS, 'Enter');
		assert.match(await hash(page), /zoom=2$/);
		await picture(page, 'large-zoomed-dark');
		ms.reset = await timed(page, PRESS, 'Escape');
		ms.search = await timed(page, `document.getElementById('search').value = value;
			document.getElementById('regex').dispatchEvent(new Event('change'));`, 'parse_');
		assert.match(await page.textContent('#matched'), /^matched \d/);
		await picture(page, 'large-search-dark');
		await page.emulateMedia({ colorScheme: 'light' });
		await picture(page, 'large-search-light');
		await page.fill('#search', '');
		await page.waitForFunction(() => !document.getElementById('matched').textContent);
		ms.thread = await timed(page, CHOOSE, ['thread', '1']);
		ms.lines = await timed(page, CHOOSE, ['granularity', 'line']);
		ms.inverted = await timed(page, CHOOSE, ['direction', 'inverted']);
		await timed(page, CHOOSE, ['thread', '-1']);
		ms['inverted, all threads'] = await timed(page, CHOOSE, ['granularity', 'function']);
		await picture(page, 'large-inverted-light');
		t.diagnostic(Object.entries(ms)
			.map(([name, time]) => `${name} ${Math.round(time)} ms`).join(', '));
	}));
