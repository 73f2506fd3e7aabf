// Draws the rows of the page: a filter, a sort order, and the row that is chosen.
(async () => {
  const data = await unpacked();
  const names = data.columns.map(([name]) => name);
  const at = Object.fromEntries(names.map((name, place) => [name, place]));

  // -- columns -----------------------------------------------------------------------------------------------------

  const WIDTHS = {
    kind: "70px", image: "minmax(140px, 2fr)", what: "minmax(120px, 2fr)", input: "minmax(100px, 2fr)", machine: "70px",
    outcome: "80px", reason: "minmax(120px, 2fr)", report: "60px", sites: "70px", seconds: "70px", end: "80px", records: "70px",
    result: "minmax(90px, 1fr)", covered: "70px", path: "80px",
  };
  const shown = names.filter(name => name in WIDTHS);
  const widths = shown.map(name => WIDTHS[name]).join(" ");
  const least = shown.reduce((sum, name) => sum + 14 + parseInt(WIDTHS[name].replace("minmax(", "")), 24);
  document.styleSheets[0].insertRule(`.table .row { grid-template-columns: ${widths}; }`);
  document.styleSheets[0].insertRule(`.table > * { min-width: ${least + 16}px; }`);
  const TONES = { done: "good", refused: "soft" };
  const cell = (row, name) => {
    const value = row[at[name]];
    if (value === null) return made("span");
    if (name === "report") return link(value, "report");
    const text = typeof value === "number" ? number(value) : value;
    return made("span", name === "outcome" ? TONES[value] || "bad" : "", text);
  };

  function link(place, text) {
    const node = made("a", "", text);
    if (/^reports\/[0-9a-f]+\.html$/.test(place)) node.href = place;
    return node;
  }

  // -- what is listed ----------------------------------------------------------------------------------------------

  const list = new List(one("rows"), row => shown.map(name => cell(row, name)), tell);
  let order = null;
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
    const rows = parts.length ? data.rows.filter((row, place) => matches(row, place, parts)) : data.rows.slice();
    if (order) {
      const place = at[order.name];
      const key = row => row[place] ?? "";
      rows.sort((a, b) => order.sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
    }
    list.set(rows);
    one("shown").textContent = parts.length ? number(rows.length) + " of " + number(data.rows.length) : "";
  }

  // -- the row that is chosen ----------------------------------------------------------------------------------------

  function tell(row) {
    const found = made("dl");
    data.columns.forEach(([name, meaning], place) => {
      if (row[place] === null || row[place] === "") return;
      const term = made("dt", "", name);
      term.title = meaning;
      const text = name === "aggregations" ? aggregations(row[place]) : String(row[place]);
      const told = made("dd", text.includes("\n") ? "text" : "", name === "report" ? undefined : text);
      if (name === "report") told.append(link(text, text));
      found.append(term, told);
    });
    one("detail").replaceChildren(found);
  }

  const aggregations = text => Object.entries(JSON.parse(text)).map(([name, entries]) => {
    const rows = entries.map(([keys, value]) =>
      [keys.map(key => typeof key === "string" ? key : JSON.stringify(key)).join(", "), JSON.stringify(value)]);
    const width = Math.min(40, Math.max(...rows.map(([keys]) => keys.length)));
    const lines = rows.map(([keys, value]) => `  ${keys.padEnd(width)}  ${value}`);
    return [name === "_" ? "@" : "@" + name, ...lines].join("\n");
  }).join("\n");

  // -- what the reader does ------------------------------------------------------------------------------------------

  const head = one("head");
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
  one("filter").addEventListener("input", refilter);
  document.addEventListener("keydown", event => {
    if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape") { one("filter").value = ""; refilter(); one("rows").focus(); }
      return;
    }
    if (event.key === "/") { event.preventDefault(); one("filter").focus(); }
    if (event.key === "d") otherTheme();
  });
  refilter();
  document.documentElement.dataset.ready = "yes";
})();
