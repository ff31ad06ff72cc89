"use strict";
// Draws each figure when it comes into view, in the page's own colours, and again when the colour scheme changes.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  function config() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = getComputedStyle(document.body).fontFamily;
    const text = { labelColor: colour("--quiet"), titleColor: colour("--quiet"), labelFont: font, titleFont: font };
    return {
      background: "transparent",
      font,
      view: { stroke: null },
      axis: {
        ...text, titleFontWeight: "normal", titleFontSize: 11, labelFontSize: 11, titlePadding: 8,
        gridColor: colour("--line"), domainColor: colour("--line"), tickColor: colour("--line"),
      },
      legend: { ...text, labelColor: colour("--ink"), labelFontSize: 12, symbolSize: 90 },
      text: { color: colour("--ink"), font },
    };
  }

  // A canvas has no element per mark: thousands of them would make the page slow to scroll.
  const MOST_ROWS_AS_SVG = 1000;

  function renderer(spec) {
    const rows = Object.values(spec.datasets).reduce((sum, each) => sum + each.length, 0);
    return rows > MOST_ROWS_AS_SVG ? "canvas" : "svg";
  }

  async function draw(element) {
    const spec = { ...figures[Number(element.dataset.figure)], config: config() };
    const dark = scheme.matches;
    const result = await vegaEmbed(element, spec, {
      actions: false,
      renderer: renderer(spec),
      tooltip: { theme: dark ? "dark" : "light" },
    });
    views.get(element)?.finalize();
    views.set(element, result.view);
  }

  const all = [...document.querySelectorAll(".vega")];

  function drawOnce(element) {
    if (views.has(element)) {
      return undefined;
    }
    views.set(element, undefined);
    return draw(element);
  }

  // What the reader looks at first; then, in idle time, whatever else is open, so that print and search find it drawn.
  const seen = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => drawOnce(entry.target));
  }, { rootMargin: "600px" });
  all.forEach((element) => seen.observe(element));
  // One at a time: between two the browser can scroll.
  async function drawNext() {
    const next = all.find((each) => each.clientWidth > 0 && !views.has(each));
    if (next) {
      await drawOnce(next);
      requestIdleCallback(drawNext);
    }
  }
  requestIdleCallback(drawNext);
  scheme.addEventListener("change", () => [...views.keys()].forEach(draw));
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
})();
