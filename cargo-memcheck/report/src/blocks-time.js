// The horizontal axis of blocks over time. Each iteration is one unit wide, and its events are evenly
// spaced, because a first iteration with many events would otherwise leave little room for the others.

import { DECIMAL } from './charts.js';
import { exact } from './format.js';

/** The widths of the parts before and after the iterations, as shares of the iterations, and at least. */
const [SETUP, END, LEAST] = [1 / 12, 1 / 6, 1];
/** Positions that are closer are the same, but for their rounding. */
const CLOSE = 1e-6;
/** Pixels of a character of an axis, and of the space between two texts. */
const [CHARACTER, BETWEEN, BETWEEN_NUMBERS] = [7, 14, 6];

export class BlockTime {
  constructor({ iterations, ended, events }) {
    Object.assign(this, { iterations, ended, events });
    const count = iterations.length;
    const wide = (share) => Math.max(LEAST, count * share);
    /** The parts of the axis: the set-up, each iteration, and the time after the last. */
    this.parts = [];
    let at = 0;
    const add = (text, from, to, width) => {
      if (to <= from && text === null) return;
      this.parts.push({ text, from, to, at, width });
      at += width;
    };
    if (count === 0) add(null, 0, events, events);
    else {
      if (iterations[0] > 0) add('set-up', 0, iterations[0], wide(SETUP));
      iterations.forEach((from, index) => add(String(index + 1), from, iterations[index + 1] ?? ended ?? events, 1));
      if (ended !== null && events > ended) add('end', ended, events, wide(END));
    }
    this.width = at;
  }

  /** The position of an event, or of a moment between two. */
  position(event) {
    const part = this.parts.findLast(({ from }) => from <= event) ?? this.parts[0];
    if (!part) return event;
    const share = part.to > part.from ? (event - part.from) / (part.to - part.from) : 0;
    return part.at + Math.min(1, share) * part.width;
  }

  /** The positions of many events in ascending order. */
  positions(events) {
    const { parts } = this;
    let index = 0;
    return events.map((event) => {
      while (index + 1 < parts.length && parts[index + 1].from <= event) index += 1;
      const { from, to, at, width } = parts[index] ?? { from: 0, to: 1, at: 0, width: 1 };
      return at + (to > from ? Math.min(1, (event - from) / (to - from)) : 0) * width;
    });
  }

  /** The event at a position. */
  event(position) {
    const part = this.parts.findLast(({ at }) => at <= position) ?? this.parts[0];
    if (!part) return position;
    return part.from + Math.min(1, (position - part.at) / part.width) * (part.to - part.from);
  }

  /**
   * `12` at the beginning of an iteration, `12 + 40` forty events later; before the first, `set-up + 7`, and after
   * the last, `end + 7`. Without iterations the number of the event.
   */
  text(event) {
    const { iterations, ended } = this;
    if (iterations.length === 0) return exact(event);
    const passed = iterations.filter((start) => start <= event).length;
    const isOver = ended !== null && event >= ended;
    const events = event - (isOver ? ended : iterations[passed - 1] ?? 0);
    const part = isOver ? 'end' : passed === 0 ? 'set-up' : String(passed);
    return events === 0 ? part : `${part} + ${exact(events)}`;
  }

  /**
   * The texts of an axis and their positions, and the positions of its lines, for a range of positions that is
   * `pixels` wide: iterations or, within one, events. Texts do not overlap.
   */
  ticks([min, max], pixels) {
    const scale = Math.max(1, pixels) / (max - min);
    const visible = this.parts.filter(({ text, at, width }) => text !== null && at + width > min + CLOSE && at < max - CLOSE);
    const hasWhole = visible.some(({ at, width }) => at >= min - CLOSE && at + width <= max + CLOSE);
    return visible.length > 1 && hasWhole ? this.numbers([min, max], scale) : this.steps([min, max], scale);
  }

  /** The iterations, each in the middle of its visible part. The last one always has its number. */
  numbers([min, max], scale) {
    const visible = this.parts
      .map((part) => ({ ...part, first: Math.max(min, part.at), last: Math.min(max, part.at + part.width) }))
      .filter(({ first, last }) => last > first)
      .map((part) => ({ ...part, middle: (part.first + part.last) / 2, room: CHARACTER * part.text.length }));
    const numbered = visible.filter(({ text }) => /^\d/.test(text));
    const others = visible.filter(({ text }) => !/^\d/.test(text));
    const widest = Math.max(0, ...numbered.map(({ room }) => room)) + BETWEEN_NUMBERS;
    const step = DECIMAL.find((size) => size * scale >= widest) ?? 1;
    const wanted = numbered.filter((_, index) => (numbered.length - 1 - index) % step === 0).reverse();
    const shown = [];
    for (const part of [...wanted, ...others]) {
      const isFree = shown.every((other) =>
        Math.abs(other.middle - part.middle) * scale >= (other.room + part.room) / 2 + BETWEEN_NUMBERS);
      if (isFree && (part.last - part.first) * scale >= part.room) shown.push(part);
    }
    shown.sort((a, b) => a.middle - b.middle);
    const lines = [...wanted, ...others].map(({ at }) => at).filter((at) => at >= min).sort((a, b) => a - b);
    return { texts: shown.map(({ text }) => text), at: shown.map(({ middle }) => middle), lines };
  }

  /** Events in round steps from the beginning of the iteration, from the right, so that the end has a text. */
  steps([min, max], scale) {
    const [from, to] = [this.event(min), this.event(max)];
    const room = (event) => CHARACTER * this.text(event).length;
    const pixels = (max - min) * scale / Math.max(1, to - from);
    const least = (Math.max(room(Math.ceil(from)), room(Math.floor(to))) + BETWEEN) / pixels;
    const step = DECIMAL.find((size) => size >= least);
    const begin = [...this.iterations, this.ended ?? Infinity].findLast((event) => event <= from) ?? 0;
    const first = Math.ceil((from - begin) / step);
    const count = Math.floor((to - begin) / step) - first + 1;
    const kept = [];
    for (let index = count - 1; index >= 0; index -= 1) {
      const event = begin + (first + index) * step;
      const [at, width] = [this.position(event), room(event)];
      const isInside = (max - at) * scale + BETWEEN >= width / 2;
      const isFree = kept.length === 0 || (kept[0].at - at) * scale >= (width + room(kept[0].event)) / 2 + BETWEEN;
      if (isInside && isFree) kept.unshift({ event, at });
    }
    const at = kept.map((tick) => tick.at);
    return { texts: kept.map(({ event }) => this.text(event)), at, lines: at };
  }
}
