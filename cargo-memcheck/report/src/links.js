// Links from lines of the sources to the web or to an editor.

import { el } from './dom.js';

let template = null;

/** Sets the address of a line, with `{file}` and `{line}`. */
export const setLines = (address) => { template = address ?? null; };

/** A place such as `src/model.rs:20`, with a link if its address is known. */
export function place(text) {
  const code = el('code', null, text);
  const [, file, line] = /^([^:]+\.rs):(\d+)$/.exec(text) ?? [];
  const isInside = file && file.split('/').every((part) => part !== '' && part !== '..' && part !== '.');
  if (!template || !isInside) return code;
  const path = file.split('/').map(encodeURIComponent).join('/');
  return el('a', { href: template.replace('{file}', () => path).replace('{line}', line) }, code);
}
