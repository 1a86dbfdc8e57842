// Colors of the style sheet for canvases and flame graphs, which CSS cannot reach.

const dark = matchMedia('(prefers-color-scheme: dark)');

// The charts are drawn for paper after this, because this module is the first that listens.
const { classList } = document.documentElement;
addEventListener('beforeprint', () => classList.add('paper'));
addEventListener('afterprint', () => classList.remove('paper'));

/** Calls `change` when the reader switches between light and dark. */
export const onThemeChange = (change) => dark.addEventListener('change', change);

/** True while the browser prints. */
export const isOnPaper = () => classList.contains('paper');

export const isDark = () => dark.matches && !isOnPaper();

/** The value of a custom property of the style sheet. */
export const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Kinds of memory, in the order of their colors. */
export const KINDS = ['set-up', 'activations', 'gradients', 'optimizer state', 'kept from earlier iterations'];

/** The last kind in all of its time, also in the iteration that allocates it. */
export const OUTLIVES = 'outlives its iteration';

/** Categorical colors of the style sheet; they repeat after twelve. */
const CATEGORIES = 12;
const categoryName = (index) => `category-${index % CATEGORIES}`;
const kindIndex = (kind) => (kind === OUTLIVES ? KINDS.length - 1 : KINDS.indexOf(kind));
const kindName = (kind) => categoryName(kindIndex(kind) < 0 ? 1 : kindIndex(kind));

export const category = (index) => color(categoryName(index));

/** The color of a kind of memory. */
export const kindColor = (kind) => color(kindName(kind));

/** The same for elements, which follow the theme by themselves. */
export const variable = (name) => `var(--${name})`;
export const categoryVariable = (index) => variable(categoryName(index));
export const kindVariable = (kind) => variable(kindName(kind));

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The contrast of two colors, by the formula of WCAG 2. */
function contrast(a, b) {
  const light = (hex) => {
    const [red, green, blue] = channels(hex).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** The least contrast of text that WCAG 2 asks for. */
const LEAST_CONTRAST = 4.5;

/** A color nearer to that of the page, so that text on it can be read. */
export function background(hex) {
  const [page, text] = [color('page'), color('text')];
  let mixed = hex;
  for (let share = 0.05; share < 1 && contrast(mixed, text) < LEAST_CONTRAST; share += 0.05) {
    const parts = channels(hex).map((value, index) =>
      Math.round(value * (1 - share) + channels(page)[index] * share));
    mixed = `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
  }
  return mixed;
}

/** `#rrggbb` as the number of a pixel of an image, with alpha 255. */
export function pixel(hex) {
  const [red, green, blue] = channels(hex);
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}
