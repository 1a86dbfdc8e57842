// The findings of a test: first the answer (message, line with its source, cause, remedy and next commands), then
// what supports it (evidence, call sites and explanations).

import { el, foldedOnPhone, openOnPaper, prose, table, withCopies } from './dom.js';
import { both, counted, exact, size } from './format.js';
import { place as linked } from './links.js';
import { Excerpts, stack } from './sources.js';

/** Lines that are shown at once. */
const FEW = 3;
/** Lines of source that a sheet of paper has room for beside the rest of a finding. */
const SHORT = 40;

/** `next` is the section with the next commands, or null. It is below the remedy of the first finding. */
export function findings(test, tree, next) {
  const excerpts = new Excerpts(tree.snippets);
  const [first, ...others] = test.findings;
  if (!first) return next ? [next] : [];
  return [el('section', { class: 'findings', 'aria-label': 'Findings' },
    one(first, tree, excerpts, next), others.map((finding) => one(finding, tree, excerpts, null)))];
}

function one(finding, tree, excerpts, next) {
  const [first, ...rest] = finding.message.split('\n');
  return el('article', { class: finding.fails ? 'finding' : 'finding remark' },
    el('p', { class: 'message' }, el('span', { class: 'code' }, finding.code), ' ', prose(first)),
    rest.length > 0 ? el('pre', { class: 'output', tabindex: '0' }, rest.join('\n')) : null,
    changes(finding),
    answerLines(finding, excerpts),
    finding.last_output ? el('p', null, el('strong', null, 'Last output: '), el('code', null, finding.last_output)) : null,
    advice(finding),
    next,
    evidence(finding),
    sites(finding, tree, excerpts),
    explanation(finding.code),
    finding.consequences.map((each) => el('details', { class: 'also' },
      el('summary', null, 'Also ', el('span', { class: 'code' }, each.code), ' ', prose(each.message.split('\n')[0])),
      one(each, tree, excerpts, null))));
}

/** The holders that changed explain a peak; a baseline does not know which allocations are new. */
const isExplained = ({ code, grown }) => grown.length > 0 || code === 'allocations-regression';

const inFunction = (name) => (name ? ` in ${name}` : null);

const atLine = (before, { place, function: name }, after = null) =>
  el('p', { class: 'place' }, before, linked(place), inFunction(name), after);

const titled = (title) => el('strong', null, `${title}: `);

/** Several excerpts are below their places. */
const sourceOf = (list) => (list.length > 1 ? withPlaces(list) : list.map(({ element }) => element));

/**
 * The lines to look at, with their source: the one that keeps the memory, the one at which the test ended with those
 * that called it, and those that hold more than before. Without all of them, the heaviest call site.
 */
function answerLines(finding, excerpts) {
  const { kept_through: through, at, is_test: isTest, callers, callers_note: note, grown } = finding;
  const kept = through
    ? [atLine(through[1][0], through[0], through[1][1]), sourceOf(excerpts.of([through[0].place]))] : null;
  // The line of the test says only which test it was.
  const main = at && !isTest ? [at.place] : [];
  // Kept memory has the source of the line that allocates it.
  const called = note ? [] : callers.map(({ place }) => place);
  const ended = !at && callers.length === 0 ? null : [
    at ? atLine(titled(finding.title), at) : null,
    callers.map((each) => atLine(titled('called from'), each)),
    note ? el('p', null, note) : null,
    sourceOf(excerpts.of([...main, ...called.slice(0, 1)], { main, callers: called })),
  ];
  const found = [kept, ended, grownLines(grown, excerpts)].filter(Boolean);
  return found.length > 0 ? found : heaviest(finding, excerpts);
}

function heaviest(finding, excerpts) {
  const site = finding.lines[0]?.sites[0];
  if (!site?.place || isExplained(finding)) return null;
  return [atLine(titled('allocated at'), site), sourceOf(excerpts.of([site.place]))];
}

/** The source of the lines that hold more, which the table names. */
function grownLines(all, excerpts) {
  const places = all.map(([{ place }]) => place).filter(Boolean);
  if (places.length === 0) return null;
  const shown = excerpts.of(places.slice(0, FEW), { main: places });
  const left = places.slice(FEW).filter((place) => !excerpts.shown.has(place));
  const others = excerpts.of(left);
  return [withPlaces(shown), others.length === 0 ? null
    : openOnPaper(counted(left.length, 'more line', 'more lines'), withPlaces(others))];
}

/** Excerpts, each below its place. */
const withPlaces = (list) => list.map(({ name, element }) => [el('p', { class: 'place' }, linked(name)), element]);

/** The lines that hold more or less than in the baseline, and the sum. */
function changes({ changes: of, grown }) {
  if (!of) return null;
  const columns = [{ title: 'Call site' }, ...['Before', 'After', 'Change'].map((title) => ({ title, figure: true }))];
  const figure = (cell, kind) => (cell ? el('span', { title: cell.title, class: kind ?? null }, cell.text) : '\u2014');
  const cells = ({ place, name, remark, before, after, change, class: kind }) => [
    el('span', null, place ? [linked(place), ' '] : null, name, remark ? el('span', { class: 'muted' }, ` (${remark})`) : null),
    figure(before), figure(after), figure(change, kind)];
  const shown = table('Call sites that hold more or less than in the baseline', columns, of.rows.map(cells), of.sum ? [cells(of.sum)] : []);
  shown.querySelector('table').className = 'changes';
  return [shown, holdersOfLines(grown)];
}

/** A row is a line of the program, which can have several holders. */
function holdersOfLines(grown) {
  const several = grown.filter((holders) => holders.length > 1);
  if (several.length === 0) return null;
  const then = ({ then: before, is_unlisted: isUnlisted }) => {
    if (before > 0) return `was ${size(before)}`;
    return isUnlisted ? 'not among the largest of the baseline' : 'new at the peak';
  };
  const item = (holder) => el('li', null,
    el('strong', { class: 'more' }, `+${size(holder.now - holder.then)}`), ` ${holder.holder} (${then(holder)})`);
  return openOnPaper('Call sites of one line',
    several.map((holders) => [holders[0].place ? atLine(null, holders[0]) : null, el('ul', null, holders.map(item))]));
}

/** The cause, the remedy and the hint. */
function advice({ cause: found, rise, hint }) {
  const line = (title, ...text) => el('p', null, titled(title), ...text);
  const of = found
    ? [line('Cause', `${found.title} (${found.code})`), line('Remedy', prose(found.remedy))]
    : rise ? [line('Cause', prose(rise.cause)), line('Remedy', prose(rise.remedy))] : [];
  const lines = [...of, ...(hint ? [withCopies(el('p', { class: 'hinted' }, titled('Hint'), prose(hint)))] : [])];
  return lines.length > 0 ? el('div', { class: 'cause' }, lines) : null;
}

function evidence({ cause: found }) {
  if (!found) return null;
  return el('div', { class: 'evidence' },
    el('p', null, titled('Evidence'), prose(found.evidence)), explanation(found.code));
}

/** The page that `cargo memcheck explain` prints. */
function explanation(code) {
  const page = document.getElementById(`page-${code}`);
  if (!page) return null;
  return el('details', { class: 'explanation' },
    el('summary', null, `Explanation of ${code}`), page.content.cloneNode(true));
}

/** The call sites by line. Of a regression they are all of the test, with or without a change. */
function sites(finding, tree, excerpts) {
  const { code, lines: all, more } = finding;
  if (all.length === 0) return null;
  const item = (each) => line(each, code, tree);
  const sum = (some) => size(some.reduce((bytes, each) => bytes + each.bytes, 0));
  const hidden = all.slice(FEW);
  const list = [
    el('ol', { class: 'sites' }, all.slice(0, FEW).map(item)),
    hidden.length === 0 ? null
      : openOnPaper(`${counted(hidden.length, 'more line', 'more lines')}, ${sum(hidden)}`,
        el('ol', { class: 'sites', start: FEW + 1 }, hidden.map(item))),
    more ? el('p', null, `${counted(more[0], 'more line', 'more lines')}, ${size(more[1])}`) : null,
  ];
  if (isExplained(finding)) {
    return el('details', { class: 'all-sites' },
      el('summary', null, code === 'allocations-regression' ? 'All call sites' : 'All call sites at the peak'), list);
  }
  const title = `Call sites: ${counted(all.length, 'line', 'lines')}, ${sum(all)}`;
  return foldedOnPhone('call-sites', title, list, source(all, excerpts));
}

/** The source of all call sites, which the answer does not have. */
function source(all, excerpts) {
  const list = excerpts.of(all.map(({ sites: [first] }) => first.place));
  if (list.length === 0) return null;
  const lines = list.reduce((sum, each) => sum + each.lines, 0);
  const title = all.length === 1 ? 'Source of this line' : 'Source of these lines';
  return lines > SHORT ? el('details', { class: 'excerpts' }, el('summary', null, title), withPlaces(list))
    : openOnPaper(title, withPlaces(list));
}


/** A line of the program with its call sites. */
function line({ bytes, blocks, rate, sites: all, more }, code, tree) {
  const [first] = all;
  const of = code === 'allocations-regression' ? ['allocation', 'allocations'] : ['block', 'blocks'];
  const place = first.place
    ? [atLine('allocated at ', first), all.length === 1 ? via(first) : null]
    : null;
  if (all.length === 1) return el('li', null, amount(first), place, callStack(first, tree));
  const total = all.length + more;
  return el('li', null,
    el('p', null, el('strong', null, both(bytes)), ` in ${counted(blocks, ...of)} by ${exact(total)} call sites`,
      rate > 0 ? `, ${both(rate)} per iteration` : null),
    place,
    openOnPaper('Call sites of this line',
      el('ul', null, all.map((each) => el('li', null, amount(each), via(each), callStack(each, tree)))),
      more > 0 ? el('p', null, `${exact(more)} more`) : null));
}

function amount(each) {
  const what = [each.operation, each.tensor, each.scope && `in ${each.scope}`].filter(Boolean);
  return el('p', null,
    el('strong', null, both(each.bytes)), `, ${each.blocks}`,
    what.length > 0 ? [' by ', el('code', null, what.join(' '))] : null,
    each.note ? `: ${each.note}` : null);
}

const via = (each) => (each.via ? el('p', { class: 'place' }, `through ${each.via}`) : null);

const callStack = (each, tree) => (each.stack === null ? null : stack(each.stack, tree));
