// The charts of a report. All numbers come from the JSON in the page; nothing is loaded.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const hidden = new Set(); // learners that are not selected
  const state = { task: 0, comparator: "O1" };
  const charts = []; // {u, series: learner of each uPlot series, draw again, place}
  const DEPTH = 1e-6; // relative to the highest value: lower values are omitted on logarithmic axes
  const DASHES = { solid: undefined, dashed: [8, 5], dotted: [2, 4] };

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const stroke = (learner) => colour(`c${data.learners[learner].colour}`);
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
  const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const pictures = reportPictures(data, hidden, make, compact, exact);

  // A line of the chart: learner (or null), label, mean; low and high may be missing.
  function plot(element, x, lines, options) {
    element.replaceChildren();
    const columns = [x], series = [{}], owners = [null], bands = [];
    const floor = options.logY ? lowest(lines) : null;
    if (options.logY && floor === null) {
      element.append(make("p", "none", "No positive values: nothing to draw on a logarithmic axis."));
      return null;
    }
    const fit = (values, clip) => options.logY ? values.map((v) => (v === null ? null : v >= floor ? v : clip ? floor : null)) : values;
    const inkOf = (line) => (line.learner === null ? colour("ink") : stroke(line.learner));
    const shows = (line) => line.learner === null || !hidden.has(line.learner);
    for (const line of lines.filter((one) => one.high)) { // bands first: no band may lie on a line
      const at = columns.length;
      columns.push(fit(line.high, false), fit(line.low, true));
      for (const edge of ["high", "low"]) {
        series.push({ label: `${line.label} ${edge}`, show: shows(line), stroke: "transparent", width: 0, points: { show: false } });
        owners.push(line.learner);
      }
      bands.push({ series: [at, at + 1], fill: inkOf(line) + "33" });
    }
    for (const line of lines) {
      const ink = inkOf(line), show = shows(line);
      const dash = line.dash || (line.learner === null ? [3, 4] : DASHES[data.learners[line.learner].stroke]);
      columns.push(fit(line.mean, false));
      series.push({
        label: line.label, show, stroke: ink, width: line.thin ? 1 : 2, dash,
        points: { show: Boolean(options.dots) && !line.thin, size: 7, fill: ink }, spanGaps: true,
      });
      owners.push(line.learner);
    }
    const axis = {
      stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
      font: "11px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20,
    };
    const few = options.ticks ? { splits: () => options.ticks, filter: (u, splits) => splits } : {};
    const u = new uPlot({
      width: element.clientWidth || 300, height: element.clientHeight || 280, legend: { show: false }, series, bands,
      cursor: { sync: options.sync ? { key: options.sync, scales: ["x", null] } : undefined, points: { size: 7 }, y: false },
      scales: { x: { time: false, distr: options.logX ? 3 : 1, range: (u, low, high) => edges(x, low, high, options) }, y: { distr: options.logY ? 3 : 1 } },
      axes: [
        { ...axis, ...few, label: options.xLabel, size: 32, values: (u, at) => at.map((v) => (v === null ? "" : compact.format(v))) },
        { ...axis, label: options.yLabel, size: 58, values: (u, at) => at.map((v) => (v === null ? "" : compact.format(v))) },
      ],
      padding: [8, room(element, lines), 0, 0],
      plugins: [tooltip(lines, x, options), labels(lines, inkOf)],
    }, columns, element);
    const chart = { u, owners, element };
    charts.push(chart);
    return chart;
  }

  // Fit the axis to the data: a logarithmic axis would otherwise extend to the next power of ten.
  function edges(x, low, high, options) {
    if (low === high) return options.logX ? [low / 1.2, low * 1.2] : [low - 1, low + 1];
    return options.dots && options.logX ? [low / 1.1, high * 1.1] : [low, high];
  }

  // Labels at the ends of the lines, in their colours, without overlap.
  const FONT = "11px system-ui, sans-serif", GAP = 13;
  const named = (lines) => lines.filter((line) => !line.thin);
  const shortened = (text, width) => { const most = width < 420 ? 11 : 20; return text.length > most ? `${text.slice(0, most - 1)}…` : text; };

  function room(element, lines) {
    const context = make("canvas").getContext("2d"), width = element.clientWidth || 300;
    context.font = FONT;
    return 12 + Math.max(0, ...named(lines).map((line) => context.measureText(shortened(line.label, width)).width));
  }

  function labels(lines, inkOf) {
    return {
      hooks: {
        draw: (u) => {
          const ratio = devicePixelRatio, found = [];
          for (const line of named(lines)) {
            if (line.learner !== null && hidden.has(line.learner)) continue;
            const last = line.mean.findLastIndex((v) => v !== null && (u.scales.y.distr !== 3 || v >= u.scales.y.min));
            if (last < 0) continue;
            found.push({ line, y: Math.min(Math.max(u.valToPos(line.mean[last], "y", true), u.bbox.top), u.bbox.top + u.bbox.height) });
          }
          found.sort((a, b) => a.y - b.y);
          const gap = GAP * ratio;
          found.forEach((one, k) => { if (k) one.y = Math.max(one.y, found[k - 1].y + gap); });
          const floor = u.bbox.top + u.bbox.height;
          for (let k = found.length - 1; k >= 0; k -= 1) {
            const below = k + 1 < found.length ? found[k + 1].y - gap : floor;
            found[k].y = Math.min(found[k].y, below);
          }
          const pen = u.ctx;
          pen.save();
          pen.font = FONT.replace("11", String(11 * ratio));
          pen.textBaseline = "middle";
          pen.textAlign = "left";
          for (const { line, y } of found) {
            pen.fillStyle = inkOf(line);
            pen.fillText(shortened(line.label, u.width), u.bbox.left + u.bbox.width + 6 * ratio, y);
          }
          pen.restore();
        },
      },
    };
  }

  function lowest(lines) {
    const all = lines.flatMap((line) => line.mean).filter((v) => v !== null && v > 0);
    const top = Math.max(...all);
    return all.length ? Math.min(...all.filter((v) => v > DEPTH * top)) / 2 : null;
  }

  function tooltip(lines, x, options) {
    const tip = make("div", "tip");
    tip.hidden = true;
    return {
      hooks: {
        init: (u) => u.over.append(tip),
        setCursor: (u) => {
          const at = u.cursor.idx;
          const rows = at === null || at === undefined ? [] : lines
            .filter((line) => !line.thin && line.mean[at] !== null && (line.learner === null || !hidden.has(line.learner)))
            .sort((a, b) => b.mean[at] - a.mean[at]);
          tip.hidden = rows.length === 0 || u.cursor.left < 0;
          if (tip.hidden) return;
          tip.replaceChildren(make("b", "", `${options.xName} ${exact.format(x[at])}`));
          for (const line of rows) {
            const row = make("div");
            const look = line.learner === null ? "swatch dotted" : `swatch c${data.learners[line.learner].colour} ${data.learners[line.learner].stroke}`;
            const half = line.high && line.high[at] !== null ? ` ± ${rough.format((line.high[at] - line.low[at]) / 2)}` : "";
            row.append(make("span", look), `${line.label}: ${exact.format(line.mean[at])}${half}`);
            tip.append(row);
          }
          // Where it hides least: on the emptier side of the pointer, above or below.
          const heights = rows.map((one) => u.valToPos(one.mean[at], "y")).filter((v) => Number.isFinite(v));
          const high = heights.reduce((a, b) => a + b, 0) / heights.length < u.over.clientHeight / 2;
          tip.classList.toggle("low", high);
          const right = u.cursor.left > u.over.clientWidth / 2;
          tip.style.left = right ? "auto" : `${Math.min(u.cursor.left + 14, u.over.clientWidth - tip.offsetWidth)}px`;
          tip.style.right = right ? `${Math.min(u.over.clientWidth - u.cursor.left + 14, u.over.clientWidth - tip.offsetWidth)}px` : "auto";
        },
      },
    };
  }

  // mean and half width -> a line
  function line(entry, [mean, half]) {
    const known = half.some((v) => v !== null);
    const edge = (sign) => mean.map((v, k) => (v === null || half[k] === null ? null : v + sign * half[k]));
    return { learner: entry.learner, label: data.learners[entry.learner].label, mean, ...(known ? { high: edge(1), low: edge(-1) } : {}) };
  }

  function drawTask() {
    const task = data.tasks[state.task];
    const common = { xLabel: "episode", xName: "episode", sync: "episodes", dots: task.episodes.length < 2 };
    plot(byId("reward"), task.episodes, task.learners.map((one) => line(one, one.reward)), common);
    plot(byId("regret"), task.episodes, task.learners.map((one) => line(one, one[state.comparator])), common);
    const lines = task.learners.map((one) => line(one, one.O1));
    if (task.theory.every((v) => v !== null)) lines.push({ learner: null, label: "theorem's bound", mean: task.theory });
    plot(byId("theory"), task.episodes, lines, { ...common, logX: true, logY: true });
    pictures.bars(byId("terms"), task);
  }

  function drawScaling() {
    const place = byId("scaling-charts");
    if (!place) return;
    place.replaceChildren();
    const growth = data.kind === "growth";
    for (const group of data.scaling) {
      const figure = make("figure"), chart = make("div", "chart");
      chart.setAttribute("role", "img");
      chart.setAttribute("aria-label", `${group.label}, logarithmic axes; the same numbers are in the table below`);
      figure.append(make("figcaption", "", group.label), chart);
      place.append(figure);
      const x = [...new Set(group.series.flatMap((one) => one.x))].sort((a, b) => a - b);
      const lines = [];
      for (const one of group.series) {
        const at = (k) => x.map((v) => (one.x.includes(v) ? one.ends[one.x.indexOf(v)][k] : null));
        const label = data.learners[one.learner].label;
        const known = one.ends.some((ends) => ends[1] !== null);
        lines.push({ learner: one.learner, label, mean: at(0), ...(known ? { low: at(1), high: at(2) } : {}) });
        if (one.fit) lines.push({ learner: one.learner, label: `${label} fit`, thin: true, dash: [3, 3], mean: x.map((v) => one.fit[0] * v ** one.fit[1]) });
      }
      if (group.theory) {
        const [sizes, bound] = group.theory;
        lines.push({ learner: null, label: "theorem's bound", mean: x.map((v) => (sizes.includes(v) ? bound[sizes.indexOf(v)] : null)) });
      }
      plot(chart, x, lines, { logX: true, logY: true, dots: true, ticks: x, xLabel: growth ? "episodes T" : "arms N", xName: growth ? "T =" : "N =" });
    }
  }

  function redraw() {
    for (const chart of charts.splice(0)) chart.u.destroy();
    drawTask();
    drawScaling();
    pictures.overview(byId("overview-chart"));
  }

  function toggle(learner, show) {
    if (show) hidden.delete(learner); else hidden.add(learner);
    for (const { u, owners } of charts) {
      u.batch(() => owners.forEach((owner, k) => { if (owner === learner) u.setSeries(k, { show }); }));
    }
    drawPictures();
  }

  function drawPictures() {
    pictures.bars(byId("terms"), data.tasks[state.task]);
    pictures.overview(byId("overview-chart"));
    byId("shown").textContent = `(${data.learners.length - hidden.size} of ${data.learners.length} shown)`;
  }

  function showTask(index) {
    state.task = index;
    if (byId("task")) byId("task").value = String(index);
    for (const page of document.querySelectorAll("section.page")) page.hidden = Number(page.dataset.task) !== index;
    if (byId("task-name")) byId("task-name").textContent = data.tasks[index].label;
  }

  const boxes = [...document.querySelectorAll("#learners input")];
  const switchAll = (show) => boxes.forEach((box) => { box.checked = show; toggle(Number(box.value), show); });
  boxes.forEach((box) => box.addEventListener("change", () => toggle(Number(box.value), box.checked)));
  byId("all")?.addEventListener("click", () => switchAll(true));
  byId("none")?.addEventListener("click", () => switchAll(false));
  for (const link of document.querySelectorAll("#contents a[data-task]")) {
    link.addEventListener("click", () => { showTask(Number(link.dataset.task)); redraw(); });
  }
  byId("task")?.addEventListener("change", (event) => { showTask(Number(event.target.value)); redraw(); });
  for (const one of document.querySelectorAll("input[name=comparator]")) {
    one.addEventListener("change", () => { state.comparator = one.value; redraw(); });
  }

  document.addEventListener("theme", redraw);

  let width = 0;
  new ResizeObserver(() => {
    if (byId("reward").clientWidth === width) return;
    width = byId("reward").clientWidth;
    for (const { u, element } of charts) u.setSize({ width: element.clientWidth, height: element.clientHeight });
    drawPictures();
  }).observe(byId("reward"));

  const narrow = matchMedia("(max-width: 640px)");
  const fold = () => { byId("legend").open = !narrow.matches; byId("contents").open = matchMedia("(min-width: 1100px)").matches; };
  narrow.addEventListener("change", fold);

  fold();
  const asked = /^#task-(\d+)$/.exec(location.hash);
  showTask(asked && Number(asked[1]) < data.tasks.length ? Number(asked[1]) : 0);
  redraw();
  drawPictures();
  window.report = { charts, hidden, data };
})();
