// SPDX-License-Identifier: MIT
/*
 * node build.mjs OUTPUT: index.html with the style and the script of src/main.js in it, one file
 * that fetches nothing. Packages come from WEB_NODE_MODULES, or node_modules beside this file.
 *
 * The placeholder for the data stays outside the bundle, where no minifier sees it.
 */
import { readFileSync, readdirSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLACEHOLDER = '/*PATHPROF_DATA*/null';
const here = dirname(fileURLToPath(import.meta.url));
const modules = resolve(process.env.WEB_NODE_MODULES ?? join(here, 'node_modules'));
const { build } = createRequire(join(modules, 'package.json'))('esbuild');

async function bundle() {
	const result = await build({
		entryPoints: [join(here, 'src/main.js')],
		bundle: true, minify: true, write: false, metafile: true, outdir: '/',
		format: 'iife', target: 'es2022', charset: 'utf8', legalComments: 'none',
		nodePaths: [modules],
	});
	const text = (suffix) => result.outputFiles.find(({ path }) => path.endsWith(suffix)).text;
	return { script: text('.js'), style: text('.css'), inputs: Object.keys(result.metafile.inputs) };
}

/* The licences of the packages in the bundle, which ask to go with them. */
function licences(inputs) {
	const names = new Set();

	for (const input of inputs) {
		const path = relative(modules, resolve(input));
		const name = /^(@[^/]+\/[^/]+|[^/.][^/]*)\//.exec(path);
		if (name)
			names.add(name[1]);
	}
	return [...names].sort().map((name) => {
		const folder = join(modules, name);
		const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
		const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
		return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
	}).join('\n');
}

/* Each part may end the element it stands in; none of ours does. */
function checked(text, end) {
	if (text.toLowerCase().includes(end))
		throw new Error(`A part of the page contains ${end}`);
	return text;
}

const { script, style, inputs } = await bundle();
const parts = {
	'/*STYLE*/': checked(style, '</style'),
	'/*SCRIPT*/': checked(script, '</script'),
	'LICENCES': checked(licences(inputs), '-->'),
};
let page = readFileSync(join(here, 'index.html'), 'utf8');
for (const [mark, text] of Object.entries(parts)) {
	if (page.split(mark).length !== 2)
		throw new Error(`index.html does not contain ${mark} once`);
	page = page.replace(mark, () => text);
}
if (page.split(PLACEHOLDER).length !== 2)
	throw new Error(`The page does not contain ${PLACEHOLDER} once`);
const output = resolve(process.argv[2]);
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, page);
