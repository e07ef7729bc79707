// Charts other than curves: bars of the sources of regret, and the overview of all tasks.
function reportPictures(data, hidden, make, compact, exact) {
  "use strict";
  const look = (learner) => `var(--c${data.learners[learner].colour})`;

  function svg(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function ticks(low, high, wanted = 5) {
    const raw = (high - low || 1) / wanted, scale = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((k) => k * scale).find((k) => k >= raw * (1 - 1e-9));
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(k === 0 ? 0 : k * step);
    return found;
  }

  // Grouped bars with whiskers: one group for each source, one bar for each learner with sources.
  function bars(place, task) {
    const shown = task.learners.filter((one) => one.terms && !hidden.has(one.learner));
    place.replaceChildren();
    if (!shown.length) {
      place.append(make("p", "none", "No selected learner has sources, which need occupancies and estimates."));
      return;
    }
    const width = place.clientWidth || 300, height = place.clientHeight || 280;
    const box = { left: 56, right: width - 8, top: 10, bottom: height - 40 };
    const values = shown.flatMap((one) => one.terms.flat()).filter((v) => v !== null);
    const low = Math.min(0, ...values), high = Math.max(0, ...values), span = high - low || 1;
    const y = (v) => box.bottom - ((v - low) / span) * (box.bottom - box.top);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    for (const tick of ticks(low, high)) {
      picture.append(svg("line", { class: tick === 0 ? "axis" : "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
      picture.append(svg("text", { x: box.left - 6, y: y(tick) + 4, "text-anchor": "end" }, compact.format(tick)));
    }
    const group = (box.right - box.left) / 4, bar = Math.min(34, (group * 0.8) / shown.length);
    data.terms.forEach((name, k) => {
      const middle = box.left + group * (k + 0.5), [head, rest] = name.split(": ");
      picture.append(svg("text", { x: middle, y: height - 22, "text-anchor": "middle", "font-weight": "600" }, head));
      const brief = ["over-estimation", "plan", "estimator", "index policy"][k];
      picture.append(svg("text", { x: middle, y: height - 8, "text-anchor": "middle" }, width < 420 ? brief.split(/[- ]/)[0] : brief));
      shown.forEach((one, i) => {
        const [mean, least, most] = one.terms[k], x = middle + (i - shown.length / 2) * bar;
        const rectangle = svg("rect", { x: x + 1, width: bar - 2, y: Math.min(y(0), y(mean)), height: Math.abs(y(mean) - y(0)) });
        rectangle.style.fill = look(one.learner);
        const range = least === null ? "" : ` (${exact.format(least)} to ${exact.format(most)})`;
        rectangle.append(svg("title", {}, `${data.learners[one.learner].label}, ${rest}: ${exact.format(mean)}${range}`));
        picture.append(rectangle);
        if (least !== null) picture.append(svg("line", { class: "whisker", x1: x + bar / 2, x2: x + bar / 2, y1: y(least), y2: y(most) }));
      });
    });
    place.append(picture);
  }

  // One row for each task, one dot with its interval for each learner. A few very large regrets would hide the
  // rest: then the axis is linear around zero and logarithmic beyond.
  const NEAR = 10;
  const bent = (v) => (Math.abs(v) <= NEAR ? v / NEAR : Math.sign(v) * (1 + Math.log10(Math.abs(v) / NEAR)));

  function overview(place) {
    if (!place) return;
    place.replaceChildren();
    const rows = data.overview.map(({ label, dots }) => ({ label, dots: dots.filter(([learner, mean]) => mean !== null && !hidden.has(learner)) }));
    const values = rows.flatMap(({ dots }) => dots.flatMap(([, mean, low, high]) => [mean, low ?? mean, high ?? mean]));
    if (!values.length) {
      place.append(make("p", "none", "No regret can be compared here."));
      return;
    }
    const width = place.clientWidth || 300, phone = width < 560, names = phone ? 0 : Math.min(220, width * 0.28);
    const most = Math.max(...rows.map(({ dots }) => dots.length)), step = 9, head = phone ? 20 : 8;
    const tall = head + Math.max(most * step, 16) + 8, height = rows.length * tall + 34;
    const least = Math.min(0, ...values), highest = Math.max(100, ...values), far = Math.max(-least, highest) > 200;
    const scale = far ? bent : (v) => v, left = names + 8, right = width - 14;
    const x = (v) => left + ((scale(v) - scale(least)) / (scale(highest) - scale(least))) * (right - left);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height });
    const marks = far ? [-1000, -100, -10, 0, 10, 100, 1000, 10000].filter((v) => v >= least && v <= highest) : ticks(least, highest, phone ? 4 : 8);
    for (const mark of marks) {
      picture.append(svg("line", { class: mark === 0 ? "axis" : "grid", x1: x(mark), x2: x(mark), y1: 4, y2: height - 28 }));
      picture.append(svg("text", { x: x(mark), y: height - 12, "text-anchor": "middle" }, `${compact.format(mark)}%`));
    }
    rows.forEach(({ label, dots }, k) => {
      const top = k * tall + 4;
      if (k) picture.append(svg("line", { class: "grid", x1: 0, x2: width, y1: top, y2: top }));
      const place = phone ? { x: 4, y: top + 14 } : { x: 4, y: top + tall / 2 + 4 };
      const letters = Math.floor((phone ? width : names) / 7);
      picture.append(svg("text", { class: "name", ...place }, label.length > letters ? `${label.slice(0, letters - 1)}…` : label));
      dots.forEach(([learner, mean, low, high], i) => {
        const y = top + head + (i + 0.5) * step, group = svg("g", {}), one = data.learners[learner];
        const range = low === null ? "" : ` (${exact.format(low)} to ${exact.format(high)})`;
        group.append(svg("title", {}, `${one.label} on ${label}: ${exact.format(mean)}%${range}`));
        if (low !== null) {
          const line = svg("line", { x1: x(low), x2: x(high), y1: y, y2: y, "stroke-width": 2, "stroke-opacity": 0.55 });
          line.style.stroke = look(learner);
          group.append(line);
        }
        const dot = svg("circle", { cx: x(mean), cy: y, r: 4, "stroke-width": 1.6 });
        dot.style.stroke = look(learner);
        dot.style.fill = one.privileged ? "var(--panel)" : look(learner);
        group.append(dot);
        picture.append(group);
      });
    });
    place.append(picture);
  }

  return { bars, overview };
}
