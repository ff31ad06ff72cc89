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
  const csv = (rows) => rows.map((row) => row.map((value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)).join(",")).join("\n");
  function markdown(rows) {
    const line = (row) => `| ${row.map((value) => value.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
    return [line(rows[0]), `|${rows[0].map(() => "---|").join("")}`, ...rows.slice(1).map(line)].join("\n");
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    const table = button?.closest("[data-copied]")?.querySelector("table");
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
      box.parentElement.dataset.copied = "";
      box.before(copies);
    });
  }
  function dress(root) {
    localise(root);
    offerCopies(root);
  }

  // What a reader has opened, chosen or scrolled stays as it is.
  const kept = {
    beforeNodeRemoved: (node) => !(node instanceof Element && node.classList.contains("copies")),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node instanceof HTMLDetailsElement) && name !== "data-copied",
  };
  function replace(id, html) {
    const element = document.getElementById(id);
    if (!element) { return; }
    Idiomorph.morph(element, html, { morphStyle: "outerHTML", callbacks: kept });
    dress(document.getElementById(id) ?? document);
  }

  // Charts: a median line within a band from the least to the most, one cursor over all.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const section = document.getElementById("charts");
  const shown = new Map();
  let state = null;

  function options(title, width) {
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    return {
      width, height: 170, cursor: { sync: { key: "trial" } }, scales: { x: { time: false } },
      axes: [{ ...axis, label: undefined }, { ...axis, size: 70 }],
      series: [
        { label: "second" },
        { label: "median", stroke: colour("--accent"), width: 1.5 },
        { label: "least", stroke: "transparent" },
        { label: "most", stroke: "transparent" },
      ],
      bands: [{ series: [3, 2], fill: colour("--band") }],
    };
  }

  function merge(old, news) {
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

  function draw() {
    if (!state) {
      shown.forEach((each) => each.plot.destroy());
      shown.clear();
      section.replaceChildren();
      return;
    }
    for (const [name, chart] of Object.entries(state.charts)) {
      const seconds = chart.median.map((_, index) => index * state.width);
      const data = [seconds, chart.median, chart.low, chart.high];
      const known = shown.get(name);
      if (known && known.trial === state.trial) {
        known.plot.setData(data);
      } else {
        known?.plot.destroy();
        known?.figure.remove();
        const figure = document.createElement("figure");
        figure.className = "chart wide";
        const caption = document.createElement("figcaption");
        caption.textContent = chart.title;
        figure.append(caption);
        section.append(figure);
        const plot = new uPlot(options(chart.title, section.clientWidth), data, figure);
        shown.set(name, { plot, figure, trial: state.trial });
      }
    }
  }
  addEventListener("resize", () => shown.forEach(({ plot }) => plot.setSize({ width: section.clientWidth, height: 170 })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    shown.forEach((each) => { each.plot.destroy(); each.figure.remove(); });
    shown.clear();
    draw();
  });

  function take(message) {
    const news = JSON.parse(message.data);
    for (const [id, html] of Object.entries(news.html ?? {})) { replace(id, html); }
    if (news.charts !== undefined) {
      state = news.charts === null ? null : merge(state, news.charts);
      draw();
    }
  }

  dress(document);
  if (page.run) {
    const stream = new EventSource(`/runs/${encodeURIComponent(page.run)}/events?since=${encodeURIComponent(page.since)}`);
    stream.onopen = () => { connection.textContent = "live"; connection.className = ""; };
    stream.onerror = () => { connection.textContent = "connection lost, trying again"; connection.className = "lost"; };
    stream.onmessage = take;
  }
})();
