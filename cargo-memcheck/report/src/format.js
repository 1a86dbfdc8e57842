// Numbers as the command prints them.

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** `1,024` */
export const exact = (number) => number.toLocaleString('en-US');

/** `3.12 MiB`, `31.2 MiB`: as Rust prints it, which rounds a tie to the even digit. */
export function size(bytes) {
  const positive = Math.abs(bytes);
  if (positive < 1024) return `${bytes} B`;
  let [value, unit] = [positive / 1024, 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  const precise = (value % 0.5 === 0.125 ? value - 0.005 : value).toFixed(2);
  const text = precise.indexOf('.') === 1 ? precise : (value % 1 === 0.25 ? value - 0.05 : value).toFixed(1);
  return `${bytes < 0 ? '\u2212' : ''}${text} ${UNITS[unit]}`;
}

/** Sizes in one unit, that of the largest, and with as many decimals as one of them needs. */
export function inOneUnit(all) {
  const largest = Math.max(...all.map(Math.abs));
  const power = largest < 1024 ? 0 : Math.min(UNITS.length, Math.floor(Math.log2(largest) / 10));
  const values = all.map((bytes) => bytes / 1024 ** power);
  const isExact = (decimals) => values.every((value) => Math.abs(value - Number(value.toFixed(decimals))) < 1e-9);
  const decimals = [0, 1, 2].find(isExact) ?? 3;
  const format = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return values.map((value) => `${value.toLocaleString('en-US', format)} ${power === 0 ? 'B' : UNITS[power - 1]}`);
}

/** Two sizes, in bytes if they differ but would be shown as the same size. */
export const apart = (one, other) =>
  one !== other && size(one) === size(other) ? [one, other].map((bytes) => `${exact(bytes)} B`) : [one, other].map(size);

/** `3,145,728 B (3.00 MiB)` */
export const both = (bytes) =>
  Math.abs(bytes) < 1024 ? `${bytes} B` : `${exact(bytes)} B (${size(bytes)})`;

/** `1 block`, `2 blocks` */
export const counted = (count, one, several) => `${exact(count)} ${count === 1 ? one : several}`;

/** `12.5 %` */
export const share = (part, whole) => `${((whole ? part / whole : 0) * 100).toFixed(1)} %`;
