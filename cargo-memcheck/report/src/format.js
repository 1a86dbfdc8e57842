// Numbers as the command prints them.

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** `1,024` */
export const exact = (number) => number.toLocaleString('en-US');

/** `3.1 MiB` */
export function size(bytes) {
  const positive = Math.abs(bytes);
  if (positive < 1024) return `${bytes} B`;
  let [value, unit] = [positive / 1024, 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  // Of two nearest tenths, the even one, as Rust prints it: 2.25 is 2.2, and 2.75 is 2.8.
  const tenths = value % 1 === 0.25 ? (value - 0.05).toFixed(1) : value.toFixed(1);
  return `${bytes < 0 ? '\u2212' : ''}${tenths} ${UNITS[unit]}`;
}

/** The same with a second digit, if the first does not state the size: `1.25 MiB`. */
export function precise(bytes) {
  const unit = 1024 ** Math.floor(Math.log2(Math.max(bytes, 1)) / 10);
  const value = bytes / unit;
  return Number.isInteger(value * 10) ? size(bytes) : size(bytes).replace(/^[\d.]+/, value.toFixed(2));
}

/** Two sizes, in bytes if they differ but would be shown as the same size. */
export const apart = (one, other) =>
  one !== other && size(one) === size(other) ? [one, other].map((bytes) => `${exact(bytes)} B`) : [one, other].map(size);

/** `3,145,728 B (3.0 MiB)` */
export const both = (bytes) =>
  Math.abs(bytes) < 1024 ? `${bytes} B` : `${exact(bytes)} B (${size(bytes)})`;

/** `1 block`, `2 blocks` */
export const counted = (count, one, several) => `${exact(count)} ${count === 1 ? one : several}`;

/** `12.5 %` */
export const share = (part, whole) => `${((whole ? part / whole : 0) * 100).toFixed(1)} %`;
