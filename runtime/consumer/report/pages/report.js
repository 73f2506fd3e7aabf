// Draws a run. Its data: "functions" are [module, function, probes, fired, hits, [[probe, hits, instruction], ...]],
// "records" [ns, CPU, probe, text], "aggregations" {name, function, keys, count, prints, asPrinted, heat, rows} with
// "calls" [function, in itself, with what it called, [[caller, count], ...], [[callee, count], ...]],
// rows [[key, ...], number] or [[key, ...], [[bucket, count], ...]]; pictures are SVG,
// and "code" is HTML: what ran, as the page of --coverage has it.
(async () => {
  const data = await unpacked();
  const VIEWS = ["overview", "aggregations", "flame", "calls", "functions", "records", "console", "code"];
  const plural = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
  const shown = value => typeof value === "number" ? number(value) : value === null ? "" : String(value);
  const share = (part, whole) => whole ? `${(100 * part / whole).toFixed(1)} %` : "";

  // -- parts -----------------------------------------------------------------------------------------------------

  function bar(value, most) {
    const node = made("span", "bar");
    if (!(value > 0)) return node;
    const fill = made("i");
    fill.style.width = 100 * value / most + "%";
    node.append(fill);
    return node;
  }

  function bars(rows) {
    const node = made("div", "bars"), most = Math.max(...rows.map(([, value]) => Number(value)));
    for (const [name, value] of rows) {
      const label = made("span", "", shown(name));
      label.title = label.textContent;
      node.append(label, bar(Number(value), most), made("span", "number", shown(value)));
    }
    return node;
  }

  // A picture has a document of its own, made again for another theme, which it would take from the system.
  const pictures = [];
  function draw(picture) {
    const dark = isDark() ? "all" : "not all";
    const text = picture.svg.replace("@media (prefers-color-scheme: dark)", `@media ${dark}`);
    if (picture.url) URL.revokeObjectURL(picture.url);
    picture.url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    picture.frame.src = picture.url;
  }

  function framed(svg, title, file) {
    const part = made("div"), frame = made("iframe", "picture"), save = made("a", "save", "Save the picture");
    frame.title = title;
    const size = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svg), height = /<svg[^>]* height="([\d.]+)"/.exec(svg);
    frame.style.height = height[1] + "px";
    if (size) frame.style.cssText = `aspect-ratio: ${size[1]} / ${size[2]}; min-width: 760px; max-width: ${1.2 * size[1]}px`;
    save.download = file;
    save.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    const room = made("div", "room");
    room.append(frame);
    part.append(save, made("h2", "", title), room);
    const picture = { svg, frame };
    pictures.push(picture);
    draw(picture);
    return part;
  }

  // -- tables: columns are {name, get, draw, size, isNumber}; headings sort ------------------------------------------

  class Table {
    constructor(columns, rows, label, choose = () => {}) {
      Object.assign(this, { columns, all: rows, sort: -1, isDown: false });
      this.node = made("div", "sorted");
      const head = made("div", "row head"), list = made("div", "list");
      list.id = "list-" + label.replace(/\W+/g, "-");
      list.tabIndex = 0;
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", label);
      list.append(made("div", "space"));
      this.heads = columns.map((column, place) => {
        const button = made("button", column.isNumber ? "number" : "", column.name);
        button.type = "button";
        button.addEventListener("click", () => this.by(place));
        head.append(button);
        return button;
      });
      this.template = columns.map(column => column.size).join(" ");
      head.style.gridTemplateColumns = this.template;
      this.node.append(head, list);
      this.list = new List(list, row => columns.map(column => this.cell(column, row)), choose);
      const show = this.list.show.bind(this.list);
      this.list.show = () => {
        show();
        for (const node of this.list.drawn.values()) node.style.gridTemplateColumns = this.template;
      };
      this.words = rows.map(row => columns.map(column => column.get(row)).join(" ").toLowerCase());
      this.order = rows.map((_, place) => place);
      this.filter("");
    }

    cell(column, row) {
      if (column.draw) return column.draw(row);
      const node = made("span", column.isNumber ? "number" : "", shown(column.get(row)));
      node.title = node.textContent;
      return node;
    }

    by(place) {
      this.isDown = this.sort === place ? !this.isDown : Boolean(this.columns[place].isNumber);
      this.sort = place;
      const get = this.columns[place].get, sign = this.isDown ? -1 : 1, all = this.all;
      const keys = all.map(row => get(row));
      const isNumber = this.columns[place].isNumber;
      this.order.sort((a, b) => sign * (isNumber ? Number(keys[a]) - Number(keys[b]) :
        String(keys[a]).localeCompare(String(keys[b]), "en", { numeric: true })) || a - b);
      this.heads.forEach((head, number) => head.setAttribute(
        "aria-sort", number !== place ? "none" : this.isDown ? "descending" : "ascending"));
      this.filter(this.text || "");
    }

    choose(wanted) {
      if (!this.list.rows.some(wanted)) {
        one("filter").value = "";
        this.filter("");
      }
      const place = this.list.rows.findIndex(wanted);
      if (place >= 0) this.list.take(place);
    }

    filter(text) {
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = this.order.filter(place => words.every(word => this.words[place].includes(word)));
      this.list.set(rows.map(place => this.all[place]));
      if (this.text !== undefined) this.list.take(0);
      this.text = text;
      return [rows.length, this.all.length];
    }
  }

  // -- views: each is drawn when it is looked at first; a view that can be filtered gives its table ------------------

  function overview() {
    const [probed, hit, hits, left] = data.coverage;
    const card = (count, what) => {
      const node = made("div", "card");
      node.append(made("b", "", count), made("span", "", what));
      one("cards").append(node);
      return node;
    };
    if (probed) {
      card(number(hits), "hits in functions");
      const meter = made("meter"), node = card(`${number(hit)} of ${number(probed)}`, `functions hit, ${share(hit, probed)}`);
      Object.assign(meter, { max: probed, value: hit });
      meter.setAttribute("aria-label", "functions hit");
      node.append(meter);
    }
    if (data.recordCount) card(number(data.recordCount), "records");
    if (data.aggregations.length) card(number(data.aggregations.length), data.aggregations.length === 1 ? "aggregation" : "aggregations");
    const hottest = data.functions.filter(row => row[4]).slice(0, 15);
    if (hottest.length) {
      one("hottest").append(made("h2", "", "Hottest functions"), bars(hottest.map(row => [row[1], row[4]])));
      if (left) one("hottest").append(made("p", "none", `${number(left)} functions are not in the table: it has those with the most hits.`));
    }
    if (data.timeline) one("timeline").append(framed(data.timeline, "Hits over time", "timeline.svg"));
  }

  function aggregations() {
    const list = new List(one("names"), row => [
      made("span", "", row.name), made("span", "", `${row.function}(), ${number(row.count)}`),
    ], aggregation);
    list.set(data.aggregations);
    list.take(0);
    return null;
  }

  const bucketTotal = buckets => buckets.reduce((sum, [, count]) => sum + Number(count), 0);
  const nameOf = (row, keys) => keys.map(shown).join(", ");

  function aggregation(row) {
    const title = made("h2", "", `${row.name} = ${row.function}()`);
    title.append(made("small", "", plural(row.count, "key")));
    const place = one("aggregation"), isDistribution = row.rows.length > 0 && Array.isArray(row.rows[0][1]);
    place.replaceChildren(title);
    const notes = [];
    if (row.count > row.rows.length) notes.push(`The first ${number(row.rows.length)} of ${number(row.count)} keys are here.`);
    if (row.asPrinted) notes.push(`As it was when the program printed it last, of ${plural(row.prints, "time")}: nothing was added since it was cleared.`);
    if (notes.length) place.append(made("p", "none", notes.join(" ")));
    if (isDistribution) distribution(place, row); else plain(place, row);
    if (row.heat) {
      const part = framed(row.heat, `${row.name} over time`, "heatmap.svg");
      part.className = "pad";
      place.append(part);
    }
  }

  const keyColumns = row => Array.from({ length: row.keys }, (_, place) => ({
    name: row.keys === 1 ? "key" : `key ${place + 1}`, get: one => one[0][place], size: "minmax(80px, 1fr)",
    isNumber: row.rows.every(one => typeof one[0][place] === "number"),
  }));
  let inner = null;  // the table of the aggregation that is shown

  function plain(place, row) {
    const values = row.rows.map(one => Number(one[1])), most = Math.max(0, ...values.slice(0, 50000).map(Math.abs));
    if (!row.keys) {
      const part = made("div", "pad");
      part.append(made("div", "card", shown(row.rows[0][1])));
      place.append(part);
      inner = null;
      return;
    }
    inner = new Table([
      ...keyColumns(row),
      { name: row.function, get: one => one[1], size: "110px", isNumber: true },
      { name: "", get: one => one[1], draw: one => bar(Math.abs(Number(one[1])), most), size: "minmax(120px, 1.2fr)", isNumber: true },
    ], row.rows, `keys of ${row.name}`);
    inner.by(row.keys);
    place.append(inner.node);
  }

  function distribution(place, row) {
    const chart = made("div", "pad");
    const show = one => {
      const name = row.keys ? nameOf(row, one[0]) : row.name;
      chart.replaceChildren(made("h2", "", name), bars(one[1]));
      if (!one[1].length) chart.append(made("p", "none", "No values."));
    };
    inner = null;
    if (row.rows.length > 1) {
      const most = Math.max(...row.rows.map(one => bucketTotal(one[1])));
      inner = new Table([
        ...keyColumns(row),
        { name: "values", get: one => bucketTotal(one[1]), size: "110px", isNumber: true },
        { name: "", get: one => bucketTotal(one[1]), draw: one => bar(bucketTotal(one[1]), most), size: "minmax(120px, 1.2fr)", isNumber: true },
      ], row.rows, `keys of ${row.name}`, show);
      inner.by(row.keys);
      place.append(inner.node, chart);
      inner.list.take(0);
    } else {
      place.append(chart);
      show(row.rows[0]);
    }
  }

  function flame() {
    one("view-flame").append(framed(data.flame, "Stacks: the width is what was counted", "flamegraph.svg"));
  }

  function calls() {
    const most = data.calls[0][2];
    const table = new Table([
      { name: "function", get: row => row[0], size: "minmax(140px, 3fr)" },
      { name: "itself", get: row => row[1], size: "minmax(50px, 90px)", isNumber: true },
      { name: "with callees", get: row => row[2], size: "minmax(76px, 100px)", isNumber: true },
      { name: "", get: row => row[2], draw: row => bar(row[2], most), size: "minmax(40px, 1fr)", isNumber: true },
    ], data.calls, "Callers and callees", row => one("call").replaceChildren(made("h2", "", row[0]),
      ...neighbours("Called by", row[3], table), ...neighbours("Calls", row[4], table)));
    one("view-calls").querySelector("p").after(table.node);
    table.list.take(0);
    return table;
  }

  // Functions beside one: each leads to its own row, if that is among those that the filter leaves.
  function neighbours(title, rows, table) {
    const parts = [made("h2", "", title)], node = made("table"), most = Math.max(0, ...rows.map(row => row[1]));
    for (const [name, count] of rows) {
      const line = made("tr"), cell = made("td", "code"), link = made("button", "link", name), wide = made("td", "wide");
      link.type = "button";
      link.addEventListener("click", () => table.choose(row => row[0] === name));
      cell.append(link);
      wide.append(bar(count, most));
      line.append(made("td", "number", number(count)), cell, wide);
      node.append(line);
    }
    parts.push(rows.length ? node : made("p", "none", "Nobody, in what was counted."));
    return parts;
  }

  function functions() {
    const [probed, hit, , left] = data.coverage;
    const most = Math.max(...data.functions.map(row => row[4]));
    one("covered").textContent = `${number(hit)} of ${plural(probed, "function")} with probes were hit` +
      (left ? `; those with the most hits are here, and ${number(left)} are not` : "") + ".";
    const table = new Table([
      { name: "function", get: row => row[1], size: "minmax(120px, 2fr)" },
      { name: "module", get: row => row[0], size: "minmax(60px, 1fr)" },
      { name: "probes hit", get: row => row[3] / row[2], size: "minmax(66px, 90px)", isNumber: true,
        draw: row => made("span", "number", `${number(row[3])} of ${number(row[2])}`) },
      { name: "hits", get: row => row[4], size: "minmax(60px, 100px)", isNumber: true },
      { name: "", get: row => row[4], draw: row => bar(row[4], most), size: "minmax(40px, 1.4fr)", isNumber: true },
    ], data.functions, "Functions", chosen);
    one("covered").after(table.node);
    table.list.take(0);
    return table;
  }

  function chosen([module, name, probes, fired, hits, parts]) {
    const title = made("h2", "", name), table = made("table"), most = Math.max(...parts.map(part => part[1]));
    title.append(made("small", "", `${module}, ${number(fired)} of ${plural(probes, "probe")} hit, ${plural(hits, "hit")}`));
    for (const [probe, count, instruction] of parts) {
      const row = made("tr", count ? "" : "never"), last = made("td", "wide");
      last.append(bar(count, most));
      row.append(made("td", "code", probe), made("td", "code", instruction), made("td", "number", number(count)), last);
      table.append(row);
    }
    one("function").replaceChildren(title, parts.length ? table : made("p", "none", "Its probes are too many for this page."));
  }

  function records() {
    const kept = data.records.length;
    one("kept").textContent = kept < data.recordCount ?
      `The first and the last of ${plural(data.recordCount, "record")}: ${number(data.recordCount - kept)} between them are left out.` :
      `${plural(kept, "record")}; times are since the start.`;
    const time = ns => (ns / 1e6).toLocaleString("en", { minimumFractionDigits: 6 }) + " ms";
    const table = new Table([
      { name: "time", get: row => row[0], draw: row => made("span", "number", time(row[0])), size: "minmax(100px, 150px)", isNumber: true },
      { name: "CPU", get: row => row[1], size: "50px", isNumber: true },
      { name: "probe", get: row => row[2], size: "minmax(120px, 1fr)" },
      { name: "recorded", get: row => row[3], size: "minmax(160px, 1.6fr)" },
    ], data.records, "Records", row =>
      one("record").replaceChildren(made("h2", "", row[2]), made("p", "", `${time(row[0])}, CPU ${row[1]}`), made("pre", "", row[3])));
    one("kept").after(table.node);
    table.list.take(0);
    return table;
  }

  function consoleText() {
    const [head, tail, left] = data.console, place = one("view-console");
    place.append(made("pre", "", head));
    if (left) place.append(made("p", "none", `${number(left)} bytes are left out here.`));
    if (tail) place.append(made("pre", "", tail));
  }

  // Functions and source lines, escaped where they were made. No script can be in it: the page's policy lets none run.
  function code() {
    one("view-code").innerHTML = data.code;
  }

  const drawings = { overview, aggregations, flame, calls, functions, records, console: consoleText, code };
  const isThere = {
    overview: true, aggregations: data.aggregations.length > 0, flame: Boolean(data.flame),
    calls: data.calls.length > 0,
    functions: data.functions.length > 0, records: data.records.length > 0, console: data.console[0].length > 0,
    code: data.code.length > 0,
  };
  const views = VIEWS.filter(name => isThere[name]), tables = new Map();
  let view = "";

  function show(name) {
    if (!isThere[name]) return;
    view = name;
    chooseTab(VIEWS, name);
    for (const other of VIEWS) one("view-" + other).hidden = other !== name;
    if (!tables.has(name)) tables.set(name, drawings[name]() || null);
    one("filter").disabled = !table();
    filter();
    history.replaceState(null, "", "#" + name);
  }

  const table = () => view === "aggregations" ? inner : tables.get(view);

  function filter() {
    const found = table() ? table().filter(one("filter").value) : [0, 0];
    one("shown").textContent = found[0] === found[1] ? "" : `${number(found[0])} of ${number(found[1])}`;
  }

  const keys = {
    "/": () => one("filter").focus(), d: otherTheme,
    Escape: () => { one("filter").value = ""; filter(); },
    ...Object.fromEntries(VIEWS.map((name, place) => [place + 1, () => show(name)])),
  };
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === one("filter") && event.key !== "Escape") {
      if ((event.key === "Enter" || event.key === "ArrowDown") && table()) { table().list.node.focus(); event.preventDefault(); }
      return;
    }
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  one("filter").addEventListener("input", filter);
  document.addEventListener("themed", () => pictures.forEach(draw));
  for (const name of VIEWS) one("tab-" + name).hidden = !isThere[name];
  const count = (name, text) => { one("tab-" + name).querySelector("span").textContent = text; };
  count("aggregations", number(data.aggregations.length));
  count("calls", number(data.calls.length));
  count("functions", number(data.coverage[0]));
  count("records", number(data.recordCount));
  walkTabs(views, show);
  // A run that only took samples has nothing to say that its flame graph does not show.
  const first = data.flame && !data.coverage[0] && !data.recordCount ? "flame" : "overview";
  show(views.includes(location.hash.slice(1)) ? location.hash.slice(1) : first);
  document.documentElement.dataset.ready = "true";
})();
