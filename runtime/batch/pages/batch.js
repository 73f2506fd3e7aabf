// Draws the rows of the page: only those in view exist; a filter, a sort order, and the row that is chosen.
(async () => {
  "use strict";
  const one = id => document.getElementById(id);
  const made = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const packed = Uint8Array.from(atob(one("data").textContent.replace(/\s+/g, "")), text => text.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(stream).json();
  const names = data.columns.map(([name]) => name);
  const at = Object.fromEntries(names.map((name, place) => [name, place]));

  // -- columns -----------------------------------------------------------------------------------------------------

  const WIDTHS = {
    kind: "70px", image: "minmax(140px, 2fr)", what: "minmax(120px, 2fr)", input: "minmax(100px, 2fr)", machine: "70px",
    outcome: "80px", reason: "minmax(120px, 2fr)", sites: "70px", seconds: "70px", end: "80px", records: "70px",
    result: "minmax(90px, 1fr)", covered: "70px", path: "80px",
  };
  const shown = names.filter(name => name in WIDTHS);
  const columns = shown.map(name => WIDTHS[name]).join(" ");
  const TONES = { done: "good", refused: "soft" };
  const cell = (row, name) => {
    const value = row[at[name]];
    if (value === null) return made("span");
    const text = typeof value === "number" ? value.toLocaleString("en") : value;
    return made("span", name === "outcome" ? TONES[value] || "bad" : "", text);
  };

  // -- what is listed ----------------------------------------------------------------------------------------------

  const HEIGHT = 26, SPARE = 12;
  const list = one("rows"), space = list.querySelector(".space"), drawn = new Map();
  let rows = data.rows, chosen = -1, order = null;
  // Words of a row, in which filters are looked for; made when the first one is typed.
  let words = null;

  const matches = (row, place, parts) => parts.every(([name, text]) =>
    name ? String(row[at[name]] ?? "").toLowerCase().includes(text) : words[place].includes(text));

  function refilter() {
    const parts = one("filter").value.toLowerCase().split(/\s+/).filter(Boolean).map(part => {
      const colon = part.indexOf(":"), name = part.slice(0, Math.max(colon, 0));
      return name in at ? [name, part.slice(colon + 1)] : ["", part];
    });
    if (parts.length && !words) words = data.rows.map(row => row.join(" ").toLowerCase());
    rows = parts.length ? data.rows.filter((row, place) => matches(row, place, parts)) : data.rows.slice();
    if (order) {
      const place = at[order.name];
      const key = row => row[place] ?? "";
      rows.sort((a, b) => order.sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
    }
    chosen = -1;
    for (const node of drawn.values()) node.remove();
    drawn.clear();
    space.style.height = rows.length * HEIGHT + "px";
    list.scrollTop = 0;
    one("shown").textContent = parts.length ? rows.length.toLocaleString("en") + " of " + data.rows.length.toLocaleString("en") : "";
    show();
  }

  function draw(place) {
    const node = made("div", "row");
    node.style.top = place * HEIGHT + "px";
    node.style.gridTemplateColumns = columns;
    node.dataset.place = place;
    node.id = "row-" + place;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", place === chosen);
    for (const name of shown) node.append(cell(rows[place], name));
    return node;
  }

  function show() {
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(rows.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + SPARE);
    for (const [place, node] of drawn) if (place < first || place >= last) { node.remove(); drawn.delete(place); }
    for (let place = first; place < last; place += 1) {
      if (!drawn.has(place)) { const node = draw(place); drawn.set(place, node); list.append(node); }
    }
  }

  function take(place) {
    if (!rows.length) return;
    drawn.get(chosen)?.setAttribute("aria-selected", "false");
    chosen = Math.max(0, Math.min(rows.length - 1, place));
    const top = chosen * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    show();
    drawn.get(chosen).setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", "row-" + chosen);
    tell(rows[chosen]);
  }

  // -- the row that is chosen ----------------------------------------------------------------------------------------

  function tell(row) {
    const found = made("dl");
    data.columns.forEach(([name, meaning], place) => {
      if (row[place] === null) return;
      const term = made("dt", "", name);
      term.title = meaning;
      const text = name === "aggregations" ? aggregations(row[place]) : String(row[place]);
      found.append(term, made("dd", text.includes("\n") ? "text" : "", text));
    });
    one("detail").replaceChildren(found);
  }

  const aggregations = text => Object.entries(JSON.parse(text)).map(([name, entries]) =>
    "@" + name + "\n" + entries.map(([keys, value]) => "  " + keys.map(key => typeof key === "string" ? key : JSON.stringify(key)).join(", ").padEnd(40) + " " + JSON.stringify(value)).join("\n")).join("\n");

  // -- what the reader does ------------------------------------------------------------------------------------------

  const head = one("head");
  head.style.gridTemplateColumns = columns;
  for (const name of shown) {
    const button = made("button", "", name);
    button.type = "button";
    button.title = data.columns[at[name]][1];
    button.addEventListener("click", () => {
      order = { name, sign: order && order.name === name ? -order.sign : 1 };
      for (const other of head.children) other.removeAttribute("aria-sort");
      button.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
      refilter();
    });
    head.append(button);
  }
  list.addEventListener("scroll", show);
  new ResizeObserver(show).observe(list);
  list.addEventListener("click", event => {
    const row = event.target.closest(".row");
    if (row) take(+row.dataset.place);
  });
  const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 14, PageUp: -14, Home: -Infinity, End: Infinity };
  list.addEventListener("keydown", event => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    take(chosen + STEPS[event.key]);
  });
  one("filter").addEventListener("input", refilter);
  const theme = dark => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    one("theme").setAttribute("aria-pressed", dark);
  };
  one("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
  theme(matchMedia("(prefers-color-scheme: dark)").matches);
  document.addEventListener("keydown", event => {
    if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape") { one("filter").value = ""; refilter(); list.focus(); }
      return;
    }
    if (event.key === "/") { event.preventDefault(); one("filter").focus(); }
    if (event.key === "d") one("theme").click();
  });
  refilter();
  document.documentElement.dataset.ready = "yes";
})();
