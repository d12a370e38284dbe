'use strict';

// Figures are drawn when they come into view, in the colors of the page, and again when these change.
const dark = matchMedia('(prefers-color-scheme: dark)');
const drawn = new Set();
function draw(plot) {
  const style = getComputedStyle(document.documentElement);
  const [text, rule, soft] = ['--text', '--rule', '--soft'].map((name) => style.getPropertyValue(name).trim());
  const words = { labelColor: soft, titleColor: text, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal' };
  const config = {
    background: 'transparent', font: 'system-ui, sans-serif', view: { stroke: null },
    axis: { ...words, gridColor: rule, domainColor: soft, tickColor: soft }, axisX: { labelFlush: true },
    legend: { ...words, orient: 'top', columns: Math.max(2, Math.floor(plot.clientWidth / 120)) }, rule: { color: soft },
  };
  plot.spec ??= JSON.parse(plot.firstElementChild.textContent);
  drawn.add(plot);
  // Expressions are interpreted: the page forbids making programs of text.
  vegaEmbed(plot, plot.spec, {
    mode: 'vega-lite', renderer: 'svg', actions: false, ast: true, config, tooltip: { theme: dark.matches ? 'dark' : 'light' },
  });
}
const seen = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
  if (isIntersecting) { seen.unobserve(target); draw(target); }
}), { rootMargin: '300px' });
document.querySelectorAll('.plot').forEach((plot) => seen.observe(plot));
dark.addEventListener('change', () => drawn.forEach(draw));
// Paper has no view to come into.
addEventListener('beforeprint', () => document.querySelectorAll('.plot').forEach((plot) => drawn.has(plot) || draw(plot)));

// Tables: a click on (or Enter in) the head of a column sorts; what has no number is last either way.
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => row.cells[column].firstChild.firstChild?.textContent.replaceAll(',', '').trim() ?? '';
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const rising = head.getAttribute('aria-sort') === 'descending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', rising ? 'ascending' : 'descending');
      const keyed = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
      const names = keyed.some(([text]) => text !== '–' && Number.isNaN(parseFloat(text)));
      keyed.sort(([a], [b]) => {
        if (names) return (rising ? 1 : -1) * b.localeCompare(a, 'en', { numeric: true });
        const [x, y] = [parseFloat(a), parseFloat(b)];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return (rising ? 1 : -1) * (x - y);
      });
      table.tBodies[0].append(...keyed.map(([, row]) => row));
    };
    head.addEventListener('click', sort);
    head.addEventListener('keydown', (event) => { if (event.key === 'Enter') sort(); });
  });
}

// Pictures: a click shows one large; a slider moves the border between host and TPA.
const large = document.getElementById('large');
for (const button of document.querySelectorAll('.enlarge')) {
  button.addEventListener('click', () => {
    const { src, alt } = button.firstElementChild;
    large.querySelector('img').src = src;
    large.querySelector('p').textContent = alt;
    large.showModal();
  });
}
large.addEventListener('click', (event) => { if (event.target === large) large.close(); });
for (const input of document.querySelectorAll('.slider input')) {
  input.addEventListener('input', () => input.parentElement.style.setProperty('--at', `${input.value}%`));
}

// A link to a folded section opens it.
function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener('hashchange', unfold);
unfold();
