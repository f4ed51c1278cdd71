// Updates a page: figures, charts and search. The page is complete without it; nothing is loaded from another server.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SLOWLY = 10;  // seconds between two looks where there is no chart
  const PATIENCE = 8000;  // milliseconds until an answer is given up
  const TYPING = 250;  // milliseconds of rest after a key until it is searched
  const said = document.getElementById("said");

  const say = (words, shown = false) => {
    if (said.textContent !== words) said.textContent = words;
    said.classList.toggle("shown", shown);
  };

  const element = (name, attributes, words = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = words;
    return made;
  };

  // The format of charts.py.
  const format = (number) => {
    if (number === undefined) return "-";
    if (number === 0) return "0";
    const size = Math.abs(number);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };

  // The smallest of 1, 2, 5, 10, 20 ... that is not below a number.
  const ceiling = (number) => {
    if (number <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(number));
    return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= number * 0.999999);
  };

  const ago = (seconds) => {
    if (seconds === 0) return "now";
    const minutes = Math.floor(seconds / 60);
    return minutes ? `${minutes} min${seconds % 60 ? ` ${seconds % 60} s` : ""} ago` : `${seconds} s ago`;
  };

  class Charts {
    constructor(root) {
      this.root = root;
      this.every = Number(root.dataset.every);
      this.kept = Number(root.dataset.kept);
      this.number = Number(root.dataset.number);
      this.rows = root.dataset.samples ? root.dataset.samples.split(";").map((row) => row.split(",").map(Number)) : [];
      this.figures = [];
      let first = 0;
      for (const figure of root.querySelectorAll("figure")) {
        const lines = figure.dataset.lines.split(" ");
        this.figures.push({ figure, lines, first, plot: figure.querySelector(".plot"), cursor: null });
        first += lines.length;
      }
      for (const one of this.figures) {
        one.plot.addEventListener("pointermove", (event) => this.point(one, event));
        one.plot.addEventListener("pointerleave", () => this.point(one, null));
        one.plot.append(element("svg", {}));
      }
      new ResizeObserver(() => this.draw()).observe(root);
      this.draw();
    }

    take(number, rows) {
      // A restarted server counts from 1.
      if (number < this.number) this.rows = [];
      this.rows = this.rows.concat(rows).slice(-this.kept);
      if (number === this.number) return;
      this.number = number;
      this.draw();
    }

    draw() {
      for (const one of this.figures) this.drawOne(one);
    }

    drawOne(one) {
      const width = Math.max(one.figure.clientWidth, 200);
      const height = 150;
      const [left, right, top, bottom] = [44, 6, 8, 20];
      const series = one.lines.map((_, number) => this.rows.map((row) => row[one.first + number]));
      const most = ceiling(Math.max(0, ...series.flat()));
      const across = (width - left - right) / (this.kept - 1);
      const x = (position) => width - right - (this.rows.length - 1 - position) * across;
      const y = (value) => top + (height - top - bottom) * (1 - value / most);
      const parts = [0, 0.5, 1].flatMap((share) => [
        element("line", { class: "grid", x1: left, x2: width - right, y1: y(share * most), y2: y(share * most) }),
        element("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, Number((share * most).toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 6 })),
      ]);
      const seconds = Math.round((this.kept - 1) * this.every);
      parts.push(element("text", { x: left, y: height - 4 }, ago(seconds)));
      parts.push(element("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "now"));
      series.forEach((values, number) => {
        const points = values.map((value, position) => `${x(position).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
        parts.push(element("polyline", { class: `s${number + 1}`, points }));
      });
      if (one.cursor !== null && this.rows.length) parts.push(...this.cursor(one, { width, height, left, right, across, x, series }));
      const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.words(one, series) });
      svg.append(...parts);
      one.plot.replaceChildren(svg);
      one.lines.forEach((key, number) => this.write(one.figure, key, series[number]));
    }

    // A text alternative of the chart; the table below has the details.
    words(one, series) {
      const title = one.figure.querySelector("figcaption").textContent.trim();
      const now = one.lines.map((_, number) => format(series[number].at(-1))).join(", ");
      return `${title}, the last five minutes; now ${now}`;
    }

    write(figure, key, values) {
      const mean = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined;
      const numbers = { now: values.at(-1), mean, most: values.length ? Math.max(...values) : undefined };
      for (const [name, number] of Object.entries(numbers)) {
        figure.querySelector(`[data-${name}="${key}"]`).textContent = format(number);
      }
    }

    cursor(one, { width, height, left, right, across, x, series }) {
      const back = Math.round((width - right - one.cursor) / across);
      const position = Math.min(Math.max(this.rows.length - 1 - back, 0), this.rows.length - 1);
      const at = x(position);
      const values = series.map((line) => format(line[position])).join(" · ");
      const when = ago(Math.round((this.rows.length - 1 - position) * this.every));
      const near = at > (left + width) / 2;
      return [
        element("line", { class: "cursor", x1: at, x2: at, y1: 8, y2: height - 20 }),
        element("text", { x: at + (near ? -6 : 6), y: 18, "text-anchor": near ? "end" : "start" }, `${when}: ${values}`),
      ];
    }

    point(one, event) {
      one.cursor = event ? event.clientX - one.plot.getBoundingClientRect().left : null;
      this.drawOne(one);
    }
  }

  const fetchText = async (address) => {
    const answer = await fetch(address, { signal: AbortSignal.timeout(PATIENCE), cache: "no-store", credentials: "omit" });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  };

  const parse = (page) => new DOMParser().parseFromString(page, "text/html");

  const root = document.querySelector(".charts");
  const charts = root && new Charts(root);
  const live = () => [...document.querySelectorAll("[data-live]")];
  let paused = false;

  const show = (facts) => {
    const news = said.classList.contains("shown") ? ["This page is up to date again"] : [];
    for (const one of live()) {
      const told = facts[one.dataset.live];
      if (!told) continue;
      const [words, level] = told;
      if (one.textContent !== words) one.textContent = words;
      if (one.dataset.level === level) continue;
      one.dataset.level = level;
      const name = one.closest("tr, div")?.querySelector("th, dt")?.textContent ?? document.title;
      news.push(`${name}: ${words}`);
    }
    if (news.length) say(`${news.join(". ")}.`);
  };

  // The upstreams or sources have changed since the page was made: use the tables of the new page.
  const keepUp = async (facts) => {
    const here = new Set(live().map((one) => one.dataset.live));
    if (!charts || Object.keys(facts).every((name) => here.has(name)) && here.size === Object.keys(facts).length) return;
    const fresh = parse(await fetchText(location.href));
    for (const section of document.querySelectorAll("main section")) {
      const found = section.querySelector(".charts") ? null : fresh.getElementById(section.id);
      if (found && !section.contains(document.activeElement)) section.replaceWith(found);
    }
  };

  const look = async () => {
    try {
      const told = JSON.parse(await fetchText(`live?since=${charts ? charts.number : Number.MAX_SAFE_INTEGER}`));
      show(told.facts);
      charts?.take(told.number, told.samples);
      await keepUp(told.facts);
    } catch {
      say("No answer: what is shown is old.", true);
    }
  };

  const follow = async () => {
    if (!paused && !document.hidden) await look();
    setTimeout(follow, 1000 * (charts ? charts.every : SLOWLY));
  };

  if (live().length) {
    if (charts) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "quiet";
      button.textContent = "Pause";
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        paused = !paused;
        button.setAttribute("aria-pressed", String(paused));
      });
      root.before(button);
    }
    document.addEventListener("visibilitychange", () => document.hidden || paused || look());
    setTimeout(follow, 1000 * (charts ? charts.every : SLOWLY));
  }

  // Search while typing: request the page of the form, and use its results.
  const results = document.getElementById("results");
  const field = results && document.querySelector("form.search input");
  if (field) {
    let waiting = 0;
    let latest = 0;
    const search = async () => {
      const number = ++latest;
      const words = field.value.trim();
      const address = `${location.pathname}${words ? `?q=${encodeURIComponent(words)}` : ""}`;
      const shown = document.getElementById("results");
      shown.setAttribute("aria-busy", "true");
      try {
        const found = parse(await fetchText(address)).getElementById("results");
        if (number !== latest) return;
        shown.replaceWith(found);
        history.replaceState(null, "", address);
        say((found.querySelector("caption, .empty") ?? found).textContent);
      } catch {
        if (number !== latest) return;
        shown.removeAttribute("aria-busy");
        say("The search got no answer.", true);
      }
    };
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, TYPING);
    });
  }
})();
