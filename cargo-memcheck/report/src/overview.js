// The table of tests: sorted by a column, filtered by status, searched by text.

import { command, el } from './dom.js';
import { exact } from './format.js';

const STATUSES = ['failed', 'not-measured', 'needs-review', 'passed', 'ignored'];

export function startOverview() {
  const tests = document.getElementById('tests');
  for (const code of document.querySelectorAll('code.copy')) code.replaceWith(command(code.textContent));
  if (!tests) return;
  const body = tests.tBodies[0];
  const rows = [...body.rows].map((row, place) =>
    ({ row, place, text: row.textContent.toLowerCase(), status: row.dataset.status, isNew: 'new' in row.dataset }));
  const state = { status: null, text: '' };

  const shown = el('output', { class: 'shown', 'aria-live': 'polite' });
  const search = el('input', {
    type: 'search', id: 'search', placeholder: 'Search tests, devices, findings',
    oninput: () => { state.text = search.value.trim().toLowerCase(); apply(); },
  });
  tests.parentElement.before(el('div', { class: 'tools' },
    el('label', { for: 'search', class: 'hidden' }, 'Search'), search, shown));

  const cards = startCards(state, apply);
  startSorting(tests, body, rows);
  // Failures first, ignored tests last.
  tests.querySelector('[data-sort="status"] button').click();

  const noun = rows.length === 1 ? 'test' : 'tests';
  function apply() {
    const words = state.text.split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, text, status, isNew } of rows) {
      const fits = (!state.status || status === state.status || (state.status === 'new' && isNew))
        && words.every((word) => text.includes(word));
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = count === rows.length
      ? `${exact(count)} ${noun}` : `${exact(count)} of ${exact(rows.length)} ${noun}`;
    for (const [status, card] of cards) card.setAttribute('aria-pressed', status === state.status);
  }
  apply();

  addEventListener('keydown', (event) => {
    const typing = event.target.closest('input, textarea, select');
    if (event.key === '/' && !typing && !document.getElementById('overview').hidden) {
      event.preventDefault();
      search.focus();
    }
  });
}


/** A card of a status is a button that shows only its tests. */
function startCards(state, apply) {
  const cards = new Map();
  for (const card of document.querySelectorAll('.card[data-status]')) {
    const { status } = card.dataset;
    const button = el('button', {
      type: 'button', 'aria-pressed': 'false',
      onclick: () => { state.status = state.status === status ? null : status; apply(); },
    }, ...card.childNodes);
    if (card.dataset.count === '0') button.disabled = true;
    card.append(button);
    cards.set(status, button);
  }
  return cards;
}

function startSorting(tests, body, rows) {
  const headers = [...tests.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const kind = header.dataset.sort;
    if (!kind) return;
    const value = ({ row, status }) => {
      const cell = row.cells[column];
      if (kind === 'status') return STATUSES.indexOf(status);
      return kind === 'number' ? Number(cell.dataset.value) : cell.textContent.toLowerCase();
    };
    const sort = () => {
      const before = header.getAttribute('aria-sort');
      // The largest number is the most interesting, and so is the first letter.
      const first = kind === 'number' ? 'descending' : 'ascending';
      const other = first === 'ascending' ? 'descending' : 'ascending';
      const direction = before === first ? other : first;
      headers.forEach((other) => other.removeAttribute('aria-sort'));
      header.setAttribute('aria-sort', direction);
      const sign = direction === 'ascending' ? 1 : -1;
      const sorted = rows.map((row) => [value(row), row]);
      sorted.sort(([a, first], [b, second]) =>
        a < b ? -sign : a > b ? sign : first.place - second.place);
      body.append(...sorted.map(([, { row }]) => row));
    };
    header.replaceChildren(el('button', { type: 'button', onclick: sort }, header.textContent));
  });
}
