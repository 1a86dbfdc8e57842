// Paints the bands of blocks: for each column of pixels the blocks that are live at its highest
// moment, the oldest at the bottom. A sweep over the events keeps the live blocks in a linked list,
// so that 50,000 blocks take about as long as the pixels that they cover.

/** The value of a pixel without a block, and of one in the band of all smaller blocks. */
export const EMPTY = -1;
export const REST = -2;

/**
 * Returns the block of each pixel, row by row from the top.
 * `area` is `{from, to, highest, width, height}`: positions, bytes and pixels.
 */
export function bands(blocks, timeline, area) {
  const { from, to, highest, width, height } = area;
  const { times, at, total, block, begins } = timeline;
  const ids = new Int32Array(width * height).fill(EMPTY);
  const next = new Int32Array(blocks.count).fill(EMPTY);
  const before = new Int32Array(blocks.count).fill(EMPTY);
  let [first, last] = [EMPTY, EMPTY];
  let event = 0;

  function step() {
    const of = block[event];
    if (of >= 0 && begins[event]) {
      before[of] = last;
      next[of] = EMPTY;
      if (last === EMPTY) first = of;
      else next[last] = of;
      last = of;
    } else if (of >= 0) {
      const [previous, following] = [before[of], next[of]];
      if (previous === EMPTY) first = following;
      else next[previous] = following;
      if (following === EMPTY) last = previous;
      else before[following] = previous;
    }
    event += 1;
  }

  const scale = height / (highest || 1);
  const perColumn = (to - from) / width;
  let painted = -1;
  for (let column = 0; column < width; column += 1) {
    const start = from + column * perColumn;
    while (event < at.length && at[event] <= start) step();
    // The highest moment of the column, so that no peak is lost between two columns.
    let best = event;
    for (let look = event; look < at.length && at[look] <= start + perColumn; look += 1) {
      if (best === event || total[look] > total[best - 1]) best = look + 1;
    }
    if (best > event && event > 0 && total[event - 1] >= total[best - 1]) best = event;
    while (event < best) step();
    if (event === painted) copyColumn(ids, column, width, height);
    else paintColumn(column);
    painted = event;
  }
  return ids;

  function paintColumn(column) {
    let bytes = blocks.rest(event > 0 ? times[event - 1] : 0);
    let top = fill(column, 0, bytes, REST);
    for (let of = first; of !== EMPTY; of = next[of]) {
      bytes += blocks.bytes[of];
      top = fill(column, top, bytes, of);
      if (top >= height) return;
    }
  }

  /** Fills the rows from `bottom` to the row of `bytes`, which it returns. */
  function fill(column, bottom, bytes, of) {
    const top = Math.min(height, Math.round(bytes * scale));
    for (let row = bottom; row < top; row += 1) ids[(height - 1 - row) * width + column] = of;
    return Math.max(bottom, top);
  }
}

function copyColumn(ids, column, width, height) {
  for (let row = 0; row < height; row += 1) {
    ids[row * width + column] = ids[row * width + column - 1];
  }
}

/** The blocks that have a pixel, and `REST` if the band of the smaller ones has one. */
export function visible(ids) {
  const found = new Set();
  let last = EMPTY;
  for (const of of ids) {
    if (of !== last && of !== EMPTY) found.add(of);
    last = of;
  }
  return found;
}

/** Colors the pixels. A line separates a band from the one above it, if both are high enough. */
export function colored(ids, { width, height }, colorOf, edge, marked, mark) {
  const pixels = new Uint32Array(ids.length);
  const colors = new Map();
  for (let at = 0; at < ids.length; at += 1) {
    const of = ids[at];
    if (of === EMPTY) continue;
    let color = colors.get(of);
    if (color === undefined) {
      color = of === marked ? mark : colorOf(of);
      colors.set(of, color);
    }
    const isEdge = at >= width && ids[at - width] !== of
      && at + 2 * width < ids.length && ids[at + 2 * width] === of;
    pixels[at] = isEdge ? edge : color;
  }
  return new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
}
