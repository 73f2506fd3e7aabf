// Zoom, search and keyboard of a flame graph. Frames are <g class="f"> with data-x, data-w (parts of the whole) and
// data-d (depth); a frame comes before those that it called.
(() => {
  "use strict";
  const svg = document.documentElement, one = id => document.getElementById(id);
  const frames = [...document.querySelectorAll(".f")].map(node => ({
    node, rect: node.querySelector("rect"), text: node.querySelector("text"),
    name: node.dataset.name, x: +node.dataset.x, w: +node.dataset.w, depth: +node.dataset.d,
    told: node.querySelector("title").textContent, found: false,
  }));
  const byNode = new Map(frames.map(frame => [frame.node, frame]));
  const character = 7.25, status = one("status"), search = one("search");
  const little = 1e-9;
  let shown = frames[0], current = frames[0];

  const holds = (outer, inner) => outer.x <= inner.x + little && outer.x + outer.w >= inner.x + inner.w - little;

  function fit(frame, width) {
    const pixels = width * svg.clientWidth, room = Math.floor((pixels - 6) / character);
    const name = frame.name;
    frame.text.textContent = room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 1) + "…";
  }

  function draw() {
    for (const frame of frames) {
      const isAbove = frame.depth < shown.depth && holds(frame, shown);
      const isWithin = frame.depth >= shown.depth && holds(shown, frame);
      frame.node.classList.toggle("away", !isAbove && !isWithin);
      frame.node.classList.toggle("above", isAbove);
      if (!isAbove && !isWithin) continue;
      const x = isAbove ? 0 : (frame.x - shown.x) / shown.w, width = isAbove ? 1 : frame.w / shown.w;
      frame.rect.setAttribute("x", 100 * x + "%");
      frame.rect.setAttribute("width", 100 * width + "%");
      frame.text.setAttribute("x", 100 * x + "%");
      fit(frame, width);
    }
    one("reset").disabled = shown === frames[0];
  }

  function zoom(frame) {
    shown = frame;
    draw();
    focus(frame);
    status.textContent = frame.told;
    history.replaceState(null, "", "#" + (frames.indexOf(frame) || ""));
  }

  function focus(frame) {
    current.node.setAttribute("tabindex", "-1");
    current = frame;
    frame.node.setAttribute("tabindex", "0");
    frame.node.focus({ preventScroll: false });
  }

  // How much of the whole is in what was found: a frame within a found one adds nothing.
  function find() {
    const text = search.value;
    let matches = () => false;
    if (text) {
      try {
        const pattern = new RegExp(text, "i");
        matches = name => pattern.test(name);
      } catch {
        matches = name => name.toLowerCase().includes(text.toLowerCase());
      }
    }
    let end = -1, part = 0, count = 0;
    for (const frame of frames) {
      frame.found = frame.depth > 0 && matches(frame.name);
      frame.node.classList.toggle("found", frame.found);
      if (!frame.found) continue;
      count += 1;
      if (frame.x >= end - little) {
        end = frame.x + frame.w;
        part += frame.w;
      }
    }
    status.textContent = text ? `${count} frames match, ${(100 * part).toFixed(2)} %` : shown.told;
  }

  const visible = frame => !frame.node.classList.contains("away");
  const neighbours = {
    ArrowDown: frame => frames.find(other => other.depth === frame.depth - 1 && holds(other, frame)),
    ArrowUp: frame => frames.filter(other => other.depth === frame.depth + 1 && visible(other) && holds(frame, other))
      .reduce((best, other) => (best && best.w >= other.w ? best : other), undefined),
    ArrowRight: frame => frames.filter(other => other.depth === frame.depth && visible(other) && other.x > frame.x)
      .reduce((best, other) => (best && best.x <= other.x ? best : other), undefined),
    ArrowLeft: frame => frames.filter(other => other.depth === frame.depth && visible(other) && other.x < frame.x)
      .reduce((best, other) => (best && best.x >= other.x ? best : other), undefined),
    Home: () => frames[0],
  };

  svg.addEventListener("click", event => {
    const node = event.target.closest(".f");
    if (node) zoom(byNode.get(node));
  });
  svg.addEventListener("mouseover", event => {
    const node = event.target.closest(".f");
    if (node) status.textContent = byNode.get(node).told;
  });
  svg.addEventListener("keydown", event => {
    if (event.target === search) {
      if (event.key === "Escape") { search.value = ""; find(); focus(current); }
      return;
    }
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const to = neighbours[event.key];
    if (to) {
      const frame = to(current);
      if (frame) { focus(frame); status.textContent = frame.told; }
    } else if (event.key === "Enter" || event.key === " ") {
      if (event.target.closest(".f")) zoom(current); else return;
    } else if (event.key === "Escape") zoom(frames[0]);
    else if (event.key === "/") search.focus();
    else return;
    event.preventDefault();
  });
  search.addEventListener("input", find);
  one("reset").addEventListener("click", () => zoom(frames[0]));
  addEventListener("resize", draw);
  const wanted = frames[+location.hash.slice(1)];
  if (wanted) shown = wanted;
  draw();
  status.textContent = shown.told;
})();
