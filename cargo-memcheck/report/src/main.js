// Starts the report: the overview, and the view of the test that the address names (`#t12`).

import { startOverview } from './overview.js';
import { showTest } from './view.js';

const title = document.title;
const overview = document.getElementById('overview');
const view = document.getElementById('view');
let scroll = 0;
let opened = 0;

async function route() {
  const number = /^#t(\d+)$/.exec(location.hash)?.[1];
  if (number === undefined) {
    if (location.hash && location.hash !== '#') return;
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
  const name = await showTest(view, Number(number), () => turn === opened, () => {
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
