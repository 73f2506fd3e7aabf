// What the pages share: the data in a page, a list of which only the rows in view exist, tabs, and light or dark.
"use strict";
const one = id => document.getElementById(id);
const made = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const number = count => count.toLocaleString("en");

async function unpacked() {
  const packed = Uint8Array.from(atob(one("data").textContent.replace(/\s+/g, "")), text => text.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// -- a list of which only the rows in view exist ---------------------------------------------------------------------

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

// -- tabs: buttons tab-NAME, of which one is chosen; arrows walk -----------------------------------------------------

function chooseTab(names, chosen) {
  for (const name of names) {
    const tab = one("tab-" + name);
    tab.setAttribute("aria-selected", name === chosen);
    tab.tabIndex = name === chosen ? 0 : -1;
  }
}

function walkTabs(names, show) {
  for (const name of names) {
    one("tab-" + name).addEventListener("click", () => show(name));
    one("tab-" + name).addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: names.length - 1 }[event.key];
      if (!step) return;
      const next = names[(names.indexOf(name) + step) % names.length];
      show(next);
      one("tab-" + next).focus();
    });
  }
}

// -- light or dark: the button theme --------------------------------------------------------------------------------

function theme(name) {
  document.documentElement.dataset.theme = name;
  one("theme").setAttribute("aria-pressed", name === "dark");
  one("theme").textContent = name === "dark" ? "Light" : "Dark";
  document.dispatchEvent(new Event("themed"));
}

const isDark = () => document.documentElement.dataset.theme === "dark";
const otherTheme = () => theme(isDark() ? "light" : "dark");
one("theme").addEventListener("click", otherTheme);
theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
