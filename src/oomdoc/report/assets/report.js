// Draws the charts of the page and links them. It writes text nodes and attributes only, never markup: texts of a bundle
// come through here as they are.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: () => {}, logLevel: 1 };
  const views = [];
  let from = data.from, to = data.to, cursor = null;
  const NOMINAL = Date.UTC(2003, 0, 1); // earlier stamps carry no year

  const show = (ms) => {
    const text = new Date(ms).toISOString().slice(0, 19);
    return ms < NOMINAL ? text.slice(5).replace("T", " ") + " (year unknown)" : text.replace("T", " ") + "Z";
  };
  const figure = (value, chart) =>
    value === null || value === undefined ? "–" : value.toLocaleString("en-US", { maximumFractionDigits: chart.digits });
  const withUnit = (text, chart) => (text !== "–" && ["%", "GiB"].includes(chart.unit) ? text + " " + chart.unit : text);

  // ---- columns -> points

  const spacing = (chart) => (chart.times.length > 1 ? chart.times[1] - chart.times[0] : 1000);

  // Readings far apart are not joined: a gap of many times the usual distance breaks the line.
  const points = (chart) => {
    const joined = [], lone = [], step = spacing(chart);
    for (const series of chart.series) {
      const at = [];
      series.values.forEach((value, place) => { if (value !== null) at.push(place); });
      const gaps = at.slice(1).map((place, n) => place - at[n]).sort((a, b) => a - b);
      const usual = gaps.length ? gaps[Math.floor(gaps.length / 2)] : 1;
      at.forEach((place, n) => {
        const before = n > 0 ? place - at[n - 1] : Infinity, after = n + 1 < at.length ? at[n + 1] - place : Infinity;
        const apart = Math.max(4 * usual, 4);
        joined.push({ t: chart.times[place], v: series.values[place], s: series.name });
        if (after > apart && after < Infinity) joined.push({ t: chart.times[place] + step, v: null, s: series.name });
        if (before > apart && after > apart) lone.push({ t: chart.times[place], v: series.values[place], s: series.name });
      });
    }
    return { joined, lone };
  };
  // Bars begin with their step, and stand on each other.
  const bars = (chart) => {
    const told = [], step = spacing(chart), sums = chart.times.map(() => 0);
    for (const series of chart.series)
      series.values.forEach((value, n) => {
        if (!value) return;
        told.push({ t: chart.times[n], t1: chart.times[n] + step, v0: sums[n], v1: sums[n] + value, s: series.name });
        sums[n] += value;
      });
    return { joined: told, lone: [] };
  };

  // Marks with the labels that fit: those near each other share one, the gravest first.
  const NAMES = { failure: "failure", evidence: "cause", kill: "kill" }, GRAVITY = ["failure", "kill", "evidence"];
  const marked = (plot) => {
    const marks = data.marks.map((mark) => ({ ...mark })), room = 95 * (to - from) / Math.max(plot.clientWidth - 70, 50);
    const named = marks.filter((mark) => NAMES[mark.kind] && mark.t >= from && mark.t <= to);
    let group = [];
    const close = () => {
      if (!group.length) return;
      const kinds = [...new Set(group.map((mark) => mark.kind))].sort((a, b) => GRAVITY.indexOf(b) - GRAVITY.indexOf(a));
      group.reduce((a, b) => (GRAVITY.indexOf(b.kind) < GRAVITY.indexOf(a.kind) ? b : a)).label = kinds.map((kind) => NAMES[kind]).join(", ");
      group = [];
    };
    for (const mark of named) {
      if (group.length && mark.t - group[0].t > room) close();
      group.push(mark);
    }
    close();
    return marks;
  };

  // ---- drawing

  const draw = async (chart) => {
    const figureElement = document.getElementById("fig-" + chart.id);
    const plot = figureElement.querySelector(".plot");
    const made = chart.kind === "bar" ? bars(chart) : points(chart);
    const spec = chart.spec;
    spec.datasets = { points: made.joined, lone: made.lone, marks: marked(plot), cursor: [], drag: [] };
    spec.params = [{ name: "from", value: from }, { name: "to", value: to }];
    const { view } = await vegaEmbed(plot, spec, options);
    plot.setAttribute("role", "application"); // vega-embed takes it for itself
    plot.setAttribute("aria-roledescription", "chart over time");
    plot.setAttribute("aria-label", plot.dataset.label);
    const entry = { chart, view, plot, figure: figureElement };
    views.push(entry);
    listen(entry);
    readout(entry);
  };

  const place = (chart, time) => {
    const { times } = chart;
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  };
  // The reading at the cursor: that of the step, else the last one not far before.
  const reading = (chart, values, time) => {
    const last = place(chart, time);
    if (time < chart.times[0] || time > chart.times[chart.times.length - 1] + spacing(chart)) return null;
    if (chart.kind === "bar") return values[last];
    for (let n = last; n >= 0 && n > last - 12; n--) if (values[n] !== null) return values[n];
    return null;
  };
  const readout = ({ chart, figure: element }) => {
    element.querySelectorAll(".legend b").forEach((slot, n) => {
      const values = chart.series[n].values;
      if (cursor !== null) { slot.textContent = withUnit(figure(reading(chart, values, cursor), chart), chart); return; }
      const known = values.filter((value) => value !== null);
      slot.textContent = known.length ? (chart.kind === "bar" ? "total " : "max ") + figure(chart.kind === "bar" ? known.reduce((a, b) => a + b, 0) : Math.max(...known), chart) : "–";
      slot.textContent = withUnit(slot.textContent, chart);
    });
  };
  const now = document.getElementById("now");
  const setCursor = (time) => {
    cursor = time;
    for (const entry of views) {
      entry.view.data("cursor", time === null ? [] : [{ t: time }]).runAsync();
      readout(entry);
    }
    if (now) now.textContent = time === null ? "" : show(time);
  };
  const setRange = (low, high) => {
    const least = 10_000, whole = data.to - data.from;
    let width = Math.min(Math.max(high - low, least), Math.max(whole, least));
    from = Math.min(Math.max(low, data.from), Math.max(data.to - width, data.from));
    to = from + width;
    for (const entry of views) entry.view.signal("from", from).signal("to", to).data("marks", marked(entry.plot)).runAsync();
  };
  const zoom = (factor) => {
    const centre = cursor === null ? (from + to) / 2 : cursor, width = (to - from) * factor;
    setRange(centre - width * (centre - from) / (to - from), centre + width * (to - centre) / (to - from));
  };

  const listen = ({ chart, view, plot, figure: element }) => {
    let begun = null;
    const timeAt = (event) => {
      const box = plot.querySelector("svg").getBoundingClientRect();
      const scale = view.scale("x"), range = scale.range();
      const x = (event.clientX - box.left) * (view.width() + view.origin()[0] + view.padding().right) / box.width - view.origin()[0];
      return +scale.invert(Math.min(Math.max(x, range[0]), range[1]));
    };
    const dragged = (low, high) => {
      for (const entry of views) entry.view.data("drag", low === null ? [] : [{ a: Math.min(low, high), b: Math.max(low, high) }]).runAsync();
    };
    plot.addEventListener("pointermove", (event) => {
      const time = timeAt(event);
      setCursor(time);
      if (begun !== null) dragged(begun, time);
    });
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      begun = timeAt(event);
      plot.setPointerCapture(event.pointerId);
    });
    const end = (event) => {
      if (begun === null) return;
      const time = timeAt(event), low = Math.min(begun, time), high = Math.max(begun, time);
      begun = null;
      dragged(null);
      if (high - low > (to - from) / 100) setRange(low, high);
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", () => { begun = null; dragged(null); });
    plot.addEventListener("pointerleave", () => { if (begun === null) setCursor(null); });
    plot.addEventListener("dblclick", () => setRange(data.from, data.to));
    plot.addEventListener("keydown", (event) => {
      const step = spacing(chart), at = cursor === null ? (data.failure ?? from) : cursor;
      const keys = {
        ArrowLeft: () => setCursor(Math.max(at - step, data.from)), ArrowRight: () => setCursor(Math.min(at + step, data.to)),
        Home: () => setCursor(from), End: () => setCursor(to), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
        0: () => setRange(data.from, data.to), Escape: () => setCursor(null),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
      if (cursor !== null) {
        if (cursor < from || cursor > to) setRange(cursor - (to - from) / 2, cursor + (to - from) / 2);
        const said = chart.series.map((series) => series.name + " " + figure(reading(chart, series.values, cursor), chart));
        element.querySelector("p[aria-live]").textContent = show(cursor) + ": " + said.join(", ") + " " + chart.unit;
      }
    });
    const table = element.querySelector("details.table");
    table.addEventListener("toggle", () => { if (table.open) tabulate(chart, table.querySelector(".scroll")); });
  };

  const tabulate = (chart, box) => {
    if (box.firstChild) return;
    const table = document.createElement("table");
    const line = (parent, kind, texts) => {
      const row = parent.insertRow();
      texts.forEach((text, n) => {
        const cell = document.createElement(n && kind === "td" ? "td" : "th");
        cell.textContent = text;
        cell.scope = kind === "th" ? "col" : "row";
        if (n) cell.className = "num";
        row.append(cell);
      });
    };
    line(table.createTHead(), "th", ["time (UTC)", ...chart.series.map((series) => series.name + ", " + chart.unit)]);
    const body = table.createTBody();
    chart.times.forEach((time, n) => {
      const values = chart.series.map((series) => series.values[n]);
      if (values.some((value) => value !== null)) line(body, "td", [show(time), ...values.map((value) => figure(value, chart))]);
    });
    box.append(table);
  };

  // ---- the page

  for (const button of document.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => {
      const kinds = {
        all: () => setRange(data.from, data.to), in: () => zoom(0.5), out: () => zoom(2),
        failure: () => setRange(data.failure - data.around, data.failure + data.around),
      };
      kinds[button.dataset.zoom]();
    });

  const copied = (button, done) => {
    const label = button.firstChild, before = label.nodeValue;
    label.nodeValue = done ? "Copied" : "Select it";
    setTimeout(() => { label.nodeValue = before; }, 1500);
  };
  for (const button of document.querySelectorAll("[data-copy]"))
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        copied(button, true);
      } catch { // not allowed from disk everywhere: select it, and let the browser copy the selection
        getSelection().selectAllChildren(source);
        copied(button, document.execCommand("copy"));
      }
    });

  const start = async () => {
    for (const plot of document.querySelectorAll(".plot")) plot.dataset.label = plot.getAttribute("aria-label");
    if (data.ledger) {
      const box = document.getElementById("ledger"), label = box.getAttribute("aria-label");
      await vegaEmbed(box, data.ledger, options);
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", label);
    }
    for (const chart of data.charts) await draw(chart);
    document.documentElement.dataset.drawn = String(views.length);
  };
  start().catch((problem) => { console.error(problem); });
})();
