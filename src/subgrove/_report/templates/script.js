"use strict";
(() => {
  const root = document.documentElement;
  const all = (what, where = document) => Array.from(where.querySelectorAll(what));
  const one = (what, where = document) => where.querySelector(what);
  root.classList.add("js");

  // Light and dark theme; not stored.
  const theme = one("#theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const showTheme = () => {
    theme.setAttribute("aria-pressed", String(isDark()));
    theme.textContent = isDark() ? "Light" : "Dark";
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  prefersDark.addEventListener("change", showTheme);
  showTheme();

  // Sorting: numbers from large to small, names from A to Z; the same button again reverses the order.
  const ranking = one("#ranking");
  const choice = one("#sort");
  const order = { by: "conditional", down: true };
  const value = (row, by) => (row.dataset[by] === "" ? -Infinity : Number(row.dataset[by]));
  const compare = (by) => (a, b) =>
    by === "name" ? a.dataset.name.localeCompare(b.dataset.name) : value(a, by) - value(b, by);
  const sort = (by, down) => {
    Object.assign(order, { by, down });
    const body = ranking.tBodies[0];
    const rows = Array.from(body.rows).sort(compare(by));
    body.append(...(down ? rows.reverse() : rows));
    choice.value = by;
    for (const head of all("th[data-sort]", ranking)) {
      if (head.dataset.sort === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  };
  choice.addEventListener("change", () => sort(choice.value, choice.value !== "name"));
  for (const head of all("th[data-sort]", ranking)) {
    const by = head.dataset.sort;
    one("button", head).addEventListener("click", () => sort(by, order.by === by ? !order.down : by !== "name"));
  }

  // Search: show or hide everything with a feature's name, in all lists at once.
  const finders = all(".find");
  const find = (words) => {
    const wanted = words.trim().toLowerCase();
    for (const item of all("[data-name]")) item.hidden = !item.dataset.name.toLowerCase().includes(wanted);
    const features = all(".feature");
    const left = features.filter((item) => !item.hidden).length;
    for (const status of all(".matches")) status.textContent = wanted ? `${left} of ${features.length}` : "";
    one(".none").hidden = left > 0;
    for (const box of finders) if (box.value !== words) box.value = words;
  };
  for (const box of finders) box.addEventListener("input", () => find(box.value));

  // Open and close.
  const openAll = (open) => all(".feature").forEach((item) => (item.open = open));
  one("#open-all").addEventListener("click", () => openAll(true));
  one("#close-all").addEventListener("click", () => openAll(false));
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const around = target && target.closest("details");
    if (!around) return;
    around.hidden = false;
    around.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((item) => (item.open = true));
  });
  addEventListener("afterprint", () => closed.forEach((item) => (item.open = false)));

  // Toggling a curve, in all pictures of its feature; pointing at a subgroup fades the others.
  const parts = (body, key) => all(".panels [data-subgroup]", body).filter((part) => part.dataset.subgroup === key);
  for (const button of all(".toggle")) {
    const body = button.closest(".body");
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      for (const same of all(".toggle", body)) {
        if (same.dataset.toggle === button.dataset.toggle) same.setAttribute("aria-pressed", String(on));
      }
      for (const part of parts(body, button.dataset.toggle)) part.classList.toggle("off", !on);
    });
  }
  const fade = (body, key) => {
    for (const part of all("svg [data-subgroup]", body)) {
      part.classList.toggle("faded", key !== null && part.dataset.subgroup !== key);
    }
  };
  for (const source of all(".toggle, .subgroups tr[data-subgroup], .tree .leaf")) {
    const body = source.closest(".body");
    const key = source.dataset.toggle ?? source.dataset.subgroup;
    source.addEventListener("pointerenter", () => fade(body, key));
    source.addEventListener("pointerleave", () => fade(body, null));
  }

  // Values at the pointer.
  const tip = one("#tip");
  const hide = () => {
    tip.hidden = true;
    all(".cursor.on").forEach((cursor) => cursor.classList.remove("on"));
  };
  const show = (lines, x, y) => {
    tip.replaceChildren(
      ...lines.map((words, at) => {
        const line = document.createElement(at || lines.length === 1 ? "div" : "b");
        line.textContent = words;
        return line;
      }),
    );
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.height - 4))}px`;
  };
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  document.addEventListener("pointermove", (event) => {
    const marked = event.target.closest("[data-tip]");
    const chart = event.target.closest("svg[data-chart]");
    if (marked && marked.dataset.tip) show([marked.dataset.tip], event.clientX, event.clientY);
    else if (chart) read(chart, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("pointerleave", hide);
  addEventListener("scroll", hide, { passive: true });

  // Curves: all values at one place of x, by pointer or by arrow keys.
  const points = JSON.parse(one("#points").textContent);
  const number = (v) => {
    if (v === 0 || !Number.isFinite(v)) return v === 0 ? "0" : "\u2013";
    const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v)) + 1e-9));
    const text = digits > 8 || Math.abs(v) >= 1e12 ? v.toExponential(2) : v.toLocaleString("en", {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
    return text.replace("-", "\u2212");
  };
  const between = (line, x) => {
    const at = line.x.findIndex((value) => value >= x);
    if (at < 0 || (at === 0 && x < line.x[0])) return null;
    if (at === 0) return line.y[0];
    const share = (x - line.x[at - 1]) / (line.x[at] - line.x[at - 1]);
    return line.y[at - 1] + share * (line.y[at] - line.y[at - 1]);
  };
  const nearest = (labels, x) =>
    labels.reduce((best, next) => (Math.abs(next[0] - x) < Math.abs(best[0] - x) ? next : best))[1];
  const showValues = (chart, place, clientX, clientY) => {
    const data = points[chart.dataset.chart];
    const [low, high, start, end] = data.x;
    const at = Math.min(end, Math.max(start, place));
    const x = low + ((at - start) / (end - start)) * (high - low);
    const pressed = (key) => one(`.toggle[data-toggle="${key}"]`, chart.closest(".panel")).getAttribute("aria-pressed");
    const values = data.lines
      .filter((line) => pressed(line.key) === "true")
      .map((line) => [line.name, between(line, x), line.shift])
      .filter(([, y]) => y !== null)
      .map(([name, y, shift]) => `${name}: ${number(y - shift)}`);
    const head = data.labels.length ? `near ${nearest(data.labels, x)}` : number(x);
    show([`${data.feature} ${data.labels.length ? "" : "= "}${head}`, ...values], clientX, clientY);
    const cursor = one(".cursor", chart);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.classList.add("on");
    chart.dataset.place = at;
  };
  const read = (chart, clientX, clientY) => {
    const box = chart.getBoundingClientRect();
    all(".cursor.on").forEach((cursor) => cursor.classList.remove("on"));
    showValues(chart, ((clientX - box.left) / box.width) * chart.viewBox.baseVal.width, clientX, clientY);
  };
  const STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
  const stepCurve = (chart, by) => {
    const [, , start, end] = points[chart.dataset.chart].x;
    const now = chart.dataset.place === undefined ? (start + end) / 2 : Number(chart.dataset.place);
    const place = now + (by * (end - start)) / 40;
    const box = chart.getBoundingClientRect();
    showValues(chart, place, box.left + (place / chart.viewBox.baseVal.width) * box.width, box.top + box.height / 3);
  };
  const stepMarks = (chart, by) => {
    const marks = all("[data-tip]", chart).filter((mark) => !mark.classList.contains("off"));
    if (!marks.length) return;
    const at = (Number(chart.dataset.place ?? -1) + by + marks.length) % marks.length;
    chart.dataset.place = at;
    show([marks[at].dataset.tip], ...middle(marks[at]));
  };
  for (const chart of all("svg[tabindex]")) {
    const step = (by) => (chart.dataset.chart ? stepCurve(chart, by) : stepMarks(chart, by));
    chart.addEventListener("focus", () => chart.matches(":focus-visible") && step(chart.dataset.chart ? 0 : 1));
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      step(STEPS[event.key]);
    });
  }

  // One class at a time, the same in all features.
  const showOutput = (wanted) => {
    for (const part of all("div.output[data-output]")) part.hidden = part.dataset.output !== wanted;
    for (const choice of all("select.output")) choice.value = wanted;
  };
  const outputs = all("select.output");
  if (outputs.length) showOutput(outputs[0].value);
  for (const choice of outputs) {
    choice.addEventListener("change", () => {
      const before = choice.getBoundingClientRect().top;
      showOutput(choice.value);
      scrollBy({ top: choice.getBoundingClientRect().top - before, behavior: "instant" });
    });
  }

  // Explanations of terms, which links lead to, are shown as tips too.
  for (const word of all("a.term")) {
    word.dataset.tip = document.getElementById(word.hash.slice(1)).textContent;
    word.addEventListener("focus", () => word.matches(":focus-visible") && show([word.dataset.tip], ...middle(word)));
    word.addEventListener("blur", hide);
  }

  // Files: tables as CSV with all digits, charts as SVG, PNG and CSV. Nothing is sent anywhere.
  const save = (name, kind, content) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
    link.download = name.replace(/[^\p{L}\p{N}. -]+/gu, "_").slice(0, 80);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const quoted = (value) => {
    const text = typeof value === "number" ? String(value) : String(value ?? "").replace(/\s+/g, " ").trim();
    const safe = typeof value === "string" && /^[=+@-]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
    return /[",'\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const csv = (rows) => `\ufeff${rows.map((row) => row.map(quoted).join(",")).join("\r\n")}\r\n`;
  const tableRows = (table) => {
    const body = Array.from(table.tBodies[0].rows);
    const heads = Array.from(table.tHead.rows[0].cells);
    const columns = heads.map((head, at) => ({ head, at })).filter(({ head }) => !head.matches(".picture-head"));
    const ranged = (at) => body.some((row) => row.cells[at].dataset.low !== undefined);
    const words = (cell) => cell.textContent.replaceAll("\u2212", "-");
    const names = columns.flatMap(({ head, at }) => {
      const name = words(head).trim();
      return ranged(at) ? [name, `${name} low`, `${name} high`] : [name];
    });
    const values = body.map((row) =>
      columns.flatMap(({ at }) => {
        const { value, low, high } = row.cells[at].dataset;
        return ranged(at) ? [value, low, high] : [value ?? words(row.cells[at])];
      }),
    );
    return [names, ...values];
  };
  const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "visibility"];
  const TEXT = ["font-family", "font-size", "font-weight", "text-anchor"];
  const drawing = (chart) => {
    const copy = chart.cloneNode(true);
    const [from, to] = [chart, copy].map((root) => [root, ...all("*", root)]);
    from.forEach((element, at) => {
      const computed = getComputedStyle(element);
      const names = element.matches("text") ? [...PAINT, ...TEXT] : PAINT;
      if (at) for (const name of names) to[at].setAttribute(name, computed.getPropertyValue(name));
      for (const name of to[at].getAttributeNames()) if (/^(class|data-|tabindex)/.test(name)) to[at].removeAttribute(name);
    });
    const { width, height } = chart.viewBox.baseVal;
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const paper = document.createElementNS(chart.namespaceURI, "rect");
    for (const [name, value] of Object.entries({ width, height })) paper.setAttribute(name, value);
    paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
    copy.prepend(paper);
    return new XMLSerializer().serializeToString(copy);
  };
  const picture = (chart, name) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      const { width, height } = chart.viewBox.baseVal;
      Object.assign(canvas, { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(name, "image/png", blob));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing(chart))}`;
  };
  const curveRows = (data) => [
    ["curve", data.feature, "prediction"],
    ...data.lines.flatMap((line) => line.x.map((x, at) => [line.name, x, line.y[at]])),
  ];
  const offer = (after, choices) => {
    const bar = document.createElement("div");
    bar.className = "exports";
    for (const [kind, action] of choices) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `Save as ${kind}`);
      button.addEventListener("click", action);
      bar.append(button);
    }
    after.after(bar);
  };
  for (const table of all("table[data-export]")) {
    offer(table, [["CSV", () => save(`${table.dataset.export}.csv`, "text/csv", csv(tableRows(table)))]]);
  }
  for (const chart of all("svg.curves, svg.levels, svg.tree")) {
    const name = chart.getAttribute("aria-label").split(":")[0];
    const data = points[chart.dataset.chart ?? chart.dataset.points];
    offer(chart, [
      ["SVG", () => save(`${name}.svg`, "image/svg+xml", drawing(chart))],
      ["PNG", () => picture(chart, `${name}.png`)],
      ...(data ? [["CSV", () => save(`${name}.csv`, "text/csv", csv(curveRows(data)))]] : []),
    ]);
  }

  // Current section in the contents.
  const links = new Map(all(".contents>ol a").map((link) => [link.getAttribute("href").slice(1), link]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.classList.remove("here"));
        links.get(entry.target.id).classList.add("here");
      }
    },
    { rootMargin: "-20% 0px -75% 0px" },
  );
  links.forEach((_, id) => seen.observe(document.getElementById(id)));
})();
