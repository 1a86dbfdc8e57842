// The findings of a test: message, call sites with their source, cause and explanation.

import { el, openOnPaper, prose, table } from './dom.js';
import { both, counted, exact, size } from './format.js';
import { place as linked } from './links.js';

/** Lines that are shown at once. */
const FEW = 3;

export function findings(test, tree) {
  if (test.findings.length === 0) return [];
  return [el('section', { class: 'findings', 'aria-label': 'Findings' },
    test.findings.map((finding) => one(finding, tree)))];
}

function one(finding, tree) {
  const [first, ...rest] = finding.message.split('\n');
  return el('article', { class: finding.fails ? 'finding' : 'finding remark' },
    el('p', { class: 'message' }, el('span', { class: 'code' }, finding.code), ' ', prose(first)),
    rest.length > 0 ? el('pre', { class: 'output', tabindex: '0' }, rest.join('\n')) : null,
    keptThrough(finding, tree),
    finding.at ? frame(finding.title, finding.at, tree, !finding.is_test) : null,
    callers(finding, tree),
    finding.last_output ? el('p', null, el('strong', null, 'Last output: '), el('code', null, finding.last_output)) : null,
    changes(finding),
    cause(finding),
    grownLines(finding, tree),
    finding.hint ? el('p', null, el('strong', null, 'Hint: '), prose(finding.hint)) : null,
    isExplained(finding) ? folded(sites(finding, tree), finding.code) : sites(finding, tree),
    explanation(finding.code),
    finding.consequences.map((each) => el('details', { class: 'also' },
      el('summary', null, 'Also ', el('span', { class: 'code' }, each.code), ' ', prose(each.message.split('\n')[0])),
      one(each, tree))));
}

/** The holders that changed explain a peak; a baseline does not know which allocations are new. */
const isExplained = ({ code, grown: all }) => all.length > 0 || code === 'allocations-regression';

const inFunction = (name) => (name ? ` in ${name}` : null);

/** A line of a call, with its source if `withSource` is true. */
function frame(word, { place, function: name }, tree, withSource) {
  return [el('p', { class: 'place' }, el('strong', null, `${word}: `), linked(place), inFunction(name)),
    withSource ? snippet(tree.snippets.get(place)) : null];
}

/** The lines that called the line of the finding. That of kept memory shows its source already. */
const callers = ({ callers: all, callers_note: note }, tree) => (all.length === 0 ? null
  : el('div', { class: 'callers' },
    all.map((caller, index) => frame('called from', caller, tree, index === 0 && !note)), note ? el('p', null, note) : null));

/** The line of the tensor that holds a kept graph, or of the list that can hold the tensors. */
function keptThrough({ kept_through: through }, tree) {
  if (!through) return null;
  const [{ place, function: name }, [before, after]] = through;
  return [el('p', { class: 'place' }, before, linked(place), inFunction(name), after), snippet(tree.snippets.get(place))];
}

/** The lines that hold more or less than in the baseline, and the sum. */
function changes({ changes: of }) {
  if (!of) return null;
  const columns = [{ title: 'Call site' }, ...['Before', 'After', 'Change'].map((title) => ({ title, figure: true }))];
  const figure = (cell, kind) => (cell ? el('span', { title: cell.title, class: kind ?? null }, cell.text) : '\u2014');
  const cells = ({ place, name, remark, before, after, change, class: kind }) => [
    el('span', null, place ? [linked(place), ' '] : null, name, remark ? el('span', { class: 'muted' }, ` (${remark})`) : null),
    figure(before), figure(after), figure(change, kind)];
  const shown = table('Call sites that hold more or less than in the baseline', columns, of.rows.map(cells), of.sum ? [cells(of.sum)] : []);
  shown.querySelector('table').className = 'changes';
  return shown;
}

/** The lines that hold more, with their source. */
function grownLines({ grown: all }, tree) {
  if (all.length === 0) return null;
  const items = (some) => some.map((holders) => grown(holders, tree));
  return [
    el('ul', { class: 'grown' }, items(all.slice(0, FEW))),
    all.length > FEW
      ? openOnPaper(counted(all.length - FEW, 'more line', 'more lines'), el('ul', { class: 'grown' }, items(all.slice(FEW)))) : null,
  ];
}

/** What a holder held in the baseline. */
function then({ then: before, is_unlisted: isUnlisted }) {
  if (before > 0) return `was ${size(before)}`;
  return isUnlisted ? 'not among the largest of the baseline' : 'new at the peak';
}

/** The holders of one line that grew. */
function grown(holders, tree) {
  const rise = (holder) => el('strong', { class: 'more' }, `+${size(holder.now - holder.then)}`);
  const text = (holder) => [rise(holder), ` ${holder.holder} (${then(holder)})`];
  const [{ place }] = holders;
  return el('li', null,
    place ? el('p', { class: 'place' }, 'allocated at ', linked(place)) : el('p', null, text(holders[0])),
    snippet(tree.snippets.get(place)),
    holders.length === 1 ? null
      : openOnPaper('Call sites of this line', el('ul', null, holders.map((holder) => el('li', null, text(holder))))));
}

/** Of a regression, the call sites are all of the test, with or without a change. */
function folded(list, code) {
  if (!list) return null;
  return el('details', null, el('summary', null, code === 'allocations-regression' ? 'All call sites' : 'All call sites at the peak'), list);
}

/** The cause that a rule found, or that of a peak that rose. */
function cause({ cause: found, rise }) {
  if (!found && !rise) return null;
  const line = (title, ...text) => el('p', null, el('strong', null, `${title}: `), ...text);
  return el('div', { class: 'cause' }, found
    ? [line('Cause', `${found.title} (${found.code})`), line('Evidence', prose(found.evidence)),
      line('Remedy', prose(found.remedy)), explanation(found.code)]
    : [line('Cause', rise.cause), line('Remedy', rise.remedy)]);
}

/** The page that `cargo memcheck explain` prints. */
function explanation(code) {
  const page = document.getElementById(`page-${code}`);
  if (!page) return null;
  return el('details', { class: 'explanation' },
    el('summary', null, `Explanation of ${code}`), page.content.cloneNode(true));
}

function sites({ code, lines: all, more }, tree) {
  if (all.length === 0) return null;
  const item = (each) => line(each, code, tree);
  const hidden = all.slice(FEW);
  const bytes = hidden.reduce((sum, each) => sum + each.bytes, 0);
  return [
    el('ol', { class: 'sites' }, all.slice(0, FEW).map(item)),
    hidden.length === 0 ? null
      : openOnPaper(`${counted(hidden.length, 'more line', 'more lines')}, ${size(bytes)}`,
        el('ol', { class: 'sites', start: FEW + 1 }, hidden.map(item))),
    more ? el('p', null, `${counted(more[0], 'more line', 'more lines')}, ${size(more[1])}`) : null,
  ];
}

/** A line of the program with its call sites. */
function line({ bytes, blocks, rate, sites: all, more }, code, tree) {
  const [first] = all;
  const of = code === 'allocations-regression' ? ['allocation', 'allocations'] : ['block', 'blocks'];
  const place = first.place
    ? [el('p', { class: 'place' }, 'allocated at ', linked(first.place), inFunction(first.function)),
      all.length === 1 ? via(first) : null, snippet(tree.snippets.get(first.place))]
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

/** The source around a line, which is marked. */
export function snippet(of) {
  if (!of) return null;
  const marked = Number(of.place.slice(of.place.lastIndexOf(':') + 1));
  const indents = of.lines.filter((text) => text.trim() !== '').map((text) => text.search(/\S/));
  const indent = Math.min(...indents);
  return el('pre', { class: 'snippet', tabindex: '0', 'aria-label': `Source at ${of.place}` },
    of.lines.map((text, index) => {
      const number = of.first + index;
      return el(number === marked ? 'mark' : 'code', { class: 'line' },
        el('span', { class: 'number' }, String(number).padStart(5)), ` ${text.slice(indent)}`);
    }));
}

export function stack(index, tree, open = false) {
  return el('details', { class: 'stack', open }, el('summary', null, 'Call stack'),
    el('ol', null, tree.stack(index).map((frame) => el('li', { class: frame.owner },
      el('code', null, frame.function), ' ',
      // The files of dependencies are not in the workspace.
      frame.owner === 'program' && frame.place ? linked(frame.place) : frame.place))));
}
