// Draws the sites of the page: lists of which only the rows in view exist, a filter, and the site that is chosen.
(async () => {
  "use strict";
  const one = id => document.getElementById(id);
  const made = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const number = count => count.toLocaleString("en");

  // -- data ------------------------------------------------------------------------------------------------------

  async function unpacked() {
    const packed = Uint8Array.from(atob(one("data").textContent.replace(/\s+/g, "")), text => text.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  const data = await unpacked(), texts = data.texts;
  const sites = data.sites.map(([fn, address, verdict, trampoline, place, lines, elsewhere], row) => {
    const at = BigInt("0x" + address), [name, start] = data.functions[fn];
    const own = lines[place];
    return {
      row, fn, at, address: "0x" + address, verdict: texts[verdict], place, lines, elsewhere,
      trampoline: trampoline && "0x" + trampoline, slot: trampoline ? BigInt("0x" + trampoline) : 0n,
      name: name + "+" + (at - BigInt("0x" + start)), offset: Number(at - BigInt("0x" + start)),
      before: texts[own[2]], after: own.length > 3 ? texts[own[4]] : "",
      code: elsewhere.map(line => texts[line[1]]).join("; "),
    };
  });
  for (const site of sites) {
    site.words = (site.name + " " + site.address + " " + site.trampoline + " " + site.before + " " + site.verdict).toLowerCase();
  }
  const slots = sites.filter(site => site.trampoline).sort((a, b) => (a.slot < b.slot ? -1 : a.slot > b.slot ? 1 : 0));
  const counts = data.functions.map(() => 0);
  for (const site of sites) counts[site.fn] += 1;

  // -- a list of which only the rows in view exist -----------------------------------------------------------------

  const HEIGHT = 24, SPARE = 12;

  class List {
    constructor(node, draw, choose) {
      Object.assign(this, { node, draw, choose, rows: [], chosen: -1, drawn: new Map() });
      this.space = node.querySelector(".space");
      node.addEventListener("scroll", () => this.show());
      new ResizeObserver(() => this.show()).observe(node);
      node.addEventListener("click", event => {
        const row = event.target.closest(".row");
        if (row && !event.target.closest("a")) this.take(+row.dataset.place);
      });
      node.addEventListener("keydown", event => this.key(event));
    }

    set(rows, chosen = -1) {
      this.rows = rows;
      this.space.style.height = rows.length * HEIGHT + "px";
      for (const node of this.drawn.values()) node.remove();
      this.drawn.clear();
      this.chosen = chosen;
      this.node.scrollTop = 0;
      this.reveal();
      this.show();
    }

    show() {
      const first = Math.max(0, Math.floor(this.node.scrollTop / HEIGHT) - SPARE);
      const end = Math.min(this.rows.length, Math.ceil((this.node.scrollTop + this.node.clientHeight) / HEIGHT) + SPARE);
      for (const [place, node] of this.drawn) {
        if (place < first || place >= end) { node.remove(); this.drawn.delete(place); }
      }
      for (let place = first; place < end; place += 1) {
        if (this.drawn.has(place)) continue;
        const node = made("div", "row");
        node.id = this.node.id + "-" + place;
        node.dataset.place = place;
        node.setAttribute("role", "option");
        node.setAttribute("aria-setsize", this.rows.length);
        node.setAttribute("aria-posinset", place + 1);
        node.style.top = place * HEIGHT + "px";
        node.append(...this.draw(this.rows[place]));
        this.drawn.set(place, node);
        this.node.append(node);
      }
      for (const [place, node] of this.drawn) node.setAttribute("aria-selected", place === this.chosen);
      const active = this.drawn.get(this.chosen);
      if (active) this.node.setAttribute("aria-activedescendant", active.id);
      else this.node.removeAttribute("aria-activedescendant");
    }

    reveal() {
      if (this.chosen < 0) return;
      const top = this.chosen * HEIGHT, view = this.node;
      if (top < view.scrollTop) view.scrollTop = top;
      else if (top + HEIGHT > view.scrollTop + view.clientHeight) view.scrollTop = top + HEIGHT - view.clientHeight;
    }

    take(place) {
      if (!this.rows.length) return;
      this.chosen = Math.max(0, Math.min(this.rows.length - 1, place));
      this.reveal();
      this.show();
      this.choose(this.rows[this.chosen]);
    }

    key(event) {
      const page = Math.max(1, Math.floor(this.node.clientHeight / HEIGHT) - 1);
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.take(Math.max(0, Math.min(this.rows.length - 1, this.chosen + steps[event.key])));
    }
  }

  // -- rows ------------------------------------------------------------------------------------------------------

  const link = (text, hash) => Object.assign(made("a", "address", text), { href: hash, tabIndex: -1 });
  const draws = {
    sites: site => [
      made("span", "address", site.address), made("span", "", site.name), made("span", "code was", site.before),
      made("span", "code is", site.after || "unchanged"),
      site.trampoline ? link(site.trampoline, "#trampoline=" + site.address) : made("span", "bytes", site.verdict),
    ],
    trampolines: site => [
      made("span", "address", site.trampoline), made("span", "code", site.code),
      link(site.address, "#site=" + site.address), made("span", "", site.name),
    ],
  };
  const heads = {
    sites: ["address", "site", "original", "patched", "trampoline"],
    trampolines: ["trampoline", "runs", "of the site", ""],
  };

  let view = "sites", only = -1, chosen = null;
  const list = new List(one("sites"), row => draws[view](row), choose);
  const functions = new List(one("functions"), fn => [
    made("span", "", fn < 0 ? "all functions" : data.functions[fn][0]),
    made("span", "", number(fn < 0 ? sites.length : counts[fn])),
  ], fn => { only = fn; refresh(); });

  const hex = value => "0x" + value.toString(16);

  function column(title, rows) {
    const part = made("div"), table = made("table", "code");
    part.append(title instanceof Node ? title : made("h3", "", title));
    for (const [className, ...cells] of rows) {
      const row = made("tr", className);
      for (const [name, text] of cells) { const cell = made("td", name, text); cell.title = text; row.append(cell); }
      table.append(row);
    }
    part.append(table);
    return part;
  }

  function trampolineColumn(site) {
    const title = made("h3", "", "trampoline ");
    if (!site.trampoline) {
      const part = made("div");
      part.append(made("h3", "", site.verdict === "deferred" ? "deferred" : "emulated"), made("p", "none",
        site.verdict === "deferred" ? "The guest writes here by itself: the file has the original's bytes." :
        "Its effect is computed: nothing of it runs elsewhere."));
      return part;
    }
    title.append(link(site.trampoline, "#trampoline=" + site.address));
    const rows = site.elsewhere.map(([offset, text]) =>
      ["new", ["address", hex(site.slot + BigInt(offset))], ["", texts[text]]]);
    if (data.back) {
      const next = site.lines[site.place + 1];
      rows.push(["", ["address", ""], ["bytes", next ? "and back to " + hex(site.at + BigInt(next[0])) : "and back"]]);
    }
    return column(title, rows);
  }

  function choose(site) {
    chosen = site;
    const title = made("h2", "", site.name);
    title.append(made("small", "", `${site.address}, ${site.verdict}`));
    const beside = made("div", "beside"), before = [], after = [];
    for (const [offset, bytes, text, now, nowText] of site.lines) {
      const address = ["address", "+" + (site.offset + offset)], changed = now !== undefined;
      before.push([changed ? "old" : "", address, ["bytes", texts[bytes]], ["", texts[text]]]);
      after.push([changed ? "new" : "", address, ["bytes", texts[changed ? now : bytes]], ["", texts[changed ? nowText : text]]]);
    }
    beside.append(column("original", before), column("patched", after), trampolineColumn(site));
    one("detail").replaceChildren(title, beside);
    history.replaceState(null, "", `#${view === "sites" ? "site" : "trampoline"}=${site.address}`);
  }

  // -- views, filter, links ----------------------------------------------------------------------------------------

  function refresh(keep = null) {
    const words = one("filter").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const all = view === "trampolines" ? slots : sites;
    const rows = all.filter(site => (only < 0 || site.fn === only) && words.every(word => site.words.includes(word)));
    list.node.parentNode.className = "table " + view;
    one("head").replaceChildren(...heads[view].map(text => made("span", "", text)));
    list.set(rows, keep ? rows.indexOf(keep) : -1);
    one("shown").textContent = rows.length === all.length ? "" : `${number(rows.length)} of ${number(all.length)}`;
    if (!keep) rows.length ? list.take(0) : one("detail").replaceChildren(made("p", "none", "No site matches."));
  }

  function refreshFunctions() {
    const words = one("filter").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.functions.map((_, fn) => fn)
      .filter(fn => words.every(word => data.functions[fn][0].toLowerCase().includes(word)));
    functions.set([-1, ...rows], only < 0 ? 0 : 1 + rows.indexOf(only));
  }

  function show(next, keep = null) {
    const isChanges = next === "changes";
    for (const name of ["sites", "trampolines", "changes"]) {
      const tab = one("tab-" + name);
      tab.setAttribute("aria-selected", name === next);
      tab.tabIndex = name === next ? 0 : -1;
    }
    one("view-sites").hidden = isChanges;
    one("view-changes").hidden = !isChanges;
    if (isChanges) {
      history.replaceState(null, "", "#changes");
      return;
    }
    view = next;
    one("view-sites").setAttribute("aria-labelledby", "tab-" + next);
    one("sites").setAttribute("aria-label", next === "sites" ? "Sites" : "Trampolines");
    refresh(keep);
    if (keep) choose(keep);
  }

  function go(next, site) {
    if (next === "trampolines" && !site.trampoline) return;
    const rows = next === "trampolines" ? slots : sites;
    if (only >= 0 && site.fn !== only) only = -1;
    one("filter").value = "";
    refreshFunctions();
    show(next, rows.includes(site) ? site : null);
    one("sites").focus();
  }

  function follow() {
    const [kind, address] = location.hash.slice(1).split("=");
    if (kind === "changes") show(kind);
    const site = address && sites.find(other => other.address === address);
    if (site && (kind === "site" || kind === "trampoline")) go(kind + "s", site);
    return kind === "changes" || Boolean(site);
  }

  function clear() {
    one("filter").value = "";
    only = -1;
    refreshFunctions();
    refresh(chosen);
    one("sites").focus();
  }

  function theme(name) {
    document.documentElement.dataset.theme = name;
    one("theme").setAttribute("aria-pressed", name === "dark");
    one("theme").textContent = name === "dark" ? "Light" : "Dark";
  }

  const otherTheme = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  const keys = {
    "/": () => one("filter").focus(), Escape: clear, d: otherTheme,
    t: () => chosen && go(view === "sites" ? "trampolines" : "sites", chosen),
    f: () => { if (chosen) { only = chosen.fn; refreshFunctions(); refresh(chosen); } },
    1: () => show("sites", chosen), 2: () => show("trampolines"), 3: () => show("changes"),
  };
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === one("filter") && event.key !== "Escape") {
      if (event.key === "Enter" || event.key === "ArrowDown") { one("sites").focus(); event.preventDefault(); }
      return;
    }
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  const tabs = ["sites", "trampolines", "changes"];
  for (const name of tabs) {
    one("tab-" + name).addEventListener("click", () => show(name, name === "sites" ? chosen : null));
    one("tab-" + name).addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: 2 }[event.key];
      if (!step) return;
      const next = tabs[(tabs.indexOf(name) + step) % 3];
      show(next);
      one("tab-" + next).focus();
    });
  }
  one("theme").addEventListener("click", otherTheme);
  one("filter").addEventListener("input", () => { only = -1; refreshFunctions(); refresh(); });
  addEventListener("hashchange", follow);

  theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  one("count-sites").textContent = number(sites.length);
  one("count-trampolines").textContent = number(slots.length);
  refreshFunctions();
  if (!follow()) show(sites.length ? "sites" : "changes");
  document.documentElement.dataset.ready = "true";
})();
