"use strict";
// Keeps the page as the run is: takes changed parts and new numbers in as they come, and says when it cannot.
(() => {
  const page = document.body.dataset;
  const connection = document.getElementById("connection");
  const announcer = document.getElementById("announcer");

  // Times stand in the page as UTC; readers get their own zone, and UTC on hover.
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  function localise(root) {
    root.querySelectorAll("time[datetime]").forEach((each) => {
      const at = new Date(each.dateTime);
      const today = at.toDateString() === new Date().toDateString();
      each.textContent = (today ? clock : day).format(at);
      each.title = each.dateTime.replace("T", " ").replace(/\.\d+/, "").replace("Z", " UTC");
    });
  }

  // Any table can be taken along.
  function cells(table) {
    return [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
  }
  // Text that a spreadsheet would compute begins with an apostrophe; signed numbers stay as they are.
  const plain = (value) => (/^[=+\-@\t\r]/.test(value) && !/^[+-][\d.,\s]+%?$/.test(value) ? `'${value}` : value);
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const csv = (rows) => rows.map((row) => row.map((value) => quoted(plain(value))).join(",")).join("\n");
  function markdown(rows) {
    const line = (row) => `| ${row.map((value) => value.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
    return [line(rows[0]), `|${rows[0].map(() => "---|").join("")}`, ...rows.slice(1).map(line)].join("\n");
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    const copied = button?.closest(".copies").nextElementSibling;
    const table = copied?.matches("table") ? copied : copied?.querySelector("table");
    if (table) {
      const text = (button.dataset.as === "csv" ? csv : markdown)(cells(table));
      navigator.clipboard.writeText(text).then(() => { announcer.textContent = "Copied"; });
    }
  });
  function offerCopies(root) {
    root.querySelectorAll("table:not(.plan)").forEach((table) => {
      const box = table.closest(".scroll") ?? table;
      if (box.previousElementSibling?.classList.contains("copies")) { return; }
      const copies = document.createElement("p");
      copies.className = "copies";
      for (const [as, label] of [["csv", "Copy as CSV"], ["markdown", "Copy as Markdown"]]) {
        const button = document.createElement("button");
        Object.assign(button, { type: "button", className: "copy", textContent: label });
        button.dataset.as = as;
        copies.append(button);
      }
      box.before(copies);
    });
  }
  function dress(root) {
    localise(root);
    offerCopies(root);
  }

  // The plan is one stop of the tab key; arrows move within it.
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest?.("table.plan a.slot")?.parentElement;
    if (!cell) { return; }
    const row = cell.parentElement;
    const next = {
      ArrowLeft: () => row.cells[cell.cellIndex - 1],
      ArrowRight: () => row.cells[cell.cellIndex + 1],
      ArrowUp: () => row.previousElementSibling?.cells[cell.cellIndex],
      ArrowDown: () => row.nextElementSibling?.cells[cell.cellIndex],
      Home: () => row.cells[1],
      End: () => row.cells[row.cells.length - 1],
    }[event.key]?.()?.querySelector("a.slot");
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });

  // What a reader has opened, chosen or scrolled stays as it is.
  const kept = {
    beforeNodeRemoved: (node) => !(node instanceof Element && node.classList.contains("copies")),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node instanceof HTMLDetailsElement),
  };
  function replace(id, html) {
    const element = document.getElementById(id);
    if (!element) { return; }
    Idiomorph.morph(element, html, { morphStyle: "outerHTML", callbacks: kept });
    dress(document.getElementById(id) ?? document);
  }

  // Charts: a median line within a band from the least to the most, one cursor over all of a page.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const CHART_HEIGHT = 150;
  const ANSWER_MS = 30000;
  const AGAIN_MS = 1000; // after an answer that did not come, or is of another moment
  const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString(undefined, { maximumSignificantDigits: 4 }));

  const values = (course) => course.filter((value) => value !== null);

  class Charts {
    constructor(box) {
      this.box = box;
      this.shown = new Map();
      this.state = null;
    }

    options(width) {
      const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui" };
      const value = (_, each) => number(each);
      return {
        width, height: CHART_HEIGHT, cursor: { sync: { key: "seconds" }, drag: { x: true, y: false } }, scales: { x: { time: false } },
        axes: [{ ...axis, size: 26 }, { ...axis, size: 62 }],
        series: [
          { label: "second" },
          // Some are read less often than every stretch; one alone is a point.
          { label: "median", stroke: colour("--accent"), width: 1.5, value, spanGaps: true, points: { show: (plot) => values(plot.data[1]).length === 1 } },
          { label: "least", stroke: "transparent", value, spanGaps: true, points: { show: false } },
          { label: "most", stroke: "transparent", value, spanGaps: true, points: { show: false } },
        ],
        bands: [{ series: [3, 2], fill: colour("--band") }],
        hooks: {
          draw: [(plot) => {
            for (const second of Object.values(this.state?.marks ?? {})) {
              const x = Math.floor(plot.valToPos(second, "x", true)) + 0.5;  // on pixels, not between them
              plot.ctx.save();
              plot.ctx.strokeStyle = colour("--quiet");
              plot.ctx.setLineDash([4, 4]);
              plot.ctx.beginPath();
              plot.ctx.moveTo(x, plot.bbox.top);
              plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
              plot.ctx.stroke();
              plot.ctx.restore();
            }
          }],
        },
      };
    }

    // What a browser has, with what is new; nothing if they do not fit together.
    merged(news) {
      const old = this.state;
      if (!old || old.trial !== news.trial || old.width !== news.width) { return news.first === 0 ? news : null; }
      for (const [name, chart] of Object.entries(news.charts)) {
        const into = (old.charts[name] ??= { title: chart.title, low: [], median: [], high: [] });
        for (const each of ["low", "median", "high"]) {
          into[each].length = Math.min(into[each].length, news.first);
          while (into[each].length < news.first) { into[each].push(null); }
          into[each].push(...chart[each]);
        }
      }
      return { ...old, marks: news.marks };
    }

    take(news) {
      const before = this.state?.trial;
      this.state = news === null ? null : this.merged(news);
      const isNew = this.state?.trial !== before;
      if (isNew) { this.clear(); }
      this.draw();
      if (isNew && this.state && new URLSearchParams(location.search).get("trial") === String(this.state.number)) { this.moment(); }
    }

    clear() {
      this.shown.forEach((each) => { each.plot.destroy(); each.figure.remove(); });
      this.shown.clear();
    }

    rows(name) {
      const chart = this.state.charts[name];
      return chart.median.map((_, index) => [index * this.state.width, chart.low[index], chart.median[index], chart.high[index]]);
    }

    draw() {
      const before = this.shown.size;
      for (const [name, chart] of Object.entries(this.state?.charts ?? {})) {
        const seconds = chart.median.map((_, index) => index * this.state.width);
        const data = [seconds, chart.median, chart.low, chart.high];
        const known = this.shown.get(name);
        if (known) {
          known.plot.setData(data);
          const table = known.figure.querySelector("details");
          if (table.open) { this.tabulate(table, name, chart.title); }
        } else {
          this.shown.set(name, this.figure(name, chart, data));
        }
        this.label(name, chart);
      }
      if (this.shown.size > before) { this.resize(); } // those that were there have less room now
    }

    label(name, chart) {
      const most = Math.max(...values(chart.high));
      const least = Math.min(...values(chart.low));
      const { figure } = this.shown.get(name);
      figure.querySelector(".plot").setAttribute("aria-label", `${chart.title}: now ${number(values(chart.median).at(-1))}, least ${number(least)}, most ${number(most)}`);
    }

    figure(name, chart, data) {
      const figure = document.createElement("figure");
      figure.className = "chart";
      const caption = document.createElement("figcaption");
      caption.textContent = chart.title;
      const plotted = document.createElement("div");
      plotted.className = "plot";
      plotted.setAttribute("role", "img");
      const table = document.createElement("details");
      table.className = "data";
      table.append(Object.assign(document.createElement("summary"), { textContent: "Table" }));
      table.addEventListener("toggle", () => { if (table.open) { this.tabulate(table, name, chart.title); } });
      figure.append(caption, plotted, table);
      this.box.append(figure);
      const plot = new uPlot(this.options(figure.clientWidth || this.box.clientWidth), data, plotted);
      plotted.addEventListener("click", () => {
        const second = plot.data[0][plot.cursor.idx];
        if (second !== undefined) { history.replaceState(null, "", `?trial=${this.state.number}#t=${second}`); }
      });
      return { plot, figure };
    }

    tabulate(details, name, title) {
      details.querySelector("table")?.remove();
      const table = document.createElement("table");
      table.className = "compact";
      table.createCaption().textContent = title;
      const head = table.createTHead().insertRow();
      for (const each of ["second", "least", "median", "most"]) {
        head.append(Object.assign(document.createElement("th"), { scope: "col", className: "n", textContent: each }));
      }
      const body = table.createTBody();
      for (const row of this.rows(name)) {
        const line = body.insertRow();
        row.forEach((value) => { Object.assign(line.insertCell(), { className: "n", textContent: number(value) }); });
      }
      details.append(table);
      offerCopies(details);
    }

    resize() {
      this.shown.forEach(({ plot, figure }) => plot.setSize({ width: figure.clientWidth, height: CHART_HEIGHT }));
    }

    recolour() {
      this.clear();
      this.draw();
    }

    moment() {
      const second = Number(/^#t=(\d+)$/.exec(location.hash)?.[1] ?? NaN);
      const first = this.shown.values().next().value;
      if (first && Number.isFinite(second)) {
        this.box.scrollIntoView({ block: "center" });
        first.plot.setCursor({ left: first.plot.valToPos(second, "x"), top: CHART_HEIGHT / 3 });
      }
    }
  }

  const box = document.getElementById("charts");
  const running = box && new Charts(box);
  const all = running ? [running] : [];
  addEventListener("resize", () => all.forEach((charts) => charts.resize()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all.forEach((charts) => charts.recolour()));

  function take(message) {
    const news = JSON.parse(message.data);
    if (news.refused) {
      message.target.close();
      connection.textContent = news.refused;
      connection.className = "lost";
      return;
    }
    for (const [id, html] of Object.entries(news.html ?? {})) { replace(id, html); }
    if (fate() !== chosenFate) { renew(); }
    if (running && news.charts !== undefined) { running.take(news.charts); }
  }

  async function showTrial(section) {
    const charts = new Charts(section.querySelector(".charts"));
    all.splice(all.indexOf(running) + 1, 1, charts); // in place of those it had before
    const answer = await fetch(section.dataset.series);
    if (answer.ok) {
      charts.take(await answer.json());
    } else {
      charts.box.textContent = await answer.text();
    }
  }

  // The chosen trial is of this browser alone, so nobody sends it: it is fetched again once the plan shows another fate.
  const chosen = new URLSearchParams(location.search).get("trial");
  const fate = (of = document) => of.querySelector(`.plan a.slot[href="?trial=${CSS.escape(chosen)}"]`)?.className;
  let chosenFate = fate();
  async function renew() {
    const asked = chosenFate = fate();
    let found = null;
    try {
      const answer = await fetch(location.pathname + location.search, { signal: AbortSignal.timeout(ANSWER_MS) });
      found = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch { /* the stream says that the connection is lost */ }
    if (asked !== chosenFate) { return; }
    const section = found?.getElementById("trial");
    if (section && fate(found) === asked) {
      replace("trial", section.outerHTML);
      showChosen();
    } else {
      setTimeout(() => { if (asked === chosenFate) { renew(); } }, AGAIN_MS);
    }
  }
  function showChosen() {
    const measured = document.querySelector("[data-series]");
    if (measured) { showTrial(measured); }
  }

  dress(document);
  showChosen();
  if (page.since) {
    const stream = new EventSource(`${location.pathname}/events?since=${encodeURIComponent(page.since)}`);
    stream.onopen = () => { connection.textContent = "live"; connection.className = ""; };
    stream.onerror = () => {
      const isOver = stream.readyState === EventSource.CLOSED; // refused: fairtrial was started anew, or the run is gone
      connection.textContent = isOver ? "connection refused: open the address that fairtrial printed" : "connection lost, trying again";
      connection.className = "lost";
    };
    stream.onmessage = take;
  }
})();
