// What the pages do beyond links and forms: theme, print, charts, and a word when the connection is lost.
(() => {
  "use strict";
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  let charts = [];

  const notice = (text) => {
    const box = document.getElementById("notice");
    if (!box) return;
    box.textContent = text;
    box.hidden = !text;
    if (text) box.scrollIntoView({ block: "nearest" });
  };

  const draw = (box) => {
    const found = JSON.parse(box.dataset.chart);
    const x = found.periods.map((_, k) => k);
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid") } };
    const narrow = box.clientWidth < 520;
    const shown = colour("--c0"), promised = colour("--c1");
    const options = {
      width: box.clientWidth, height: narrow ? 240 : 320, legend: { show: false }, cursor: { y: false },
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_, marks) => marks.map((k) => (Number.isInteger(k) ? found.periods[k] ?? "" : "")), space: narrow ? 90 : 110 },
        { ...axis, size: 56 },
      ],
      series: [{}, { label: box.dataset.shown, stroke: shown, width: 2.5, points: { show: x.length < 30 } },
        { stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } },
        { label: box.dataset.promised, stroke: promised, width: 2, dash: [6, 5], points: { show: false } }],
      bands: [{ series: [3, 2], fill: shown + "2e" }],
    };
    box.replaceChildren();
    charts.push(new uPlot(options, [x, found.shown, found.low, found.high, found.promised], box));
  };

  const drawAll = () => {
    charts.forEach((one) => one.destroy());
    charts = [];
    document.querySelectorAll("[data-chart]").forEach(draw);
  };

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("#theme")) {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("rmab-theme", root.dataset.theme); } catch { /* it holds for this page */ }
      drawAll();
    }
    if (target?.closest("[data-print]")) window.print();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("htmx:sendError", () => notice(document.body.dataset.lost));
  document.addEventListener("htmx:timeout", () => notice(document.body.dataset.lost));
  document.addEventListener("htmx:beforeRequest", () => notice(""));
  document.addEventListener("htmx:afterSettle", () => {
    drawAll();
    const first = document.querySelector("[autofocus]") ?? document.querySelector("[role=alert]:not([hidden])");
    if (first?.matches("input")) first.focus();
  });
  system.addEventListener("change", drawAll);
  let waiting = 0;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
  drawAll();
})();
