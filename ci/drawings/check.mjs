// Draws each .mmd file named on the command line with the real Mermaid, and compares what it drew with the
// .json file beside it: every node, box and edge, and every label as plain text. A file without a .json beside it is
// only drawn.
//
// There is no browser: sizes are made up, which only matters to where things stand.

import { existsSync, readFileSync } from 'node:fs';
import { JSDOM } from 'jsdom';

const { window } = new JSDOM('<!DOCTYPE html><body></body>', { pretendToBeVisual: true });
globalThis.window = window;
globalThis.document = window.document;
for (const name of ['Element', 'SVGElement', 'HTMLElement', 'DOMParser', 'XMLSerializer', 'CSSStyleSheet']) {
  globalThis[name] ??= window[name];
}
const box = () => ({ x: 0, y: 0, width: 100, height: 20 });
Object.assign(window.SVGElement.prototype, { getBBox: box, getComputedTextLength: () => 100 });

const { default: mermaid } = await import('mermaid');
mermaid.initialize({ startOnLoad: false, securityLevel: 'strict' });

// Lines become elements of their own, so blanks say nothing; a formula is kept apart by blanks of no width.
const plain = (text) => text.replace(/[\s\u200b]/g, '');
const summary = (description) => description.trim().split(/\n\s*\n/)[0];

function compare(what, labels, expected) {
  if (labels.length !== expected.length) {
    throw new Error(`${labels.length} ${what} are drawn, and there are ${expected.length}`);
  }
  const left = labels.map((label) => plain(label.textContent));
  for (const parts of expected) {
    const at = left.findIndex((label) => parts.every((part) => label.includes(plain(part))));
    if (at < 0) throw new Error(`${what}: none of ${JSON.stringify(left)} reads ${JSON.stringify(parts)}`);
    left.splice(at, 1);
  }
}

async function check(file, number) {
  const source = readFileSync(file, 'utf8');
  await mermaid.parse(source);
  const { svg } = await mermaid.render(`drawing${number}`, source);
  const beside = file.replace(/\.mmd$/, '.json');
  if (!existsSync(beside)) return;
  compared += 1;
  const graph = JSON.parse(readFileSync(beside, 'utf8'));
  const drawing = new window.DOMParser().parseFromString(svg, 'text/html');
  // The longest first, so that no label is taken for a shorter one that it contains.
  const longest = (rows) => rows.toSorted((one, other) => other.join('').length - one.join('').length);
  const nodes = graph.nodes.map((node) => [node.name, summary(node.description), node.precondition ?? '']);
  compare('nodes', [...drawing.querySelectorAll('g.node .nodeLabel')], longest(nodes));
  const edges = graph.edges.map((edge) => [edge.event]);
  compare('edges', [...drawing.querySelectorAll('g.edgeLabel .edgeLabel')], longest(edges));
  const holds = (place) =>
    graph.nodes.some((node) => node.branch === place) ||
    graph.boxes.some((box, inner) => box.within === place && holds(inner));
  const boxes = graph.boxes.filter((_, place) => holds(place)).map((box) => [`each ${box.item} of ${box.step}`]);
  compare('boxes', [...drawing.querySelectorAll('g.cluster .nodeLabel')], longest(boxes));
}

let compared = 0;
const files = process.argv.slice(2);
if (files.length === 0) throw new Error('no drawings to check');
for (const [number, file] of files.entries()) {
  try {
    await check(file, number);
  } catch (error) {
    console.error(`${file}: ${error.message ?? error}`);
    process.exitCode = 1;
  }
}
if (!process.exitCode) {
  console.log(`${files.length} drawings: Mermaid draws them, and every node, edge and box of the ${compared} with a graph`);
}
