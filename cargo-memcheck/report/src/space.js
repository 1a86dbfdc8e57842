// The memory of one space: its blocks over time, its call stacks, its holders and its tables.

import { blockChart } from './blocks-view.js';
import { axis, chart, upwards } from './charts.js';
import { color, kindVariable, KINDS } from './colors.js';
import { breakable, el, part, prose, table } from './dom.js';
import { flames } from './flames.js';
import { both, exact, share, size } from './format.js';
import { stack } from './sources.js';

const MOST_ROWS = 30;

/**
 * The chart over time goes into `charts`, which stays empty without call stacks. `first` is the title of the flame graph
 * that is shown first.
 */
export function space(charts, parent, data, tree, first) {
  const { held } = data;
  if (!held) {
    parent.append(el('p', { class: 'muted' },
      prose('This test ran without call stacks. `--explain always`, or the profile of the test, shows its blocks.')));
    return;
  }
  if (held.doubt) charts.append(el('p', { class: 'alert' }, held.doubt));
  const blocks = held.lifetimes ? blockChart(charts, data, tree) : timeline(charts, data);
  const graph = flames(parent, data.space, graphs(data, tree), tree, first);
  if (blocks && graph) blocks.onMoment = graph.show;
  kinds(parent, data);
  holders(parent, data, tree);
  survivors(parent, data, tree);
  for (const each of data.tables) operations(parent, each);
}

function graphs({ held, iterations }, tree) {
  const entry = ({ place, kind, bytes }) => {
    const of = tree.places[place];
    return { stack: of.stack, leaf: of.label, kind, value: bytes };
  };
  const others = held.other_holders > 0
    ? [{ stack: null, leaf: 'smaller holders', value: held.other_holders }] : [];
  const peak = [...held.holders.map(entry), ...others].filter(({ value }) => value > 0);
  const survivors = held.survivors.filter(({ bytes }) => bytes > 0)
    .map(({ stack: of, label, bytes }) => ({ stack: of, leaf: label, kind: KINDS[4], value: bytes }));
  const longer = held.survivors.reduce((sum, of) => sum + (of.longer ? of.bytes : 0), 0);
  const onlyLonger = longer === 0 ? '' : ` ${size(longer)} of them are there in the longer run only.`;
  return [
    { title: 'Peak', note: `Memory at the peak${held.when}, by the call stack that allocated it.`, entries: peak },
    { title: 'Survivors', note: `Blocks of measured iterations that are live after the last.${onlyLonger}`, entries: survivors },
    { title: 'Change from the baseline', entries: difference(held, tree), change: changeOf(held, iterations),
      note: 'Only the difference: red holds more at the peak than in the baseline, green less. '
        + 'A baseline names its twelve largest holders.' },
  ];
}

/** The peak of the baseline and that of this run. */
const changeOf = ({ peak }, iterations) => {
  const then = iterations?.baseline ?? null;
  return then === null ? null : { then, now: peak };
};

/** Holders whose bytes at the peak differ from those of the baseline. */
function difference({ holders: now, baseline }, tree) {
  if (!baseline) return [];
  const sums = new Map();
  for (const { place, bytes } of now) {
    const { label, stack: of } = tree.places[place];
    const sum = sums.get(label) ?? { stack: of, bytes: 0 };
    sum.bytes += bytes;
    sums.set(label, sum);
  }
  const entries = [];
  for (const [label, { stack: of, bytes }] of sums) {
    const then = baseline.bytes[label];
    // The baseline may have left out a holder that is smaller than its smallest.
    if (then === undefined && bytes <= baseline.least) continue;
    const delta = bytes - (then ?? 0);
    if (delta !== 0) entries.push({ stack: of, leaf: label, value: Math.abs(delta), delta });
  }
  for (const [label, then] of Object.entries(baseline.bytes)) {
    if (!sums.has(label)) entries.push({ stack: null, leaf: `${label} (gone)`, value: then, delta: -then });
  }
  return entries;
}

/** Live bytes of a record that has no single blocks. */
function timeline(parent, { space: name, held }) {
  if (held.timeline.length === 0) return;
  const text = `${name}: live bytes over allocations and frees; the peak is ${both(held.peak)}${held.when}`;
  const box = part(`Memory over time in ${name}`, 'open', el('p', null, text));
  parent.append(box);
  const events = held.timeline.map((_, index) => (index + 1) * held.stretch);
  const vertical = upwards();
  chart(box, text, {
    scales: { x: { time: false }, y: vertical.scale },
    axes: [axis({ label: 'allocations and frees' }), vertical.axis],
    series: [{}, { stroke: () => color('live'), fill: () => color('live-fill'), points: { show: false } }],
  }, [events, held.timeline]);
}

function kinds(parent, { held }) {
  if (held.peak === 0) return;
  const bar = el('div', { class: 'kinds', 'aria-hidden': 'true' }, held.kinds.map(([kind, bytes]) => {
    const piece = el('span', { title: `${kind}: ${size(bytes)}` });
    piece.style.flexGrow = bytes / held.peak;
    piece.style.background = kindVariable(kind);
    return piece;
  }));
  const rows = held.kinds.map(([kind, bytes, blocks]) => [kind, both(bytes), exact(blocks), share(bytes, held.peak)]);
  parent.append(part(`At the peak${held.when}`, 'on-phone', bar, table('Bytes at the peak by kind',
    [{ title: 'Kind' }, { title: 'Bytes', figure: true }, { title: 'Blocks', figure: true }, { title: 'Share', figure: true }], rows)));
}

/** Sums up the entries that look the same, the largest first. */
function alike(entries, tree) {
  const rows = new Map();
  for (const { label, stack: of, note, bytes, blocks } of entries) {
    const site = tree.siteText(of);
    const key = `${label}|${site}|${note}`;
    const row = rows.get(key) ?? { label, site, note, of, bytes: 0, blocks: 0 };
    row.bytes += bytes;
    row.blocks += blocks;
    rows.set(key, row);
  }
  return [...rows.values()].filter((row) => row.bytes > 0).sort((a, b) => b.bytes - a.bytes);
}

const siteCell = (site) => el('span', null, breakable(site));

function holders(parent, { held }, tree) {
  const entries = held.holders.map(({ place, kind, bytes, blocks }) =>
    ({ label: tree.places[place].label, stack: tree.places[place].stack, note: kind, bytes, blocks }));
  const rows = alike(entries, tree);
  if (rows.length === 0) return;
  const cells = ({ label, site, note, of, bytes, blocks }) => [
    el('div', { class: 'holder' }, label, stack(of, tree)), siteCell(site), note, exact(blocks), size(bytes), share(bytes, held.peak)];
  const sum = rows.slice(MOST_ROWS).reduce((all, row) => all + row.bytes, held.other_holders);
  const others = sum > 0 ? [['others', '', '', '', size(sum), share(sum, held.peak)]] : [];
  parent.append(part('Holders of the peak', 'closed', table('Holders of the peak',
    [{ title: 'Holder' }, { title: 'Call site' }, { title: 'Kind' }, { title: 'Blocks', figure: true },
      { title: 'Bytes', figure: true }, { title: 'Share', figure: true }],
    rows.slice(0, MOST_ROWS).map(cells), others)));
}

function survivors(parent, { held }, tree) {
  if (!held.growth) return;
  const cells = ({ label, site, note, of, bytes, blocks }) => [
    el('div', { class: 'holder' }, label, stack(of, tree)), siteCell(site), exact(blocks), size(bytes), note];
  const rows = alike(held.survivors, tree);
  const more = rows.length - MOST_ROWS;
  const body = rows.length === 0 ? null : table('Survivors of the measured iterations',
    [{ title: 'Survivor' }, { title: 'Call site' }, { title: 'Blocks', figure: true },
      { title: 'Bytes', figure: true }, { title: 'Pattern of one call stack' }], rows.slice(0, MOST_ROWS).map(cells),
    more > 0 ? [[`${exact(more)} more`, '', '', size(rows.slice(MOST_ROWS).reduce((all, row) => all + row.bytes, 0)), '']] : []);
  parent.append(part('Survivors of the iterations', rows.length < 8 ? 'on-phone' : 'closed', el('p', null, held.growth), body));
}

const BY = { op: 'Operations', site: 'Call sites', scope: 'Scopes' };

function operations(parent, { by, legend, columns, rows, sums }) {
  parent.append(part(BY[by], 'closed', legend.map((line) => el('p', { class: 'muted' }, line)),
    table(BY[by], columns, rows, sums)));
}
