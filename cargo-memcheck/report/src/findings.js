// The findings of a test: message, call sites with their source, cause and explanation.

import { el, prose } from './dom.js';
import { both, counted, size } from './format.js';
import { place as linked } from './links.js';

/** Call sites that are shown at once. */
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
    rest.length > 0 ? el('pre', { tabindex: '0' }, rest.join('\n')) : null,
    panic(finding, tree),
    finding.grown.length > 0 ? el('ul', { class: 'grown' }, finding.grown.map((each) => grown(each, tree))) : null,
    finding.cause ? cause(finding.cause) : null,
    finding.hint ? el('p', null, el('strong', null, 'Hint: '), prose(finding.hint)) : null,
    calledFrom(finding, tree),
    isExplained(finding) ? folded(sites(finding, tree), finding.code) : sites(finding, tree),
    explanation(finding.code),
    finding.consequences.map((each) => el('details', { class: 'also' },
      el('summary', null, 'Also ', el('span', { class: 'code' }, each.code), ' ', prose(each.message.split('\n')[0])),
      one(each, tree))));
}

/** The holders that changed explain a peak; a baseline does not know which allocations are new. */
const isExplained = ({ code, grown: all }) => all.length > 0 || code === 'allocations-regression';

function panic({ panicked_at: place }, tree) {
  if (!place) return null;
  return [el('p', { class: 'place' }, 'at ', linked(place)), snippet(tree.snippets.get(place))];
}

/** The line that called all places: of a kept loss, the line that computes it. */
function calledFrom({ called_from: place }, tree) {
  if (!place) return null;
  return el('div', { class: 'called-from' },
    el('p', { class: 'place' }, 'The places that keep the most are called from ', linked(place)),
    snippet(tree.snippets.get(place)));
}

function grown({ holder, place, then, now, is_unlisted: isUnlisted }, tree) {
  const unknown = isUnlisted ? 'not among the largest of the baseline' : 'new at the peak';
  const was = then === 0 ? unknown : `was ${size(then)}`;
  return el('li', null,
    el('p', null, el('strong', { class: 'more' }, `+${size(now - then)}`), ` ${holder} (${was})`),
    place ? el('p', { class: 'place' }, 'at ', linked(place)) : null,
    snippet(tree.snippets.get(place)));
}

/** Of a regression, the call sites are all of the test, with or without a change. */
function folded(list, code) {
  if (!list) return null;
  return el('details', null, el('summary', null, code === 'allocations-regression' ? 'All call sites' : 'All call sites at the peak'), list);
}

function cause({ code, title, evidence, remedy }) {
  return el('div', { class: 'cause' },
    el('p', null, el('strong', null, 'Cause: '), `${title} (${code})`),
    el('p', null, el('strong', null, 'Evidence: '), prose(evidence)),
    el('p', null, el('strong', null, 'Remedy: '), prose(remedy)),
    explanation(code));
}

/** The page that `cargo memcheck explain` prints. */
function explanation(code) {
  const page = document.getElementById(`page-${code}`);
  if (!page) return null;
  return el('details', { class: 'explanation' },
    el('summary', null, `Explanation of ${code}`), page.content.cloneNode(true));
}

function sites({ sites: all, more }, tree) {
  if (all.length === 0) return null;
  // The source of a line is shown once.
  const shown = new Set();
  const item = (each) => {
    const isNew = !shown.has(each.place);
    shown.add(each.place);
    return site(each, tree, isNew);
  };
  const list = el('ol', { class: 'sites' }, all.slice(0, FEW).map(item));
  const hidden = all.slice(FEW);
  const parts = [list];
  if (hidden.length > 0) {
    const bytes = hidden.reduce((sum, each) => sum + each.bytes, 0);
    const button = el('button', {
      type: 'button',
      onclick: () => {
        list.append(...hidden.map(item));
        button.remove();
      },
    }, `Show ${counted(hidden.length, 'more place', 'more places')}, ${size(bytes)}`);
    parts.push(button);
  }
  if (more) parts.push(el('p', null, `${counted(more[0], 'more place', 'more places')}, ${size(more[1])}`));
  return parts;
}

function site(each, tree, withSource) {
  const what = [each.operation, each.tensor, each.scope && `in ${each.scope}`].filter(Boolean);
  return el('li', null,
    el('p', null,
      el('strong', null, both(each.bytes)), `, ${each.blocks}`,
      what.length > 0 ? [' by ', el('code', null, what.join(' '))] : null,
      each.note ? `: ${each.note}` : null),
    each.place ? el('p', { class: 'place' }, 'at ', linked(each.place),
      each.function ? ` in ${each.function}` : null) : null,
    each.via ? el('p', { class: 'place' }, `through ${each.via}`) : null,
    withSource ? snippet(tree.snippets.get(each.place)) : null,
    each.stack === null ? null : stack(each.stack, tree));
}

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
