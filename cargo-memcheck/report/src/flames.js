// Flame graphs by d3-flame-graph: of the peak, of the survivors, and of the difference from the
// baseline. The frames of candle can be folded.

import flamegraph from 'd3-flame-graph/src/flamegraph.js';
import { select } from 'd3-selection';

import { PAPER } from './charts.js';
import { background, color, isDark, isOnPaper, kindColor, onThemeChange } from './colors.js';
import { el, joined, part } from './dom.js';
import { apart, both, share, size } from './format.js';

const calm = matchMedia('(prefers-reduced-motion: reduce)');
const CELL = 20;

/**
 * `graphs` is a list of `{title, note, entries, change}`; an entry is `{stack, leaf, kind, value, delta}`, and
 * `change` the sum before and after, of a graph of differences.
 * `first` is the title of the one that is shown first. Returns `{show}`, which adds a graph or replaces the one with its title.
 */
export function flames(parent, space, graphs, tree, first) {
  const shown = graphs.filter((graph) => graph.entries.length > 0);
  if (shown.length === 0) return null;
  const state = { graph: shown.find(({ title }) => title === first) ?? shown[0], folded: true, text: '' };
  const box = part(`Call stacks of ${space}`, 'on-phone');
  const area = el('div', { class: 'flames', tabindex: '0', role: 'region' });
  const note = el('p', { class: 'note' });
  const details = el('p', { class: 'frame-details', 'aria-live': 'polite' });
  let chart = null;

  const choice = el('span', { role: 'group', 'aria-label': 'Graph' });
  const fold = el('button', {
    type: 'button', 'aria-pressed': 'true',
    onclick: () => { state.folded = !state.folded; render(); },
  }, 'Fold candle');
  const search = el('input', {
    type: 'search', placeholder: 'Search frames', 'aria-label': 'Search frames',
    oninput: () => { state.text = search.value.trim(); find(); },
  });
  box.append(
    el('div', { class: 'tools' }, choice, fold, search,
      el('button', { type: 'button', onclick: () => chart.resetZoom() }, 'Reset')),
    note, area, details);
  parent.append(box);
  render();
  onThemeChange(() => area.isConnected && render());
  area.addEventListener('keydown', walk);
  addEventListener('beforeprint', () => area.isConnected && render(PAPER));
  addEventListener('afterprint', () => area.isConnected && render());
  new ResizeObserver(() => {
    if (chart && !isOnPaper() && Math.abs(width() - chart.width()) > 8) render();
  }).observe(area);

  function width() {
    return Math.max(280, area.clientWidth - 2);
  }

  function describeAs(text) {
    details.textContent = joined(text);
  }

  function show(graph) {
    const place = shown.findIndex(({ title }) => title === graph.title);
    if (place < 0) shown.push(graph);
    else shown[place] = graph;
    state.graph = graph;
    render();
  }

  function render(pixels = width()) {
    choice.replaceChildren(...shown.map((graph) => el('button', {
      type: 'button', 'aria-pressed': graph === state.graph,
      onclick: () => { state.graph = graph; render(); },
    }, graph.title)));
    fold.setAttribute('aria-pressed', state.folded);
    const root = build(state.graph, tree, state.folded);
    root.name = `${space} ${sum(state.graph, root)}`;
    root.text = state.graph.change ? root.name : `${space}: ${both(root.value)}`;
    note.textContent = state.graph.note;
    area.setAttribute('aria-label', `${state.graph.title}: ${sum(state.graph, root)}. `
      + `Largest frames: ${largest(root)}`);
    area.replaceChildren();
    state.at = null;
    // Without a height, the library leaves two empty rows below the deepest frame.
    chart = flamegraph().width(pixels).height(depth(root) * CELL + 1).cellHeight(CELL).minFrameSize(2).inverted(true)
      .transitionDuration(calm.matches ? 0 : 200).sort((a, b) => b.value - a.value)
      .setColorMapper((node) => fill(node))
      .label((node) => describe(node, root))
      .setDetailsHandler((text) => { if (text !== null) describeAs(text); })
      .setSearchHandler((_, sum) => {
        describeAs(`${size(sum)} match (${share(sum, root.value)})`);
      })
      .onClick((node) => { mark(node); });
    state.root = root;
    select(area).datum(root).call(chart);
    complete();
    if (state.text) find();
  }

  /** Frames get their widths and texts by transitions, which end neither on paper nor in a hidden tab. */
  function complete() {
    for (const frame of area.querySelectorAll('g.frame')) {
      select(frame).select('rect').interrupt().attr('width', frame.getAttribute('width'));
      frame.querySelector('div').textContent = frame.getAttribute('name');
    }
  }

  /** Outlines a frame and describes it. */
  function mark(node) {
    state.at = node;
    describeAs(describe(node, state.root));
    select(area).selectAll('g.frame').classed('at', (each) => each === node);
  }

  /** The arrow keys go to the caller, the largest callee and the neighbors; Enter zooms, 0 resets. */
  function walk(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = select(area).selectAll('g.frame').data();
    const at = state.at ?? all.find((node) => !node.parent);
    if (!at) return;
    const largestFirst = (nodes) => [...(nodes ?? [])].sort((a, b) => b.value - a.value);
    const beside = largestFirst(at.parent?.children);
    const place = beside.indexOf(at);
    const moves = {
      ArrowUp: () => at.parent, ArrowDown: () => largestFirst(at.children)[0],
      ArrowLeft: () => beside[place - 1], ArrowRight: () => beside[place + 1],
    };
    const isKnown = event.key in moves || event.key === 'Enter' || event.key === '0';
    if (!isKnown) return;
    event.preventDefault();
    if (event.key === 'Enter') chart.zoomTo(at);
    if (event.key === '0') chart.resetZoom();
    const next = state.at ? moves[event.key]?.() ?? at : at;
    mark(next);
  }

  function find() {
    if (state.text) chart.search(state.text);
    else {
      chart.clear();
      describeAs('');
    }
  }

  return { show };
}

/** The bytes of a graph, or `+1.50 MiB (1.50 MiB → 3.00 MiB)`. */
function sum({ change }, root) {
  if (!change) return size(root.value);
  const by = change.now - change.then;
  return `${by < 0 ? '\u2212' : '+'}${size(Math.abs(by))} (${apart(change.then, change.now).join(' \u2192 ')})`;
}

/** The number of rows. */
const depth = (node) => 1 + node.children.reduce((most, child) => Math.max(most, depth(child)), 0);

function describe(node, root) {
  const { data } = node;
  // The root.
  if (data.text) return data.text;
  const change = data.delta === undefined ? ''
    : `, ${size(Math.abs(data.delta))} ${data.delta < 0 ? 'less' : 'more'} than in the baseline`;
  return `${data.function}${data.place ? ` at ${data.place}` : ''}: ${both(data.value)}, `
    + `${share(data.value, root.value)}${change}`;
}

/** Labels stand on the color of a frame. */
const fill = (node) => background(plainFill(node));

function plainFill(node) {
  const { data, highlight } = node;
  if (highlight) return color('mark');
  if (data.delta !== undefined) return color(data.delta < 0 ? 'good-fill' : 'bad-fill');
  if (data.kind) return kindColor(data.kind);
  const fills = isDark()
    ? { program: '#8a6d3b', candle: '#3f5f7f', library: '#50565f', root: '#454b55' }
    : { program: '#f3c677', candle: '#b4cfe8', library: '#d5d8dc', root: '#e3e6ea' };
  return fills[data.owner ?? 'root'];
}

/** The largest frames below the root, for a reader who does not see the graph. */
function largest(root) {
  const names = [];
  let node = root;
  while (node.children.length > 0 && names.length < 6) {
    node = node.children.reduce((a, b) => (b.value > a.value ? b : a));
    names.push(`${node.name} ${size(node.value)}`);
  }
  return names.join(', ');
}

function build(graph, tree, folded) {
  const root = { value: 0, children: [], known: new Map() };
  for (const entry of graph.entries) {
    const path = frames(entry, tree, folded);
    root.value += entry.value;
    let node = root;
    for (const step of path) {
      const key = `${step.function}|${step.place ?? ''}|${step.kind ?? ''}`;
      let child = node.known.get(key);
      if (!child) {
        child = { ...step, value: 0, children: [], known: new Map() };
        node.known.set(key, child);
        node.children.push(child);
      }
      child.value += entry.value;
      if (entry.delta !== undefined) child.delta = (child.delta ?? 0) + entry.delta;
      node = child;
    }
  }
  nameFrames(root);
  return root;
}

/** A function that is also the caller or a neighbor of a frame has its line. */
function nameFrames({ function: caller, children }) {
  const isAgain = (frame) => frame.function === caller
    || frame.children.some((child) => child.function === frame.function)
    || children.some((other) => other !== frame && other.function === frame.function);
  for (const frame of children) {
    const line = frame.place?.slice(frame.place.lastIndexOf(':'));
    frame.name = line && isAgain(frame) ? `${frame.function} ${line}` : frame.function;
    nameFrames(frame);
  }
}

/** The frames of an entry from the outermost on, and its leaf. */
function frames({ stack, leaf, kind }, tree, folded) {
  const path = stack === null ? [] : tree.stack(stack).map((frame) =>
    ({ function: frame.function, place: frame.place, owner: frame.owner })).reverse();
  // The function of candle that the program calls stays.
  const kept = path.filter((frame, index) =>
    !folded || frame.owner !== 'candle' || path[index - 1]?.owner !== 'candle');
  return [...kept, { function: leaf, kind }];
}
