// Creates elements. Text always becomes a text node, so that no text of a test can be markup.

import { isOnPaper } from './colors.js';

/** Elements of code, which readers copy. */
const VERBATIM = ['code', 'pre', 'mark', 'option'];

/** A text whose numbers stay on one line with their units. */
export const joined = (text) => text.replace(/(\d) (?=(?:[KMGTPE]i)?B\b|%|s\b)/g, '$1\u00a0');

/**
 * Creates an element. `on…` attributes are listeners; `null` and `false` leave an attribute out, except
 * that `aria-…` attributes have the values `true` and `false`.
 */
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name.startsWith('aria-') && typeof value === 'boolean') element.setAttribute(name, String(value));
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  const content = children.flat(Infinity).filter((child) => child !== null && child !== undefined);
  const isProse = !VERBATIM.includes(tag);
  element.append(...content.map((child) => (isProse && typeof child === 'string' ? joined(child) : child)));
  return element;
}

/** Nodes of a text in which backticks mark code. */
export function prose(text) {
  const pieces = text.split('`');
  // Without a partner, a backtick is a character.
  if (pieces.length % 2 === 0) return [text];
  return pieces.map((piece, index) => (index % 2 === 0 ? piece : el('code', null, piece)));
}

/** Commands of a shell. Settings and names are code too, which no reader pastes into a terminal. */
const isCommand = (text) => /^(cargo|sudo) /.test(text);

/** The code of a hint, with buttons for its commands. */
export function withCopies(element) {
  for (const code of element.querySelectorAll('code')) {
    if (isCommand(code.textContent)) code.replaceWith(command(code.textContent));
  }
  return element;
}

/** A place or a path that breaks after its separators only. */
export const breakable = (text) => text.split(/(?<=[/:_])/).flatMap((piece) => [piece, el('wbr')]);

const isEmpty = (content) => content === null || content === undefined || content === '' || content === '\u2014';

/**
 * A table with headers. A column is `{title, figure}`; a cell is text or a node. Columns without a value are
 * left out. On a phone each row is a card, whose cells have the titles of their columns.
 */
export function table(caption, columns, rows, sums = []) {
  const hasValue = (_, index) => index === 0 || [...rows, ...sums].some((cells) => !isEmpty(cells[index]));
  const shown = columns.map((column, index) => ({ ...column, index })).filter(hasValue);
  const cell = (tag, { figure }, content, attributes) =>
    el(tag, { class: figure ? 'n' : null, ...attributes }, content ?? '');
  const row = (cells, strong) =>
    el('tr', { class: strong ? 'sum' : null }, shown.map((column) => {
      const content = cells[column.index];
      return column.index === 0
        ? cell('th', column, content, { scope: 'row' })
        : cell('td', column, content, { 'data-label': column.title, 'data-empty': isEmpty(content) });
    }));
  return el('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': caption },
    el('table', null,
      el('caption', { class: 'hidden' }, caption),
      el('thead', null, el('tr', null,
        shown.map((column) => cell('th', column, column.title, { scope: 'col' })))),
      el('tbody', null, rows.map((cells) => row(cells, false)), sums.map((cells) => row(cells, true)))));
}

const phone = matchMedia('(max-width: 40rem)');

/** Folded on a phone only, where it would push the answer away. */
export const foldedOnPhone = (name, title, ...children) =>
  el('details', { class: `${name} on-phone`.trim(), open: !phone.matches }, el('summary', null, title), ...children);

phone.addEventListener('change', () => {
  // A sheet can be as narrow as a phone, but cannot be unfolded.
  if (isOnPaper()) return;
  for (const details of document.querySelectorAll('details.on-phone')) details.open = !phone.matches;
});

/** A part of the page with a heading. `fold` is `open`, `closed` or `on-phone`. */
export function part(title, fold, ...children) {
  const heading = el('h3', null, title);
  return fold === 'on-phone' ? foldedOnPhone('part', heading, ...children)
    : el('details', { class: 'part', open: fold === 'open' }, el('summary', null, heading), ...children);
}

/** A piece that is folded on a screen and open on paper. */
export const openOnPaper = (title, ...children) =>
  el('details', { class: 'paper' }, el('summary', null, title), ...children);

addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details:is(.paper, .failure, .on-phone):not([open])')) {
    Object.assign(details, { open: true }).dataset.printed = '';
  }
});
addEventListener('afterprint', () => {
  for (const details of document.querySelectorAll('details[data-printed]')) {
    details.open = false;
    delete details.dataset.printed;
  }
});

/** A command that a button copies. */
export function command(text) {
  const state = el('span', { class: 'hidden', role: 'status' });
  const button = el('button', { type: 'button', class: 'small', onclick: copy }, 'Copy');
  // Breaks between words only: `--test` must not become `--` and `test`.
  const words = text.split(' ').flatMap((word, at) => [at > 0 ? ' ' : '', el('span', { class: 'whole' }, word)]);
  const code = el('code', null, words);
  async function copy() {
    const done = await write(text, code);
    button.textContent = done ? 'Copied' : 'Select and copy';
    state.textContent = button.textContent;
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  }
  return el('span', { class: 'copyable' }, code, button, state);
}

/** A page of a file may have no access to the clipboard; then the text is selected. */
async function write(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return document.execCommand('copy');
  }
}
