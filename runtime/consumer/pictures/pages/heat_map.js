// Tells of a cell of a heat map: the one that is pointed at, or the one to which the arrows have walked. Cells are
// <rect class="c"> with data-c (column) and data-r (row), in <g class="panel">.
(() => {
  "use strict";
  const status = document.getElementById("status");
  const tell = cell => { status.textContent = cell.querySelector("title").textContent; };
  document.documentElement.addEventListener("mouseover", event => {
    const cell = event.target.closest("[data-c]");
    if (cell) tell(cell);
  });
  const place = cell => [+cell.dataset.c, +cell.dataset.r];
  // How far a cell is in a direction, and sideways of it; null: it is not in that direction.
  const distances = {
    ArrowRight: (column, row) => column > 0 ? column + 1e6 * Math.abs(row) : null,
    ArrowLeft: (column, row) => column < 0 ? -column + 1e6 * Math.abs(row) : null,
    ArrowDown: (column, row) => row > 0 ? row + 1e3 * Math.abs(column) : null,
    ArrowUp: (column, row) => row < 0 ? -row + 1e3 * Math.abs(column) : null,
  };
  for (const panel of document.querySelectorAll(".panel")) {
    const cells = [...panel.querySelectorAll("[data-c]")];
    let at = null;
    const walk = cell => {
      if (!cell) return;
      if (at) at.classList.remove("at");
      at = cell;
      at.classList.add("at");
      tell(at);
    };
    panel.addEventListener("focus", () => walk(at || cells[0]));
    panel.addEventListener("keydown", event => {
      const distance = distances[event.key];
      if (!distance || !at) return;
      event.preventDefault();
      const [column, row] = place(at);
      let best = null, least = Infinity;
      for (const cell of cells) {
        const [c, r] = place(cell), far = distance(c - column, r - row);
        if (far !== null && far < least) { best = cell; least = far; }
      }
      walk(best);
    });
  }
})();
