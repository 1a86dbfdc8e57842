// Live and peak bytes over the measured iterations, with their trend.

import { lineChart, wholeNumbers } from './charts.js';
import { el, part } from './dom.js';
import { both, counted, exact, size } from './format.js';
import { nameValue } from './marks.js';

/** `fold` is that of a part of the page. */
export function iterations(parent, { space, iterations: of }, fold) {
  if (!of) return;
  const { allocated, peak, baseline } = of;
  const isConstant = [allocated, peak].every((values) => values.every((value) => value === values[0]));
  const text = `${measured(of)} ${isConstant ? constant(of) : changing(of)}`;
  const box = part(`Iterations of ${space}`, fold, el('p', null, text));
  parent.append(box);
  // A line without a change has no more information than its value.
  if (!isConstant) plot(box, `${space}: ${text}`, of, baseline);
}

/** `10 measured iterations (3 to 12) after 2 of warm-up:` */
function measured({ allocated: { length }, warmup }) {
  const which = length === 1 ? exact(warmup + 1) : `${exact(warmup + 1)} to ${exact(warmup + length)}`;
  const before = warmup === 0 ? 'without a warm-up' : `after ${exact(warmup)} of warm-up`;
  return `${counted(length, 'measured iteration', 'measured iterations')} (${which}) ${before}:`;
}

function constant({ allocated: [live], peak: [peak], baseline }) {
  const then = baseline === null ? '' : `; the peak of the baseline is ${both(baseline)}`;
  return `the live memory is always ${both(live)}, and the peak is always ${both(peak)}${then}.`;
}

function changing({ slope, growth, baseline }) {
  const sign = Math.round(slope) === 0 ? '' : slope < 0 ? '\u2212' : '+';
  const rate = `${sign}${exact(Math.abs(Math.round(slope)))} B per iteration`;
  const then = baseline === null ? '' : `; the peak of the baseline is ${both(baseline)}`;
  return `growth ${both(growth)} per iteration, trend ${rate}${then}.`;
}

function plot(box, text, { allocated, peak, slope, warmup }, baseline) {
  // As in all other places, the warm-up is counted.
  const numbers = allocated.map((_, index) => warmup + index + 1);
  // The trend goes through the middle of the points, as a Theil-Sen line does.
  const starts = allocated.map((bytes, index) => bytes - slope * index).sort((a, b) => a - b);
  const start = starts[Math.floor(starts.length / 2)];
  const lines = [
    { label: 'live', color: 'live', values: allocated, width: 2, points: numbers.length < 60 },
    { label: 'peak', color: 'text', values: peak, width: 1.5, dash: [10, 4], points: false },
    { label: 'trend', color: 'bad', values: numbers.map((_, index) => Math.max(0, start + slope * index)), width: 2, dash: [6, 8], points: false },
  ];
  if (baseline !== null) {
    const values = numbers.map(() => baseline);
    lines.push({ label: 'peak of the baseline', color: 'good', values, width: 2, dash: [2, 6], points: false });
  }
  lineChart(box, text, {
    x: { label: 'iteration', values: numbers },
    lines,
    axes: wholeNumbers(numbers[0], numbers.at(-1)),
    draw: baseline === null ? [] : [(plotted) => nameValue(plotted, baseline, `baseline ${size(baseline)}`, 'good')],
  });
}
