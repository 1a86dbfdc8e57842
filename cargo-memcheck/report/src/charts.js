// Line charts by uPlot, with the axes and colors of the report.

import uPlot from 'uplot';
import { el } from './dom.js';
import { color, onThemeChange } from './colors.js';
import { size } from './format.js';

/** The width of A4 paper within the margins of the style sheet, in pixels. */
export const PAPER = 690;

const live = new Set();

onThemeChange(() => live.forEach((chart) => chart.redrawn()));
new ResizeObserver(() => live.forEach((chart) => chart.resized())).observe(document.body);
addEventListener('beforeprint', () => live.forEach((chart) => chart.resized(PAPER)));
addEventListener('afterprint', () => live.forEach((chart) => chart.resized()));

/** Steps of 1, 2 or 4 times a power of two, so that labels in KiB or MiB are round. */
export const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);

/** An axis with the colors of the style sheet. */
export const axis = (options) => ({
  stroke: () => color('muted'),
  grid: { stroke: () => color('grid'), width: 1 },
  ticks: { stroke: () => color('grid'), width: 1 },
  ...options,
});

export const bytesAxis = () =>
  axis({ values: (_, splits) => splits.map((split) => size(split)), size: 76, incrs: BINARY });

/** Adds a chart to `parent`. `describe` is the text for a reader who does not see it. */
export function chart(parent, describe, options, data) {
  const box = el('div', { class: 'chart', role: 'img', 'aria-label': describe });
  parent.append(box);
  const width = () => Math.max(240, box.clientWidth);
  const plot = new uPlot({ width: width(), height: 220, ...options }, data, box);
  const entry = {
    redrawn: () => plot.redraw(false, true),
    resized: (wanted = width()) => {
      if (!box.isConnected) return live.delete(entry);
      if (wanted !== plot.width) plot.setSize({ width: wanted, height: plot.height });
    },
  };
  live.add(entry);
  return plot;
}
