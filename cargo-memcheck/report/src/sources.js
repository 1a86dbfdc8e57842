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
   * are marked. Returns `{name, lines, element}`, the first place first; a name has the marked lines.
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
    const runs = [...files].flatMap(([file, lines]) => this.runs(file, lines).map((run) => ({ file, run })));
    const first = ({ file, run }) => wanted.findIndex((place) => run.some(([number]) => place === `${file}:${number}`));
    return runs.filter((of) => first(of) >= 0).sort((a, b) => first(a) - first(b)).map(({ file, run }) => {
      for (const [number] of run) this.shown.add(`${file}:${number}`);
      const line = (of) => ([number]) => of.includes(`${file}:${number}`);
      const [isMain, isCaller] = [line(main), line(callers)];
      const named = run.filter((of) => isMain(of) || isCaller(of)).map(([number]) => number);
      const name = `${file}:${named.join(', ')}`;
      return { name, lines: run.length, element: excerpt(name, run, isMain, isCaller) };
    });
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

function excerpt(name, run, isMarked, isCaller) {
  const indents = run.filter(([, text]) => text.trim() !== '').map(([, text]) => text.search(/\S/));
  const indent = Math.min(...indents);
  return el('pre', { class: 'snippet', tabindex: '0', 'aria-label': `Source at ${name}` },
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
