// What a report does besides being read: tables sort and fit, timelines have tabs and zoom. No other
// file, no network.
'use strict';

// A title of a column sorts its table: numbers by value, then text, then what is missing; equal
// ones stay in their order.
function sortable(table) {
  const headers = [...table.tHead.rows[0].cells];
  const say = document.createElement('p');
  say.className = 'hidden';
  say.setAttribute('role', 'status');
  table.parentElement.after(say);
  const keyOf = (cell) => {
    const missing = 'missing' in cell.dataset || Number.isNaN(Number(cell.dataset.v ?? 0));
    const number = cell.dataset.v !== undefined;
    return {rank: missing ? 2 : number ? 0 : 1, value: number ? Number(cell.dataset.v) : cell.textContent};
  };
  headers.forEach((th, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener('click', () => {
      const down = th.getAttribute('aria-sort') === 'ascending';
      for (const h of headers) h.removeAttribute('aria-sort');
      th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const rows = [...table.tBodies[0].rows].map((row) => ({row, ...keyOf(row.cells[column])}));
      const order = (a, b) => typeof a === 'number' ? a - b || 0 : a.localeCompare(b, 'en', {numeric: true});
      rows.sort((a, b) => a.rank - b.rank || (a.rank === 2 ? 0 : (down ? -1 : 1) * order(a.value, b.value)));
      table.tBodies[0].append(...rows.map((r) => r.row));
      drawBars(table, rows.map((r) => ({cell: r.row.cells[column], ...r})));
      const title = button.querySelector('span').textContent;
      say.textContent = `sorted by ${title}, ${down ? 'descending' : 'ascending'}`;
    });
  });
}

// Under each number of a column a bar of its share of the largest, where none is negative.
function drawBars(table, cells) {
  for (const old of table.querySelectorAll('.bar')) old.classList.remove('bar');
  const numbers = cells.filter((c) => c.rank === 0), largest = Math.max(...numbers.map((c) => c.value));
  if (!(largest > 0) || !Number.isFinite(largest) || numbers.some((c) => c.value < 0)) return;
  for (const {cell, value} of numbers) {
    cell.classList.add('bar');
    cell.style.setProperty('--share', (100 * value / largest).toFixed(1));
  }
}

// On narrow screens the rows of a table that is too wide become cards.
function fitTables() {
  for (const region of document.querySelectorAll('.scroll')) {
    if (!region.querySelector('thead')) continue;
    region.classList.remove('cards');
    if (innerWidth > 1000 || region.scrollWidth <= region.clientWidth + 1) continue;
    region.classList.add('cards');
    labelCells(region.querySelector('table'));
  }
}

// Each cell with its column's title, unit and origin: "step [ms, measured]".
function labelCells(table) {
  const labels = [...table.tHead.rows[0].cells].map((th) => {
    const [title, ...rest] = [...th.querySelectorAll('span')].map((s) => s.textContent);
    return rest.length ? `${title} [${rest.join(', ')}]` : title;
  });
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, i) => { if (i) cell.dataset.label = labels[i]; });
  }
}

// One pane at a time, chosen by its scheme and origin.
function tabs(panes) {
  if (panes.length < 2) return;
  const chosen = {...panes[0].dataset}, bar = document.createElement('div'), buttons = [];
  bar.className = 'tabs';
  const paneOf = (want) => panes.find((p) => p.dataset.scheme === want.scheme && p.dataset.origin === want.origin);
  const show = () => {
    const pane = paneOf(chosen) ?? panes.find((p) => p.dataset.scheme === chosen.scheme);
    for (const p of panes) p.hidden = p !== pane;
    for (const {b, key, value} of buttons) {
      b.setAttribute('aria-pressed', pane.dataset[key] === value);
      b.disabled = key === 'origin' && !paneOf({scheme: pane.dataset.scheme, origin: value});
    }
    fitTables();
  };
  for (const key of ['scheme', 'origin']) {
    const group = document.createElement('div');
    group.setAttribute('role', 'group');
    group.setAttribute('aria-label', key);
    for (const value of new Set(panes.map((p) => p.dataset[key]))) {
      const b = document.createElement('button');
      b.type = 'button';
      b.textContent = value;
      b.addEventListener('click', () => {
        chosen[key] = value;
        show();
      });
      buttons.push({b, key, value});
      group.append(b);
    }
    bar.append(group);
  }
  panes[0].before(bar);
  show();
}

for (const table of document.querySelectorAll('table')) if (table.tHead) sortable(table);
const timelines = [...document.querySelectorAll('figure.timeline')].map((figure) => new Timeline(figure));
tabs([...document.querySelectorAll('.pane')]);
fitTables();
addEventListener('resize', fitTables);
document.addEventListener('toggle', fitTables, true);
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
  for (const region of document.querySelectorAll('.cards')) region.classList.remove('cards');
});
addEventListener('afterprint', fitTables);
