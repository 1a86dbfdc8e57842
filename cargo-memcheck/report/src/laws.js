// The laws of a test over its cases: the measured points and the curve of the law.

import { lineChart } from './charts.js';
import { el, part, table } from './dom.js';
import { exact, size } from './format.js';

export function laws(parent, own) {
  for (const law of own) one(parent, law);
}

function one(parent, law) {
  const text = (value) => (law.metric === 'allocations' ? exact(value) : size(value));
  const box = part(`Law of ${law.metric} in ${law.space}`, 'on-phone',
    el('p', null, el('strong', null, law.text)),
    el('p', null, `allowed: ${law.allowed}`, law.with ? `; the curve has ${law.with}` : null));
  parent.append(box);
  const values = [...law.points.map((point) => point.value), ...law.curve.map(([, y]) => y)];
  if (values.some((value) => value !== 0)) plot(box, law);
  box.append(table('Measured cases', [{ title: 'Case' }, { title: law.metric, figure: true }],
    law.points.map((point) => [point.label, text(point.value)])));
}

function plot(box, law) {
  const at = [...new Set([...law.points.map((point) => point.at), ...law.curve.map(([x]) => x)])]
    .sort((a, b) => a - b);
  const curve = new Map(law.curve);
  const points = new Map();
  // Several cases can have the same size on this axis; the largest is drawn, and all are in the table.
  for (const { at: x, value } of law.points) points.set(x, Math.max(value, points.get(x) ?? 0));
  lineChart(box, `${law.metric} over ${law.size}: ${law.text}`, {
    x: { label: law.size, values: at },
    lines: [
      { label: 'law', color: 'bad', values: at.map((x) => curve.get(x) ?? null), width: 2, points: false },
      { label: 'measured', color: 'live', values: at.map((x) => points.get(x) ?? null), width: 0, points: true },
    ],
    counts: law.metric === 'allocations',
  });
}
