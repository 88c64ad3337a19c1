// The views of an answer.
import { curve, legend, roofline, stack } from "./charts.js";
import { byId, el, math, path, show, table } from "./dom.js";
import { answer, applies, largest } from "./model.js";
import { axisValues, startMap, viridis } from "./phase.js";
import { valueOf } from "./state.js";
import { colourOf, dollars, gigabytes, percent, plain, scaled, seconds, words } from "./units.js";

const METRICS = {
  train: [["time", "step time", "s"], ["tokens_per_s", "tokens a second", "1"], ["mfu", "MFU", "%"], ["memory", "memory", "B"]],
  infer: [["time", "whole time", "s"], ["prefill", "prefill (TTFT)", "s"], ["time_per_token", "time per token", "s"],
    ["tokens_per_s", "tokens a second", "1"], ["memory", "memory", "B"]],
};
const metric = (told, name) => (name === "memory" ? told.memory.need : told.value(name));

const HEAD = {
  train: [["Step time", (t) => seconds(t.value("time"))], ["Tokens a second", (t) => plain(t.value("tokens_per_s"), 4)],
    ["Tokens a second and device", (t) => plain(t.value("tokens_per_s_per_device"), 4)], ["MFU", (t) => percent(t.value("mfu"))],
    ["HFU", (t) => percent(t.value("hfu"))]],
  infer: [["Whole time", (t) => seconds(t.value("time"))], ["Prefill (TTFT)", (t) => seconds(t.value("prefill"))],
    ["Time per token", (t) => seconds(t.value("time_per_token"))], ["Tokens a second", (t) => plain(t.value("tokens_per_s"), 4)],
    ["Tokens a second and device", (t) => plain(t.value("tokens_per_s_per_device"), 4)], ["MFU of prefill", (t) => percent(t.value("prefill_mfu"))]],
};
const MORE = [["Devices", (t) => plain(t.value("devices"))],
  ["Memory", (t) => el("span", { class: t.memory.fits ? "" : "bad" }, `${gigabytes(t.memory.need)} of ${gigabytes(t.memory.capacity)}${t.memory.fits ? "" : ": does not fit"}`)],
  ["Rent", (t) => dollars(t.dollars)], ["Energy", (t) => (t.joules === null ? "not told by the system" : scaled(t.joules, "J"))]];

export function drawHeadline(told) {
  const slots = Object.keys(told), kinds = [...new Set(slots.map((slot) => told[slot].kind.name))];
  const rows = kinds.flatMap((name) => HEAD[name].map(([label, of]) => [label, ...slots.map((slot) =>
    (told[slot].kind.name !== name ? "" : told[slot].answer.reason ? "–" : of(told[slot].answer)))]));
  for (const [label, of] of MORE) rows.push([label, ...slots.map((slot) => (told[slot].answer.reason ? "–" : of(told[slot].answer)))]);
  const heads = slots.length > 1 ? slots.map((slot) => slot.toUpperCase()) : ["value"];
  const names = slots.map((slot) => `${told[slot].config.choices.model} on ${told[slot].config.choices.system}`);
  show(byId("headline"), table(names.join("; "), ["quantity", ...heads], rows));
}

export function drawShares(told) {
  const parts = Object.entries(told.shares).filter(([, share]) => share > 0).sort(([, one], [, other]) => other - one)
    .map(([name, share]) => ({ name: words(name), value: share, text: percent(share), colour: colourOf(name) }));
  show(byId("shares"), stack("Shares of resources", parts, 1), legend(parts));
}

const PARTS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f", "#8c564b", "#4d4d4d"];

export function drawMemory(told) {
  const { parts, need, capacity } = told.memory;
  const sorted = [...parts].sort((one, other) => other.bytes - one.bytes);
  const made = sorted.map(({ name, bytes }, k) => ({ name: words(name), value: bytes, text: gigabytes(bytes), colour: PARTS[k % PARTS.length] }));
  const all = Math.max(need, capacity);
  const spare = { name: "free", value: capacity - need, text: gigabytes(capacity - need), colour: "transparent" };
  show(byId("memory"), stack("Memory by part", [...made, ...(capacity > need ? [spare] : [])], all), legend(made),
    el("p", { class: told.memory.fits ? "" : "bad" }, told.memory.fits
      ? `${gigabytes(need)} of ${gigabytes(capacity)}: ${gigabytes(capacity - need)} are free.`
      : `${gigabytes(need)} are needed and a device has ${gigabytes(capacity)}: ${gigabytes(need - capacity)} are missing.`));
}

export function drawOperations(kind, told, open, toggle) {
  const rows = told.rows.filter(({ seconds: time }) => time > 0).sort((one, other) => other.seconds - one.seconds);
  const hidden = told.rows.length - rows.length, most = rows.length ? rows[0].seconds : 1;
  const bounds = [...new Set(rows.map(({ bound }) => bound).filter(Boolean))];
  show(byId("operations"),
    legend([...bounds.map((name) => ({ name: `bound by ${words(name)}`, value: 1, text: "", colour: colourOf(name) })),
      { name: "waiting", value: rows.some(({ idle }) => idle) ? 1 : 0, text: "", colour: "#999999" }]),
    rows.map((row) => el("div", {},
      el("div", { class: "bar" },
        el("button", { type: "button", class: "name", "aria-expanded": String(open === row.path), "data-path": row.path, onclick: () => toggle(row.path) }, path(row.path)),
        el("div", { class: "rail", "aria-hidden": "true" }, el("div", { class: "fill", style: { width: `${100 * row.seconds / most}%`, background: row.idle ? "#999999" : colourOf(row.bound) } })),
        el("span", { class: "told" }, `${seconds(row.seconds)} · ${percent(row.share)}`)),
      open === row.path ? detail(kind, told, row) : null)),
    hidden > 0 ? el("p", {}, `${hidden} operations beside them are hidden behind longer ones, or take no time.`) : null);
}

// What is told of one operation: its demand, its bound, and the symbols that its time reads.
function detail(kind, told, row) {
  const rows = [["bound", row.idle ? "waits for others" : words(row.bound ?? "nothing")], ["executions", plain(row.count, 6)],
    ["one of them", seconds(row.each)], ["FLOPs of one", scaled(row.flops, "FLOP")], ["bytes of memory of one", scaled(row.bytes, "B")],
    ["bytes of messages of one", scaled(row.message, "B")]];
  return el("div", { class: "detail" }, table(row.path, ["what", "value"], row.idle ? rows.slice(0, 3) : rows),
    row.calls.length || row.idle ? null : el("p", {}, "No formula: a figure of the software."), row.calls.map(([name, given]) => formula(name, given)));
}

// A formula: its title, its equation, what stands for its parameters here, and its source.
function formula(name, given) {
  const told = formulas[name];
  return el("div", { class: "formula" }, el("h3", {}, told.title, " ", el("code", {}, name)), el("p", {}, told.sentence),
    told.math ? el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": `Equation of ${told.title}` }, told.math.map(math)) : el("pre", { tabindex: 0 }, told.lines.join("\n")),
    given ? el("p", {}, "Here ", el("code", {}, given)) : null, el("p", { class: "unit" }, told.source));
}

let formulas = {};
export function readFormulas(data) { formulas = data; }

// Batches against each other: tokens a second and device over the time of a token, inference alone.
export function drawLatency(kind, config) {
  const where = byId("latency");
  show(where);
  const now = valueOf(kind, config, "batch"), replicas = valueOf(kind, config, "dp"), points = [];
  for (let batch = replicas; batch <= 4096 * replicas; batch *= 2) {
    const told = answer(kind, { ...config, numbers: { ...config.numbers, batch } }, { terms: false });
    if (!told.reason && told.memory.fits) points.push([told.value("time_per_token"), told.value("tokens_per_s_per_device"), batch]);
  }
  if (points.length < 2) { show(where, el("p", {}, "No two batches fit in memory.")); return; }
  points.sort(([one], [other]) => one - other);
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  curve(where, { xs, ys, x: { label: "time per token", unit: "s" }, y: { label: "tokens/s per device", unit: "1" }, bands: [], now: NaN, logX: true });
  where.append(el("details", {}, el("summary", {}, "The same as a table"), table(`Batches; now ${now}`, ["batch", "time per token", "tokens a second and device"],
    points.map(([x, y, batch]) => [plain(batch), seconds(x), plain(y, 4)]))));
}

export function drawRoofline(told) {
  const where = byId("roofline");
  show(where);
  const peak = told.input("matrix_rate"), bandwidth = told.input("memory_bandwidth");
  const points = told.rows.filter((row) => !row.idle && row.bytes > 0 && row.each > 0 && row.flops > 0)
    .map((row) => ({ path: row.path, x: row.flops / row.bytes, y: row.flops / row.each, share: Math.max(row.share, 0), bound: row.bound }));
  if (roofline(where, { points, peak, bandwidth }) === null) { show(where, el("p", {}, "No operation computes.")); return; }
  where.append(el("p", { class: "unit" }, `Roofs: ${scaled(bandwidth, "B/s")} of memory and ${scaled(peak, "FLOP/s")} of matrix units, as in the data sheet. `
    + "The area of a point grows with its share of the time; its colour is what bounds it."),
    el("details", {}, el("summary", {}, "The same as a table"), table("Operations", ["operation", "FLOPs a byte", "FLOP/s", "share"],
      points.sort((one, other) => other.share - one.share).map((p) => [p.path, plain(p.x), scaled(p.y, "FLOP/s"), percent(p.share)]))));
}

// One symbol swept: a curve, the resource that binds along it, and where that changes.
export function drawSweep(kind, config, number, name) {
  if (!applies(kind, config, number)) { show(byId("sweep"), el("p", {}, `${words(number.name)}: the system has no such figure.`)); return; }
  const [, label, unit] = METRICS[kind.name].find(([each]) => each === name) ?? METRICS[kind.name][0];
  const top = number.group === "work" ? Math.min(number.high, Math.max(1024, number.start * 64)) : number.high;
  const xs = number.degrees.length ? number.degrees.slice() : [...new Set(axisValues({ ...number, high: top }, 240))];
  const at = (x) => answer(kind, { ...config, numbers: { ...config.numbers, [number.name]: x } }, { terms: false });
  const symbol = kind.symbols[kind.number.get(number.name)] ?? {}, unitX = symbol.unit ?? "1";
  const all = xs.map(at), where = byId("sweep");
  const ys = all.map((told) => (told.reason ? NaN : metric(told, name)));
  show(where);
  if (!ys.some(Number.isFinite)) { show(where, el("p", {}, `Nothing along it can be: ${all[0].reason}`)); return; }
  const bound = all.map((told) => (told.reason ? null : largest(told.shares)));
  const bands = [], marks = [];
  for (let k = 0; k < xs.length; k += 1) {
    if (bound[k] === null) continue;
    const last = bands[bands.length - 1];
    if (last !== undefined && last.resource === bound[k]) { last.to = xs[k]; continue; }
    const from = last === undefined || number.whole ? xs[k] : crossing(at, xs[k - 1], xs[k], last.resource);
    if (last !== undefined) { last.to = from; marks.push(`${words(last.resource)} to ${words(bound[k])} at ${scaled(from, unitX, 4)}`); }
    bands.push({ from, to: xs[k], resource: bound[k] });
  }
  const now = valueOf(kind, config, number.name);
  curve(where, { xs, ys, x: { label: words(number.name), unit: unitX }, y: { label, unit }, bands, now, logX: xs[0] > 0 && xs[xs.length - 1] / xs[0] > 20 });
  where.append(legend([...new Set(bands.map(({ resource }) => resource))].map((resource) => ({ name: `most time due to ${words(resource)}`, value: 1, text: "", colour: colourOf(resource) }))),
    el("p", { class: "unit" }, `The heavy line is the value now (${scaled(now, unitX, 4)}). ${marks.length ? `What most time is due to changes from ${marks.join("; ")}.` : "What most time is due to does not change."}`));
}

function crossing(at, low, high, resource) {
  let [from, to] = [low, high];
  for (let step = 0; step < 30; step += 1) {
    const middle = (from + to) / 2, told = at(middle);
    if (!told.reason && largest(told.shares) === resource) from = middle; else to = middle;
  }
  return to;
}

export const metricsOf = (kind) => METRICS[kind.name];

// A map over two symbols.
export function drawMap(kind, config, x, y, code) {
  const where = byId("phase"), absent = [x, y].find((number) => !applies(kind, config, number));
  if (absent) { show(where, el("p", {}, `${words(absent.name)}: the system has no such figure.`)); return; }
  show(where, el("p", { role: "status" }, "A million points are computed …"));
  let kept = null;
  const ends = (number) => {
    const unit = kind.symbols[kind.number.get(number.name)]?.unit ?? "1";
    return `${scaled(number.low, unit)} to ${scaled(number.high, unit)}`;
  };
  const told = (data) => {
    if (data.error) { show(where, el("p", { class: "bad" }, `The map could not be drawn: ${data.error}`)); return; }
    if (data.bound) {
      if (kept === null) return;
      const present = [...new Set(data.bound)].map((k) => data.names[k]);
      where.append(el("h3", {}, "What most of the time is due to"), picture(data.side, data.side, (k) => hex(colourOf(data.names[data.bound[k]])), "Map of what binds"),
        legend(present.map((name) => ({ name: words(name), value: 1, text: "", colour: colourOf(name) }))),
        el("p", { class: "unit" }, `On ${data.side} x ${data.side} points.`));
      return;
    }
    kept = data;
    let [low, high] = [Infinity, -Infinity], legal = 0;
    data.time.forEach((time, k) => { if (data.legal[k]) { legal += 1; low = Math.min(low, time); high = Math.max(high, time); } });
    if (legal === 0) { show(where, el("p", {}, "No point of the map can be.")); return; }
    const capacity = answer(kind, config, { terms: false }).memory.capacity, span = Math.log(high / low) || 1;
    const draw = (k) => {
      if (!data.legal[k]) return [128, 128, 128];
      const colour = viridis(1 - Math.log(data.time[k] / low) / span);
      return data.need[k] > capacity ? colour.map((each) => Math.round(each * 0.35)) : colour;
    };
    const side = data.xs.length;
    show(where, el("h3", {}, "Time"), picture(side, data.ys.length, draw, `Time over ${words(x.name)} and ${words(y.name)}, from ${seconds(low)} to ${seconds(high)}`),
      el("div", { class: "scale", style: { background: `linear-gradient(to right, ${[1, .75, .5, .25, 0].map((s) => `rgb(${viridis(s).join(",")})`).join(",")})` }, "aria-hidden": "true" }),
      el("p", {}, `${seconds(low)} (left) to ${seconds(high)} (right). Across: ${words(x.name)}, ${ends(x)}. Upwards: ${words(y.name)}, ${ends(y)}.`),
      el("p", { class: "unit" }, `${plain(data.time.length)} points in ${plain(data.took)} ms. Dark points do not fit in memory; grey ones cannot be.`));
  };
  try { startMap(kind, config, [x, y], code, told); } catch (error) { show(where, el("p", { class: "bad" }, `The map could not be drawn: ${error.message}`)); }
}

const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

function picture(width, height, colour, label) {
  const canvas = el("canvas", { class: "map", width, height, role: "img", "aria-label": label });
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let j = 0; j < height; j += 1) {
    for (let i = 0; i < width; i += 1) {
      const at = 4 * ((height - 1 - j) * width + i), [red, green, blue] = colour(j * width + i);
      image.data[at] = red; image.data[at + 1] = green; image.data[at + 2] = blue; image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// All inputs of the structure, with their sources.
export function drawSymbols(kind, told) {
  const { values, sources, moved } = told.inputs;
  const rows = kind.symbols.flatMap((symbol, place) => (symbol.sentence && kind.texts[sources[place]] !== "not used"
    ? [[symbol.name, moved.has(symbol.name) ? el("b", {}, scaled(values[place], symbol.unit)) : scaled(values[place], symbol.unit), symbol.sentence,
      moved.has(symbol.name) ? "moved here" : kind.texts[sources[place]]]] : []));
  show(byId("symbols"), el("details", {}, el("summary", {}, `${rows.length} symbols with their values and sources`),
    table("Values", ["symbol", "value", "meaning", "source"], rows)));
}

export function csvOf(told) {
  const safe = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value));
  const cell = (value) => (/[",\n]/.test(safe(value)) ? `"${safe(value).replaceAll('"', '""')}"` : safe(value));
  return [["operation", "seconds", "share", "bound", "executions", "flops", "bytes", "message_bytes"],
    ...told.rows.map((row) => [row.path, row.seconds, row.share, row.bound ?? "", row.count, row.flops, row.bytes, row.message])]
    .map((line) => line.map(cell).join(",")).join("\n");
}
