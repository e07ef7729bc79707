// Sortable tables, and downloads: tables as CSV, charts as PNG. Nothing is saved without a click.
(() => {
  "use strict";
  const button = (name, text, label) => {
    const element = document.createElement("button");
    element.type = "button";
    element.className = name;
    element.textContent = text;
    if (label) element.setAttribute("aria-label", label);
    return element;
  };
  const textOf = (cell) => {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll(".badge, .swatch, .save").forEach((one) => one.remove());
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const numberIn = (text) => {
    const found = /-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?/.exec(text);
    return found ? Number(found[0].replaceAll(",", "")) - (text.startsWith("<") ? 1e-9 : 0) : NaN;
  };

  function sortable(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    if (body.rows.length < 2) return;
    heads.forEach((head, column) => {
      const press = button("sort", "");
      press.append(...head.childNodes);
      head.append(press);
      press.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => ({ row, text: textOf(row.cells[column]) }));
        const numbers = column > 0 && keyed.every(({ text }) => text === "" || text === "-" || !Number.isNaN(numberIn(text)));
        const order = (a, b) => (numbers ? numberIn(a.text) - numberIn(b.text) : a.text.localeCompare(b.text, "en", { numeric: true }));
        const empty = ({ text }) => text === "" || text === "-";
        keyed.sort((a, b) => (empty(a) || empty(b) ? empty(a) - empty(b) : (down ? -1 : 1) * order(a, b)));
        body.append(...keyed.map(({ row }) => row));
      });
    });
  }

  // "12.3% (11.9 to 12.7)" becomes three columns; numbers lose their commas and per cent signs, which go to the header.
  const RANGE = /^(.*?) \((-?[\d.,e+-]+) to (-?[\d.,e+-]+)\)$/;
  const bare = (text) => (/^-?[\d,]+(\.\d+)?(e[-+]?\d+)?%?$/.test(text) ? text.replaceAll(",", "").replace("%", "") : text);
  const quoted = (text) => {
    const safe = /^[=+@\t]/.test(text) ? `'${text}` : text; // spreadsheets would run it
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  function csv(table) {
    const heads = [...table.tHead.rows[0].cells].map(textOf), rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map(textOf));
    const columns = heads.map((head, k) => {
      const cells = rows.map((row) => row[k]), ranged = cells.some((text) => RANGE.test(text));
      const name = cells.some((text) => /\d%/.test(text)) && !head.includes("%") ? `${head} [%]` : head;
      if (!ranged) return [[name, ...cells.map(bare)]];
      const parts = cells.map((text) => RANGE.exec(text)?.slice(1) ?? [text, "", ""]);
      return [[name, 0], [`${name}: low`, 1], [`${name}: high`, 2]].map(([title, at]) => [title, ...parts.map((one) => bare(one[at]))]);
    }).flat();
    return columns[0].map((_, row) => columns.map((column) => quoted(column[row])).join(",")).join("\r\n") + "\r\n";
  }

  // Draw a chart on its background, with its title: a canvas as it is, an SVG with its current colours.
  async function png(figure) {
    const place = figure.querySelector(".chart, .bars, .picture"), ratio = Math.max(2, devicePixelRatio), margin = 30;
    const width = place.clientWidth, height = place.clientHeight, sheet = document.createElement("canvas");
    Object.assign(sheet, { width: width * ratio, height: (height + margin) * ratio });
    const pen = sheet.getContext("2d"), style = getComputedStyle(document.documentElement);
    pen.scale(ratio, ratio);
    pen.fillStyle = style.getPropertyValue("--panel").trim();
    pen.fillRect(0, 0, width, height + margin);
    pen.fillStyle = style.getPropertyValue("--ink").trim();
    pen.font = "600 14px system-ui, sans-serif";
    pen.fillText(title(figure), 10, 20);
    const canvas = place.querySelector("canvas");
    pen.drawImage(canvas ?? (await image(place.querySelector("svg"), width, height)), 0, margin, width, height);
    return new Promise((done) => sheet.toBlob(done, "image/png"));
  }

  const title = (figure) => {
    const caption = figure.querySelector("figcaption").cloneNode(true);
    const chosen = figure.querySelector(".choice :checked")?.value ?? "";
    caption.querySelectorAll(".choice, .save").forEach((one) => one.remove());
    return `${caption.textContent.replace(/\s+/g, " ").trim()} ${chosen}`.trim();
  };

  async function image(drawing, width, height) {
    const copy = drawing.cloneNode(true), own = [...drawing.querySelectorAll("*")];
    [...copy.querySelectorAll("*")].forEach((one, k) => {
      const style = getComputedStyle(own[k]);
      for (const name of ["fill", "stroke", "font-family", "font-size"]) one.style[name] = style.getPropertyValue(name);
    });
    for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height })) copy.setAttribute(name, value);
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await picture.decode();
    return picture;
  }

  function save(blob, name, suffix) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name.normalize("NFC").replace(/[^\p{L}\p{N}.]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "report"}.${suffix}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  const named = (what) => `${document.title.replace(/: report$/, "")} ${what}`;
  for (const table of document.querySelectorAll("table")) {
    const caption = textOf(table.caption), press = button("save", "CSV", `Save as CSV: ${caption}`);
    if (!table.classList.contains("words")) sortable(table);
    press.addEventListener("click", () => save(new Blob(["\ufeff", csv(table)], { type: "text/csv" }), named(caption), "csv"));
    table.caption.append(press);
  }
  for (const figure of document.querySelectorAll("figure")) {
    const press = button("save", "PNG", `Save as PNG: ${title(figure)}`);
    const task = () => (figure.closest("#scaling-charts") ? "" : document.getElementById("task-name")?.textContent ?? "");
    press.addEventListener("click", async () => save(await png(figure), named(`${task()} ${title(figure)}`), "png"));
    figure.querySelector("figcaption").append(press);
  }
  Object.assign(window.report, { csv, png });
})();
