// The source around the lines of a finding, and call stacks. Lines that are near one another are in one
// excerpt, so that a view shows each of them once.

import { el } from './dom.js';
import { place as linked } from './links.js';

/** `src/model.rs:20` as its file and line. */
function parts(place) {
  const colon = place.lastIndexOf(':');
  return [place.slice(0, colon), Number(place.slice(colon + 1))];
}

/** The excerpts of one view, which do not repeat a line. */
export class Excerpts {
  constructor(snippets) {
    this.snippets = snippets;
    /** The lines that are shown, as places. */
    this.shown = new Set();
  }

  /**
   * The source around `places`. A line that is shown already has no excerpt. All lines of `main` and, less so, of `callers`
   * are marked. Returns `{file, lines, element}`, the file of the first place first.
   */
  of(places, { main = places, callers = [] } = {}) {
    const wanted = places.filter((place) => place && this.snippets.has(place) && !this.shown.has(place));
    const files = new Map();
    for (const place of wanted) {
      const [file] = parts(place);
      const lines = files.get(file) ?? new Map();
      const { first, lines: texts } = this.snippets.get(place);
      texts.forEach((text, index) => lines.set(first + index, text));
      files.set(file, lines);
    }
    return [...files].flatMap(([file, lines]) => this.runs(file, lines)
      .filter((run) => run.some(([number]) => wanted.includes(`${file}:${number}`)))
      .map((run) => {
        for (const [number] of run) this.shown.add(`${file}:${number}`);
        const line = (of) => ([number]) => of.includes(`${file}:${number}`);
        const element = excerpt(file, run, line(main), line(callers));
        return { file, lines: run.length, element };
      }));
  }

  /** The lines that are not shown yet, in pieces without a gap and without empty lines at their ends. */
  runs(file, lines) {
    const runs = [];
    for (const line of [...lines].sort(([a], [b]) => a - b)) {
      if (this.shown.has(`${file}:${line[0]}`)) continue;
      if (runs.at(-1)?.at(-1)[0] === line[0] - 1) runs.at(-1).push(line);
      else runs.push([line]);
    }
    const isFull = ([, text]) => text.trim() !== '';
    return runs.map((run) => run.slice(run.findIndex(isFull), run.findLastIndex(isFull) + 1));
  }
}

function excerpt(file, run, isMarked, isCaller) {
  const indents = run.filter(([, text]) => text.trim() !== '').map(([, text]) => text.search(/\S/));
  const indent = Math.min(...indents);
  const named = run.filter((line) => isMarked(line) || isCaller(line)).map(([number]) => number);
  return el('pre', { class: 'snippet', tabindex: '0', 'aria-label': `Source at ${file}:${named.join(', ')}` },
    run.map((line) => {
      const [number, text] = line;
      return el(isMarked(line) ? 'mark' : 'code', { class: isCaller(line) && !isMarked(line) ? 'line caller' : 'line' },
        el('span', { class: 'number' }, String(number).padStart(5)), ` ${text.slice(indent)}`);
    }));
}

/** The source around one line, which is marked. */
export function snippet(snippets, place) {
  return new Excerpts(snippets).of([place]).map(({ element }) => element);
}

export function stack(index, tree, open = false) {
  return el('details', { class: 'stack', open }, el('summary', null, 'Call stack'),
    el('ol', null, tree.stack(index).map((frame) => el('li', { class: frame.owner },
      el('code', null, frame.function), ' ',
      // The files of dependencies are not in the workspace.
      frame.owner === 'program' && frame.place ? linked(frame.place) : frame.place))));
}
