// Draws the sites of the page: lists, a filter, and the site that is chosen.
(async () => {
  // -- data ------------------------------------------------------------------------------------------------------

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

  const TABS = ["sites", "trampolines", "changes"];
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
    chooseTab(TABS, next);
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
  walkTabs(TABS, name => show(name, name === "sites" ? chosen : null));
  one("filter").addEventListener("input", () => { only = -1; refreshFunctions(); refresh(); });
  addEventListener("hashchange", follow);

  one("count-sites").textContent = number(sites.length);
  one("count-trampolines").textContent = number(slots.length);
  refreshFunctions();
  if (!follow()) show(sites.length ? "sites" : "changes");
  document.documentElement.dataset.ready = "true";
})();
