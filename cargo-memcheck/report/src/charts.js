// Line charts by uPlot, with the axes, legend and colors of the report.

import uPlot from 'uplot';
import { el, joined } from './dom.js';
import { color, isOnPaper, onThemeChange, variable } from './colors.js';
import { exact, inOneUnit, size } from './format.js';

/** The width of A4 paper within the margins of the style sheet, in pixels. */
export const PAPER = 690;
/** The height of a chart on paper, from that on a screen: the first one fits below a finding, and two with their texts on half a sheet. */
const heightOnPaper = (height) => Math.round(height / 3 + 67);
/** The highest value leaves room for the label of the peak. */
const HEADROOM = 1.1;

const live = new Set();

onThemeChange(() => live.forEach((chart) => chart.redrawn()));
new ResizeObserver(() => isOnPaper() || live.forEach((chart) => chart.resized())).observe(document.body);
addEventListener('beforeprint', () => live.forEach((chart) => chart.resized(PAPER, heightOnPaper)));
addEventListener('afterprint', () => live.forEach((chart) => chart.resized()));
for (const event of ['beforeprint', 'afterprint']) {
  // In other colors, also if the width stays the same.
  addEventListener(event, () => live.forEach((chart) => chart.redrawn()));
}

/** An axis with the colors of the style sheet. */
export const axis = (options) => ({
  stroke: () => color('muted'),
  grid: { stroke: () => color('grid'), width: 1 },
  ticks: { stroke: () => color('grid'), width: 1 },
  ...options,
});

/** Steps between ticks: powers of two, so that labels in KiB or MiB are round, or 1, 2 and 5 for counts. */
const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);
export const DECIMAL = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** The ticks of whole numbers up to `last`, which always has one, in steps that leave room for their texts. */
export function wholeNumbers(first, last) {
  const room = 7 * exact(last).length + 14;
  const splits = ({ width }) => {
    const pixels = Math.max(1, width - 96) / Math.max(1, last - first);
    const step = DECIMAL.find((size) => size * pixels >= room);
    const count = Math.floor((last - first) / step) + 1;
    return Array.from({ length: count }, (_, index) => last - (count - 1 - index) * step);
  };
  return { splits, values: (_, all) => all.map(exact) };
}

const ticks = (max, step) => Array.from({ length: Math.floor(max / step) + 1 }, (_, index) => index * step);

/**
 * The vertical scale and axis of a chart that begins at 0. The highest tick is at or above the highest value, and all
 * ticks have one unit.
 * `highest` replaces the highest value of the data.
 */
export function upwards({ counts = false, most = 5, highest = null } = {}) {
  const steps = counts ? DECIMAL : BINARY;
  const stepOf = (value) => steps.find((step) => value / step <= most + 1e-9);
  const tick = (value) => Math.max(1, Math.ceil(value / stepOf(value))) * stepOf(value);
  const top = (value) => Math.max(tick(value), HEADROOM * value);
  return {
    scale: { range: (_, __, found) => [0, top(highest ? highest() : found ?? 0)] },
    axis: axis({
      size: 76,
      values: ({ root }, splits) => {
        const texts = counts ? splits.map(exact) : inOneUnit(splits);
        root.parentElement.dataset.values = texts.join('|');
        return texts;
      },
      splits: (_, __, min, max) => ticks(max, stepOf(max / HEADROOM)),
    }),
  };
}

/** Adds a chart to `parent`. `describe` is the text for a reader who does not see it. */
export function chart(parent, describe, options, data) {
  const box = el('div', { class: 'chart', role: 'img', 'aria-label': describe });
  parent.append(box);
  const width = () => Math.max(240, box.clientWidth);
  const height = options.height ?? 220;
  const plot = new uPlot({ width: width(), legend: { show: false }, ...options, height }, data, box);
  const entry = {
    redrawn: () => plot.redraw(false, true),
    resized: (wanted = width(), heightOf = (same) => same) => {
      if (!box.isConnected) return live.delete(entry);
      const size = { width: wanted, height: heightOf(height) };
      if (size.width !== plot.width || size.height !== plot.height) plot.setSize(size);
    },
  };
  live.add(entry);
  return plot;
}

/**
 * Adds a chart of lines with a legend. A line is `{label, color, values, width, dash, points}`; `x` is
 * `{label, values}`, and `counts` is true if the values are not bytes; `draw` adds to the drawing. Without a pointer, the legend has the values of the last position.
 */
export function lineChart(parent, describe, { x, lines, counts = false, axes, draw = [] }) {
  const vertical = upwards({ counts });
  const text = (value) => (value === null ? '\u2014' : (counts ? exact : size)(Math.round(value)));
  const values = lines.map(() => el('span', { class: 'value' }));
  const position = el('span', { class: 'value' });
  const list = el('ul', { class: 'legend' }, el('li', null, `${x.label} `, position),
    lines.map((line, index) =>
      el('li', null, sample(line), `${line.label} `, values[index], sameAs(lines, index, text))));
  const show = (at) => {
    position.textContent = x.values[at].toLocaleString('en-US');
    lines.forEach((line, index) => { values[index].textContent = joined(text(line.values[at])); });
  };
  const last = x.values.length - 1;
  const series = lines.map(({ color: name, width, dash, points }) => ({
    stroke: () => color(name), width, dash, spanGaps: true, points: { show: points, size: 7 },
    ...(width === 0 ? { paths: () => null } : {}),
  }));
  chart(parent, describe, {
    hooks: {
      setCursor: [({ cursor }) => show(cursor.idx ?? last)],
      draw: [({ root, scales }) => { root.parentElement.dataset.highest = scales.y.max; }, ...draw],
    },
    scales: { x: { time: false }, y: vertical.scale },
    axes: [axis({ label: x.label, ...axes }), vertical.axis],
    series: [{}, ...series],
  }, [x.values, ...lines.map((line) => line.values)]);
  parent.append(list);
  show(last);
}

/** `(the same as live)` for a line that an earlier one covers. */
function sameAs(lines, index, text) {
  const { values } = lines[index];
  const isSame = (other) => values.every((value, at) => text(value) === text(other.values[at]));
  const covering = lines.slice(0, index).find(isSame);
  return covering ? ` (the same as ${covering.label})` : null;
}

/** A piece of a line as the chart draws it. */
export function sample({ color: name, width, dash, points }) {
  const make = (tag, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const drawing = make('svg', { class: 'sample', viewBox: '0 0 32 10', width: 32, height: 10, 'aria-hidden': 'true' });
  drawing.style.color = variable(name);
  if (width > 0) {
    drawing.append(make('path', { d: 'M0,5 H32', stroke: 'currentColor', 'stroke-width': width, 'stroke-dasharray': (dash ?? []).join(' ') }));
  }
  if (points) drawing.append(make('circle', { cx: 16, cy: 5, r: 3, class: 'point', stroke: 'currentColor' }));
  return drawing;
}
