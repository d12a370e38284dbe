'use strict';

// Tables: a click on (or Enter in) the head of a column sorts; bodies are the unit, so that rows of a host stay together.
for (const table of document.querySelectorAll('table')) {
  const heads = [...table.tHead.rows[0].cells];
  const bodies = [...table.tBodies].map((body) => ({ body, keys: JSON.parse(body.dataset.sort) }));
  heads.forEach((head, column) => head.firstElementChild.addEventListener('click', () => {
    // Numbers are first wanted from the largest, names from A.
    const names = bodies.some(({ keys }) => typeof keys[column] === 'string');
    const before = head.getAttribute('aria-sort');
    const order = before === 'none' ? (names ? 'ascending' : 'descending')
      : before === 'ascending' ? 'descending' : 'ascending';
    heads.forEach((other) => other.setAttribute('aria-sort', other === head ? order : 'none'));
    const sign = order === 'ascending' ? 1 : -1;
    const sorted = [...bodies].sort((a, b) => compare(a.keys[column], b.keys[column], sign));
    table.append(...sorted.map(({ body }) => body));
  }));
}

// What has no number is last, whichever way a table is sorted.
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === 'string' || typeof b === 'string'
    ? String(a).localeCompare(String(b), 'en', { numeric: true }) : a - b);
}

// Plots: the nearest mark says what it is. Titles serve where there is no script; here they would show a second time.
const tip = document.getElementById('tip');
const REACH = 24;
for (const plot of document.querySelectorAll('svg.plot')) {
  const marks = [...plot.querySelectorAll('title')].map((title) => {
    const mark = title.parentNode;
    mark.dataset.tip = title.textContent;
    title.remove();
    return mark;
  });
  let shown = null;
  const show = (mark) => {
    shown?.classList.remove('hit');
    mark?.classList.add('hit');
    shown = mark;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const at = mark.getBoundingClientRect();
    const left = at.left + at.width / 2 - tip.offsetWidth / 2;
    tip.style.left = `${Math.max(4, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${at.top > tip.offsetHeight + 12 ? at.top - tip.offsetHeight - 8 : at.bottom + 8}px`;
  };
  const nearest = (event) => {
    let best = null;
    let reach = REACH;
    for (const mark of marks) {
      const at = mark.getBoundingClientRect();
      const distance = Math.hypot(at.left + at.width / 2 - event.clientX, at.top + at.height / 2 - event.clientY);
      if (distance < reach) [best, reach] = [mark, distance];
    }
    show(best);
  };
  plot.addEventListener('pointermove', nearest);
  plot.addEventListener('pointerdown', nearest);
  plot.addEventListener('pointerleave', (event) => { if (event.pointerType === 'mouse') show(null); });
  addEventListener('scroll', () => { if (shown) show(null); }, { passive: true });
}

// A link to a folded section opens it.
function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener('hashchange', unfold);
unfold();
