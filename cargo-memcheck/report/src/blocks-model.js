// The blocks of a space over time. Time is the number of the allocation or free.

import { KINDS, OUTLIVES } from './colors.js';

const NONE = -1;
/** Call sites with a color of their own. */
const MOST_SITES = 11;

export class Blocks {
  constructor(lifetimes, tree) {
    const { born, events_lived: lived, bytes, place } = lifetimes;
    this.lifetimes = lifetimes;
    this.count = born.length;
    /** A body that does not iterate has no set-up: all of its blocks are weights or activations. */
    this.iterates = lifetimes.iterations.length > 0;
    const [setUp, ...others] = [...KINDS.slice(0, -1), OUTLIVES];
    this.kinds = [this.iterates ? setUp : 'weights and activations', ...others];
    this.bytes = bytes;
    this.place = place;
    this.born = new Float64Array(this.count);
    this.died = new Float64Array(this.count);
    this.kind = new Uint8Array(this.count);
    let time = 0;
    for (let block = 0; block < this.count; block += 1) {
      time += born[block];
      this.born[block] = time;
      this.died[block] = lived[block] === 0 ? Infinity : time + lived[block];
      this.kind[block] = KINDS.indexOf(this.kindOf(block, tree));
    }
  }

  /** The iteration of an event, from 1 with the warm-up; 0 is the set-up. */
  iteration(event) {
    const { iterations, ended } = this.lifetimes;
    if (ended !== null && event > ended) return iterations.length + 1;
    let [low, high] = [0, iterations.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (iterations[middle] < event) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  kindOf(block, tree) {
    const { role } = tree.stacks[tree.places[this.place[block]].stack];
    if (role === 'gradients') return 'gradients';
    if (role === 'optimizer') return 'optimizer state';
    const born = this.iteration(this.born[block]);
    if (born === 0) return 'set-up';
    return this.iteration(Math.min(this.died[block], this.lifetimes.events + 1)) > born
      ? 'kept from earlier iterations' : 'activations';
  }

  /** The kind of a block, as a text. */
  kindName(block) {
    return this.kinds[this.kind[block]];
  }

  /** Iterations that a block lived through. */
  age(block) {
    const end = Math.min(this.died[block], this.lifetimes.events);
    return Math.max(0, this.iteration(end) - this.iteration(this.born[block]));
  }

  /** Live bytes of the blocks that are not stored. */
  rest(event) {
    const { rest, stretch } = this.lifetimes;
    if (rest.length === 0) return 0;
    const at = Math.min(rest.length, Math.max(1, Math.ceil(event / stretch)));
    return rest[at - 1];
  }

  /** The events that change the live bytes of the shown blocks, and the live bytes after each. */
  timeline(isShown) {
    const changes = [];
    for (let block = 0; block < this.count; block += 1) {
      if (!isShown(block)) continue;
      changes.push([this.born[block], block, true]);
      if (this.died[block] !== Infinity) changes.push([this.died[block], block, false]);
    }
    const { rest, stretch } = this.lifetimes;
    rest.forEach((_, index) => changes.push([(index + 1) * stretch, NONE, true]));
    changes.sort((a, b) => a[0] - b[0]);
    const times = new Float64Array(changes.length + 2);
    const total = new Float64Array(changes.length + 2);
    const block = new Int32Array(changes.length + 2).fill(NONE);
    const begins = new Uint8Array(changes.length + 2);
    let live = 0;
    changes.forEach(([time, of, isBirth], index) => {
      if (of !== NONE) live += isBirth ? this.bytes[of] : -this.bytes[of];
      times[index + 1] = time;
      total[index + 1] = live + this.rest(time);
      block[index + 1] = of;
      begins[index + 1] = isBirth;
    });
    times[changes.length + 1] = Math.max(this.lifetimes.events, times[changes.length]);
    total[changes.length + 1] = total[changes.length];
    return { times, total, block, begins };
  }
}

/** The call sites with the most bytes, the largest first. */
export function rankSites(blocks, tree) {
  const texts = tree.places.map((place) => tree.siteText(place.stack));
  const bytes = new Map();
  for (let block = 0; block < blocks.count; block += 1) {
    const text = texts[blocks.place[block]];
    bytes.set(text, (bytes.get(text) ?? 0) + blocks.bytes[block]);
  }
  return [...bytes].sort((a, b) => b[1] - a[1]).slice(0, MOST_SITES).map(([text]) => text);
}
