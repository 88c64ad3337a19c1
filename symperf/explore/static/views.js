// The views of an answer.
import { curve, legend, roofline, stack } from "./charts.js";
import { answerDetail, operationDetail } from "./detail.js";
import { byId, el, path, show, table } from "./dom.js";
import { answer, applies, largest } from "./model.js";
import { axisValues, startMap, viridis } from "./phase.js";
import { noteBars } from "./pictures.js";
import { valueOf } from "./state.js";
import { colourOf, colourOfPart, dollars, gigabytes, percent, plain, scaled, seconds, words } from "./units.js";

const METRICS = {
  train: [["time", "step time", "s"], ["tokens_per_s", "tokens a second", "1"], ["mfu", "MFU", "%"], ["memory", "memory", "B"]],
  infer: [["time", "whole time", "s"], ["prefill", "prefill (TTFT)", "s"], ["time_per_token", "time per token", "s"],
    ["tokens_per_s", "tokens a second", "1"], ["memory", "memory", "B"]],
};
const metric = (told, name) => (name === "memory" ? told.memory.need : told.value(name));

const HEAD = {
  train: [["Step time", "time", (t) => seconds(t.value("time"))], ["Tokens a second", "tokens_per_s", (t) => plain(t.value("tokens_per_s"), 4)],
    ["Tokens a second and device", "tokens_per_s_per_device", (t) => plain(t.value("tokens_per_s_per_device"), 4)],
    ["MFU", "mfu", (t) => percent(t.value("mfu"))], ["HFU", "hfu", (t) => percent(t.value("hfu"))]],
  infer: [["Whole time", "time", (t) => seconds(t.value("time"))], ["Prefill (TTFT)", "prefill", (t) => seconds(t.value("prefill"))],
    ["Time per token", "time_per_token", (t) => seconds(t.value("time_per_token"))], ["Tokens a second", "tokens_per_s", (t) => plain(t.value("tokens_per_s"), 4)],
    ["Tokens a second and device", "tokens_per_s_per_device", (t) => plain(t.value("tokens_per_s_per_device"), 4)],
    ["MFU of prefill", "prefill_mfu", (t) => percent(t.value("prefill_mfu"))]],
};
const needOf = (kind) => (kind.name === "train" ? "reserved" : "needed");
const MORE = [["Devices", () => "devices", (t) => plain(t.value("devices"))],
  ["Memory", needOf, (t) => el("span", { class: t.memory.fits ? "" : "bad" }, `${gigabytes(t.memory.need)} of ${gigabytes(t.memory.capacity)}${t.memory.fits ? "" : ": does not fit"}`)],
  ["Rent", () => "rented_cost", (t) => dollars(t.dollars)], ["Energy", () => null, (t) => (t.joules === null ? "not told by the system" : scaled(t.joules, "J"))]];

// The answers; a click on one of the configuration that is changed tells its formulas.
export function headRows(told) {
  const slots = Object.keys(told), kinds = [...new Set(slots.map((slot) => told[slot].kind.name))];
  const cells = (name, of) => slots.map((slot) => (name !== null && told[slot].kind.name !== name ? "" : told[slot].answer.reason ? "–" : of(told[slot].answer)));
  return [...kinds.flatMap((name) => HEAD[name].map(([label, output, of]) => ({ label, output, of: name, cells: cells(name, of) }))),
    ...MORE.map(([label, output, of]) => ({ label, output, of: null, cells: cells(null, of) }))];
}

export function drawHeadline(told, slot, open, toggle) {
  const slots = Object.keys(told), { kind, answer: now } = told[slot];
  const heads = slots.length > 1 ? slots.map((each) => each.toUpperCase()) : ["value"];
  const names = slots.map((each) => `${told[each].config.choices.model} on ${told[each].config.choices.system}`);
  const shown = headRows(told).map(({ label, output, of, cells }) => {
    const name = typeof output === "function" ? output(kind) : output;
    const has = !now.reason && name !== null && (of === null || of === kind.name) && kind.structures[now.inputs.structure].outputs.has(name);
    return { label, name, cells, has };
  });
  show(byId("headline"), table(names.join("; "), ["quantity", ...heads], shown.map(({ label, name, cells, has }) =>
    [has ? toggled(`head/${name}`, label, open, toggle) : label, ...cells])),
  shown.filter(({ has, name }) => has && open === `head/${name}`).map(({ label, name }) => answerDetail(kind, now, name, label)));
}

const toggled = (key, text, open, toggle) => el("button", { type: "button", class: "name", "aria-expanded": String(open === key), "data-key": key, onclick: () => toggle(key) }, text);

export function drawShares(told) {
  const parts = Object.entries(told.shares).filter(([, share]) => share > 0).sort(([, one], [, other]) => other - one)
    .map(([name, share]) => ({ name: words(name), value: share, text: percent(share), colour: colourOf(name) }));
  show(byId("shares"), stack("Shares of resources", parts, 1), legend(parts));
  noteBars("shares", "What the time is due to", parts);
}

export function drawMemory(kind, config, told, open, toggle) {
  const { parts, need, capacity, fits } = told.memory;
  const sorted = [...parts].sort((one, other) => other.bytes - one.bytes);
  const made = sorted.map(({ name, output, bytes }, k) => ({ name: words(name), output, value: bytes, text: gigabytes(bytes), colour: colourOfPart(k) }));
  const spare = { name: "free", value: capacity - need, text: gigabytes(capacity - need), colour: "transparent" };
  show(byId("memory"), stack("Memory by part", [...made, ...(fits ? [spare] : [])], Math.max(need, capacity)),
    el("p", { class: fits ? "" : "bad" }, fits
      ? `${gigabytes(need)} of ${gigabytes(capacity)}: ${gigabytes(capacity - need)} are free.`
      : `${gigabytes(need)} are needed and a device has ${gigabytes(capacity)}: ${gigabytes(need - capacity)} are missing. ${whereItFits(kind, config)}`),
    made.map(({ name, output, value, text, colour }) => el("div", {},
      el("div", { class: "bar" }, toggled(output, name, open, toggle),
        el("div", { class: "rail", "aria-hidden": "true" }, el("div", { class: "fill", style: { width: `${100 * value / made[0].value}%`, background: colour } })),
        el("span", { class: "told" }, `${text} · ${percent(value / need)}`)),
      open === output ? answerDetail(kind, told, output, name) : null)));
  noteBars("memory", "Memory of the fullest device", made);
}

// Which of the page's systems have room for a configuration that does not fit, in words.
function whereItFits(kind, config) {
  const systems = kind.choices.find(({ name }) => name === "system").values;
  const roomy = systems.filter((system) => {
    const found = answer(kind, { ...config, choices: { ...config.choices, system }, numbers: config.numbers }, { terms: false });
    return !found.reason && found.memory.fits;
  });
  if (roomy.length) return `With these choices it fits on ${roomy.slice(0, 6).join(", ")}${roomy.length > 6 ? ` and ${roomy.length - 6} more` : ""}.`;
  return `With these choices it fits on none of the ${systems.length === 1 ? "systems of the page, which is one" : `${systems.length} systems of the page`}: `
    + `${kind.name === "train" ? "more tensor or pipeline parallelism, ZeRO, recomputation or a smaller micro-batch need less" : "more tensor or pipeline parallelism, fewer sequences or a format of fewer bits need less"}.`;
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
        toggled(`term/${row.path}`, path(row.path), open, toggle),
        el("div", { class: "rail", "aria-hidden": "true" }, el("div", { class: "fill", style: { width: `${100 * row.seconds / most}%`, background: row.idle ? "#999999" : colourOf(row.bound) } })),
        el("span", { class: "told" }, `${seconds(row.seconds)} · ${percent(row.share)}`)),
      open === `term/${row.path}` ? operationDetail(kind, told, row) : null)),
    hidden > 0 ? el("p", {}, `${hidden} operations beside them are hidden behind longer ones, or take no time.`) : null);
  noteBars("operations", "Time by operation", rows.map((row) => ({ name: row.path, value: row.seconds, text: `${seconds(row.seconds)} · ${percent(row.share)}`, colour: row.idle ? "#999999" : colourOf(row.bound) })));
}

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
      el("p", { class: "unit" }, `${plain(data.time.length)} points in ${plain(data.took)} ms. Dark points do not fit in memory; grey ones cannot be.${data.few ? " This browser runs no workers, so the map has fewer points, and none of what binds." : ""}`));
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
