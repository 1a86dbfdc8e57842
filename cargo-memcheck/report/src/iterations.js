// Live and peak bytes over the measured iterations, with their trend.

import { bytesAxis, axis, chart } from './charts.js';
import { color } from './colors.js';
import { part } from './dom.js';
import { both, exact, size } from './format.js';

export function iterations(parent, { space, iterations: of }) {
  if (!of) return;
  const { allocated, peak, slope, growth, warmup, baseline } = of;
  const sign = Math.round(slope) === 0 ? '' : slope < 0 ? '\u2212' : '+';
  const rate = `${sign}${exact(Math.abs(Math.round(slope)))} B per iteration`;
  const text = `${space}: live bytes, peak and trend of iterations ${exact(warmup + 1)} to `
    + `${exact(warmup + allocated.length)}; `
    + `growth ${both(growth)} per iteration, trend ${rate}${baseline === null ? '' : `; peak of the baseline ${both(baseline)}`}`;
  const box = part(`Iterations of ${space}`);
  parent.append(box);
  const line = document.createElement('p');
  line.textContent = text;
  box.append(line);
  // As in all other places, the warm-up is counted.
  const numbers = allocated.map((_, index) => warmup + index + 1);
  // The trend goes through the middle of the points, as a Theil-Sen line does.
  const starts = allocated.map((bytes, index) => bytes - slope * index).sort((a, b) => a - b);
  const start = starts[Math.floor(starts.length / 2)];
  const trend = numbers.map((_, index) => Math.max(0, start + slope * index));
  const value = (_, bytes) => (bytes === null ? '\u2014' : size(Math.round(bytes)));
  const last = numbers.length - 1;
  const plot = chart(box, text, {
    legend: { markers: { width: 2, fill: null, dash: (of, index) => (of.series[index].dash ? 'dashed' : 'solid') } },
    // Without a pointer, the legend has the figures of the last iteration.
    hooks: {
      setCursor: [(plotted) => plotted.cursor.idx === null && plotted.setLegend({ idx: last })],
      draw: baseline === null ? [] : [(plotted) => name(plotted, baseline)],
    },
    scales: { x: { time: false }, y: { range: (_, __, highest) => [0, (highest || 1) * 1.08] } },
    axes: [axis({ label: 'iteration', incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000] }), bytesAxis()],
    series: [
      { label: 'iteration' },
      { label: 'live', value, stroke: () => color('live'), width: 2, points: { show: numbers.length < 60 } },
      { label: 'peak', value, stroke: () => color('text'), dash: [4, 3], points: { show: false } },
      { label: 'trend', value, stroke: () => color('bad'), dash: [8, 5], points: { show: false } },
      ...(baseline === null ? [] : [{ label: 'peak of the baseline', value, stroke: () => color('good'), dash: [2, 4], width: 2, points: { show: false } }]),
    ],
  }, [numbers, allocated, peak, trend, ...(baseline === null ? [] : [numbers.map(() => baseline)])]);
  plot.setLegend({ idx: last });
}

/** Writes the figure of the baseline below the right end of its line. */
function name({ ctx, bbox, valToPos }, baseline) {
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'top';
  const text = `baseline ${size(baseline)}`;
  const [right, top] = [bbox.left + bbox.width, valToPos(baseline, 'y', true) + 3 * ratio];
  const wide = ctx.measureText(text).width + 4 * ratio;
  ctx.fillStyle = color('page');
  ctx.fillRect(right - wide, top, wide, 15 * ratio);
  ctx.fillStyle = color('good');
  ctx.fillText(text, right, top + ratio);
  ctx.restore();
}
