// Starts the report: the overview, and the view of the test that the address names (`#app::mem/training::step/cpu`).

import { startOverview } from './overview.js';
import { showTest } from './view.js';

const title = document.title;
const overview = document.getElementById('overview');
const view = document.getElementById('view');
let scroll = 0;
let opened = 0;

/** A browser can change how characters of an address are escaped. */
function unescaped(fragment) {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

const numbers = new Map([...document.querySelectorAll('#tests a.test')]
  .map((link) => [unescaped(link.hash), Number(link.dataset.test)]));

async function route() {
  const fragment = unescaped(location.hash);
  if (!fragment.includes('/')) {
    // Another part of the page, such as the list of the tests.
    if (fragment && fragment !== '#') return;
    opened += 1;
    view.hidden = true;
    view.replaceChildren();
    overview.hidden = false;
    document.title = title;
    scrollTo(0, scroll);
    return;
  }
  if (!overview.hidden) scroll = scrollY;
  const turn = ++opened;
  const name = await showTest(view, numbers.get(fragment), () => turn === opened, () => {
    overview.hidden = true;
    view.hidden = false;
    scrollTo(0, 0);
  });
  if (name) document.title = `${name} – ${title}`;
}

startOverview();
addEventListener('hashchange', route);
addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !view.hidden && !event.defaultPrevented) location.hash = '';
});
route();
// Milliseconds until a reader can act, which tests measure.
document.documentElement.dataset.ready = Math.round(performance.now());
