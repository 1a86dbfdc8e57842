// The view of one test.

import { read, Tree } from './data.js';
import { command, el, foldedOnPhone, part, table } from './dom.js';
import { apart, both, counted, exact, share } from './format.js';
import { findings } from './findings.js';
import { iterations } from './iterations.js';
import { laws } from './laws.js';
import { place, setLines } from './links.js';
import { space } from './space.js';

/** Renders test `number` into `view`. Returns its name, or nothing if the reader has moved on. */
export async function showTest(view, number, isCurrent, show) {
  delete view.dataset.ready;
  const [test, run] = await Promise.all([read(`d${number}`), read('run')]);
  if (!isCurrent()) return undefined;
  if (!test) {
    view.replaceChildren(back(), el('p', null, 'The report has no such test.'));
    show();
    return undefined;
  }
  setLines(run?.lines);
  const tree = new Tree(test.tree, test.snippets);
  const heading = el('h2', { tabindex: '-1' }, test.test);
  view.replaceChildren(
    el('nav', { class: 'crumbs', 'aria-label': 'Tests' }, back(), ...neighbors(number)),
    heading,
    facts(test),
  );
  // Charts need the width of the page.
  show();
  const own = run?.laws.filter((law) => law.test === number) ?? [];
  view.append(...findings(test, tree, commands(test)), ...output(test));
  const [overTime, byIteration, details] = [el('div'), el('div'), el('div')];
  const choose = (chosen) => {
    for (const area of [overTime, byIteration, details]) area.replaceChildren();
    space(overTime, details, chosen, tree, graphOf(test.findings[0]?.code));
    // A phone shows the first chart only.
    iterations(byIteration, chosen, overTime.querySelector('.chart') ? 'on-phone' : 'open');
  };
  // The charts come before the figures, and the smaller one is beside them on a wide screen.
  view.append(...chooser(test, choose), overTime,
    el('div', { class: 'beside' }, byIteration, figures(test)), details);
  if (test.spaces.length > 0) choose(test.spaces[0]);
  laws(view, own);
  view.append(...remarks(test));
  heading.focus({ preventScroll: true });
  view.dataset.ready = number;
  return test.test;
}

const MOST_ADVISED = 2;

/** The flame graph that shows most of a finding. */
const graphOf = (code) => ({ leak: 'Survivors', 'peak-regression': 'Change from the baseline' })[code];

const back = () => el('a', { href: '#' }, '\u2190 All tests');

/** The tests before and after this one in the order of the table, as it is filtered. */
function neighbors(number) {
  const rows = [...document.querySelectorAll('#tests tbody tr:not(.group):not([hidden])')];
  const links = rows.map((row) => row.querySelector('a.test'));
  const at = links.findIndex((link) => link.dataset.test === String(number));
  const link = (place, which, ...text) => links[place] && at >= 0
    ? [el('a', {
      href: links[place].getAttribute('href'), title: links[place].textContent,
      'aria-label': `${which}: ${links[place].textContent}`,
    }, text)] : [];
  const name = (place) => el('span', { class: 'neighbor' }, `: ${links[place]?.textContent}`);
  return [...link(at - 1, 'Previous test', '\u2039 Previous test', name(at - 1)),
    ...link(at + 1, 'Next test', 'Next test', name(at + 1), ' \u203a')];
}

function facts(test) {
  const status = test.status.replace(' ', '-').replace('to-review', 'needs-review');
  return el('p', { class: 'facts' },
    el('span', { class: `status ${status}` }, test.status), ' ',
    el('span', null, `${test.name.slice(0, -test.test.length).trim()} on ${test.device}`), ' ',
    place(test.place), ' ',
    test.seconds > 0 ? el('span', null, `${test.seconds.toFixed(2)} s`) : null);
}

/** The next commands: those that all outputs advise, and the others, which a phone folds. */
function commands({ commands: next }) {
  if (next.length === 0) return null;
  const list = (some) => el('dl', null, some.map(({ purpose, command: text }) =>
    [el('dt', null, purpose), el('dd', null, command(text))]));
  const advised = next.filter((each) => each.advised).slice(0, MOST_ADVISED);
  const others = next.filter((each) => !advised.includes(each));
  return el('section', { class: 'next', 'aria-label': 'Next commands' },
    el('h3', null, 'Next'), list(advised),
    others.length === 0 ? null
      : foldedOnPhone('others', counted(others.length, 'more command', 'more commands'), list(others)));
}

const printed = (text) => el('pre', { class: 'output', tabindex: '0' }, text);

/** The output of a failed test. What the finding has, and frames of libraries, are in the whole output only. */
function output({ output: text, whole_output: whole }) {
  return [
    ...(text ? [part('Output', 'open', printed(text))] : []),
    ...(whole ? [part('Whole output', 'closed', printed(whole))] : []),
  ];
}

const OF_AN_ITERATION = ['growth', 'allocations', 'allocated_total'];

function figures({ figures: rows }) {
  if (rows.length === 0) return el('div');
  const several = new Set(rows.map((row) => row.space)).size > 1;
  const isCount = (row) => row.name === 'allocations';
  const text = (row, value, other = null) => (isCount(row) ? exact(value) : apart(value, other ?? value)[0]);
  const difference = (row) => {
    const change = row.now - row.then;
    if (change === 0) return 'none';
    const sign = change > 0 ? '+' : '\u2212';
    const part = share(Math.abs(change), row.then).replace(' ', '');
    return el('span', { class: change > 0 ? 'more' : 'less' },
      // A change from 0 has no share.
      `${sign}${text(row, Math.abs(change))}${part === '0.0%' || row.then === 0 ? '' : ` (${sign}${part})`}`);
  };
  const columns = [{ title: 'Figure' }, { title: 'Now', figure: true },
    { title: 'Baseline', figure: true }, { title: 'Change', figure: true }, { title: 'Limit', figure: true }];
  const title = ({ name }) => (OF_AN_ITERATION.includes(name.split('/').at(-1)) ? `${name} per iteration` : name);
  const cells = rows.map((row) => [
    several ? `${title(row)} of ${row.space}` : title(row),
    el('span', { title: isCount(row) ? null : both(row.now) }, row.in_bytes ? `${exact(row.now)} B` : text(row, row.now, row.then)),
    row.then === null ? '\u2014' : text(row, row.then, row.now),
    row.then === null ? '\u2014' : difference(row),
    row.limit === null ? '\u2014' : limit(row.limit),
  ]);
  const shown = table('Figures of the test', columns, cells);
  shown.querySelector('table').className = 'figures';
  return part('Figures', 'on-phone', shown);
}

/** The limit that decides, and those that are higher. */
const limit = ({ decides, others }) =>
  (others === null ? decides : [decides, ' ', el('span', { class: 'muted' }, `(${others})`)]);

/** Buttons for the spaces of the test. */
function chooser({ spaces }, choose) {
  if (spaces.length < 2) return [];
  const buttons = spaces.map((one, index) => el('button', {
    type: 'button', 'aria-pressed': index === 0,
    onclick: () => {
      buttons.forEach((button, other) => button.setAttribute('aria-pressed', other === index));
      choose(one);
    },
  }, one.judged ? one.space : `${one.space} (not judged)`));
  return [el('div', { class: 'choice', role: 'group', 'aria-label': 'Memory space' }, buttons)];
}

function remarks({ notes, driver, hint }) {
  const lines = [...notes.map((note) => `note: ${note}`), ...(hint ? [`hint: ${hint}`] : [])];
  const parts = [];
  if (lines.length > 0) parts.push(el('ul', { class: 'notes' }, lines.map((line) => el('li', null, line))));
  if (driver) parts.push(part(driver.title, driver.matters ? 'on-phone' : 'closed', printed(driver.lines.join('\n'))));
  return parts;
}
