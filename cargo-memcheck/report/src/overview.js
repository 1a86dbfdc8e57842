// The table of tests: sorted by a column, filtered by status, searched by text.

import { command, el, withCopies } from './dom.js';
import { exact } from './format.js';

const STATUSES = ['failed', 'not-measured', 'needs-review', 'passed', 'ignored'];

export function startOverview() {
  const tests = document.getElementById('tests');
  for (const code of document.querySelectorAll('code.copy')) code.replaceWith(command(code.textContent));
  document.querySelectorAll('.hinted').forEach(withCopies);
  if (!tests) return;
  const rows = [...tests.querySelectorAll('tbody tr:not(.group)')].map((row, place) => ({
    row, place, status: row.dataset.status, isNew: 'new' in row.dataset,
    text: `${row.textContent} ${row.parentElement.rows[0].textContent}`.toLowerCase(),
  }));
  const failures = [...document.querySelectorAll('.failure')].map((item) =>
    ({ item, test: item.querySelector('a.test').getAttribute('href') }));
  const attention = document.querySelector('.failure-group')?.parentElement.querySelector('h2');
  const state = { status: null, text: '' };

  const shown = el('output', { class: 'shown', 'aria-live': 'polite' });
  const search = el('input', {
    type: 'search', id: 'search', placeholder: 'Search tests, devices, findings',
    oninput: () => { state.text = search.value.trim().toLowerCase(); apply(); },
  });
  const none = el('p', { class: 'muted', hidden: true },
    'No test matches. ', el('button', { type: 'button', class: 'link', onclick: clear }, 'Show all tests'));
  const order = el('select', { id: 'order' });
  // Above the failures too, which it filters as it does the table.
  document.querySelector('.cards').after(
    el('div', { class: 'tools', hidden: rows.length < 2 },
      el('label', { for: 'search', class: 'hidden' }, 'Search'), search, shown),
    none);
  tests.parentElement.before(
    el('div', { class: 'tools', hidden: rows.length < 2 }, el('label', { for: 'order' }, 'Sort by'), order));

  const cards = startCards(state, apply);
  stateConstants(tests, rows);
  startSorting(tests, rows, order);
  const noun = rows.length === 1 ? 'test' : 'tests';
  function apply() {
    const words = state.text.split(/\s+/).filter(Boolean);
    let count = 0;
    const links = new Set();
    for (const { row, text, status, isNew } of rows) {
      const fits = (!state.status || status === state.status || (state.status === 'new' && isNew))
        && words.every((word) => text.includes(word));
      row.hidden = !fits;
      count += fits;
      if (fits) links.add(row.querySelector('a.test').getAttribute('href'));
    }
    for (const { rows: [group, ...others] } of tests.tBodies) {
      group.hidden = others.every((row) => row.hidden);
    }
    for (const { item, test } of failures) item.hidden = !links.has(test);
    for (const group of document.querySelectorAll('.failure-group')) {
      group.hidden = ![...group.querySelectorAll('.failure')].some((item) => !item.hidden);
    }
    none.hidden = count > 0;
    tests.hidden = count === 0;
    if (attention) attention.hidden = failures.every(({ item }) => item.hidden);
    shown.textContent = count === rows.length
      ? `${exact(count)} ${noun}` : `${exact(count)} of ${exact(rows.length)} ${noun}`;
    for (const [status, card] of cards) card.setAttribute('aria-pressed', status === state.status);
  }
  function clear() {
    Object.assign(state, { status: null, text: '' });
    search.value = '';
    apply();
    search.focus();
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

/** Hides the columns in which all tests are equal and the device of all, and states their values instead. */
function stateConstants(tests, rows) {
  const headers = [...tests.tHead.rows[0].cells];
  const equal = [];
  const [device, ...others] = new Set(rows.map(({ row }) => row.dataset.device));
  if (others.length === 0 && rows.length > 1) {
    tests.querySelectorAll('.device').forEach((of) => { of.hidden = true; });
    equal.push(`device ${device}`);
  }
  headers.forEach((header, column) => {
    const values = new Set(rows.map(({ row }) => row.cells[column].textContent.trim()));
    const [value] = values;
    const isEmpty = values.size === 1 && (value === '' || value === '\u2014');
    if (column === 0 || (!isEmpty && (values.size > 1 || rows.length === 1))) return;
    for (const cell of [header, ...rows.map(({ row }) => row.cells[column])]) cell.hidden = true;
    if (!isEmpty) equal.push(`${header.textContent.toLowerCase()} ${value}`);
  });
  const shown = headers.filter((header) => !header.hidden).length;
  for (const { rows: [group] } of tests.tBodies) group.cells[0].colSpan = shown;
  if (equal.length > 0) {
    tests.parentElement.before(el('p', { class: 'muted' }, `All tests: ${equal.join(', ')}`));
  }
}

/** By status, then in the order of the cards, then by name. */
const byResult = (row, status) =>
  [STATUSES.indexOf(status), row.dataset.kind ?? '', row.cells[0].textContent.trim()].join(' ');

/** Orders without a column: by an attribute of the row. */
const FURTHER_ORDERS = [
  { title: 'Device', attribute: 'device', kind: 'text' },
  { title: 'Finding', attribute: 'finding', kind: 'text' },
  { title: 'Change of the peak', attribute: 'change', kind: 'number' },
];

/** Sorts the tests of each executable, and the executables by their first test. */
function startSorting(tests, rows, order) {
  const headers = [...tests.tHead.rows[0].cells];
  const groups = [...tests.tBodies].map((group) =>
    ({ group, rows: rows.filter(({ row }) => row.parentElement === group) }));
  const sorts = new Map();
  const add = (name, title, kind, value, header) => {
    let direction = null;
    // The largest number is the most interesting, and so is the first letter.
    const [first, other] = kind === 'number' ? ['descending', 'ascending'] : ['ascending', 'descending'];
    const sort = () => {
      direction = order.dataset.by === name && direction === first ? other : first;
      order.dataset.by = name;
      headers.forEach((each) => each.removeAttribute('aria-sort'));
      header?.setAttribute('aria-sort', direction);
      order.value = name;
      const sign = direction === 'ascending' ? 1 : -1;
      const compare = ([a, one], [b, another]) => (a < b ? -sign : a > b ? sign : one - another);
      const sorted = groups.map((of) => {
        const keys = of.rows.map((row) => [value(row), row.place, row.row]).sort(compare);
        of.group.append(...keys.map(([, , row]) => row));
        return [keys[0][0], keys[0][1], of.group];
      });
      tests.append(...sorted.sort(compare).map(([, , group]) => group));
    };
    sorts.set(name, sort);
    order.append(el('option', { value: name }, title));
    header?.replaceChildren(el('button', { type: 'button', onclick: sort }, title));
  };
  headers.forEach((header, column) => {
    const kind = header.dataset.sort;
    if (!kind || header.hidden) return;
    add(String(column), header.textContent, kind, ({ row, status }) => {
      const cell = row.cells[column];
      if (kind === 'status') return byResult(row, status);
      return kind === 'number' ? Number(cell.dataset.value) : cell.textContent.toLowerCase();
    }, header);
  });
  for (const { title, attribute, kind } of FURTHER_ORDERS) {
    // A test without the attribute comes last.
    const value = ({ row: { dataset } }) =>
      (kind === 'number' ? Number(dataset[attribute] ?? -Infinity) : dataset[attribute] ?? '\uffff');
    if (new Set(rows.map(value)).size > 1) add(attribute, title, kind, value, null);
  }
  order.addEventListener('change', () => sorts.get(order.value)());
  // Failures first, ignored tests last.
  const status = headers.findIndex((header) => header.dataset.sort === 'status');
  (sorts.get(String(status)) ?? sorts.get('0'))();
}
