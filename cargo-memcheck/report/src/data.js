// Unpacks the data of a test, which the page contains as base64 of compressed JSON.

export async function read(id) {
  const packed = document.getElementById(id)?.textContent;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).json();
}

/** Call stacks, call sites and snippets by their indices. */
export class Tree {
  constructor({ frames, stacks, places }, snippets) {
    this.frames = frames;
    this.stacks = stacks;
    this.places = places;
    this.snippets = new Map(snippets.map((snippet) => [snippet.place, snippet]));
  }

  /** The frames of a stack, the innermost first. */
  stack(index) {
    return this.stacks[index].frames.map((frame) => this.frames[frame]);
  }

  /** The innermost frame of the program or, without one, the innermost frame. */
  site(stack) {
    const frames = this.stack(stack);
    return frames.find((frame) => frame.owner === 'program') ?? frames[0];
  }

  /** `src/model.rs:20 (forward)` */
  siteText(stack) {
    const frame = this.site(stack);
    if (!frame) return 'unknown';
    return frame.place ? `${frame.place} (${frame.function})` : frame.path;
  }
}
