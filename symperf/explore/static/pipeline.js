// Views of a pipeline: memory by stage, and the timeline of a step; and of serving, its points.
import { curve, legend, stack } from "./charts.js";
import { byId, el, show, table } from "./dom.js";
import { noteBars } from "./pictures.js";
import { stagesOf, timelineOf } from "./stages.js";
import { valueOf } from "./state.js";
import { colourOfPart, gigabytes, percent, plain, scaled, seconds, words } from "./units.js";

const MOST_STAGES = 64;
const KINDS = { F: ["forward", "#56b4e9"], D: ["backward", "#e69f00"], B: ["gradients of inputs", "#e69f00"], W: ["gradients of weights", "#009e73"] };
const CLOSING = "#cc79a7";

// Bytes of the device of each stage, by part. Gives back the stages, or null.
export function drawStages(kind, told) {
  const rows = stagesOf(kind, told), where = byId("stages");
  if (rows === null) { show(where, el("p", {}, "No stages are told apart.")); return null; }
  const { capacity } = told.memory, most = Math.max(capacity, ...rows.map((row) => row["stage/reserved"]));
  const names = Object.keys(rows[0]).filter((name) => /^stage\/(activations|.*\/)/.test(name));
  const partsOf = (row) => [...names.map((name) => [name.slice(6), row[name]]), ["held beside tensors", row["stage/reserved"] - row["stage/total"]]];
  const sizes = new Map();
  for (const row of rows) for (const [name, bytes] of partsOf(row)) sizes.set(name, Math.max(sizes.get(name) ?? 0, bytes));
  const order = [...sizes.keys()].filter((name) => sizes.get(name) > 0).sort((one, other) => sizes.get(other) - sizes.get(one));
  const colour = new Map(order.map((name, k) => [name, colourOfPart(k)]));
  const shown = rows.slice(0, MOST_STAGES);
  show(where, legend(order.map((name) => ({ name: words(name), value: 1, text: "", colour: colour.get(name) }))),
    shown.map((row, k) => {
      const parts = new Map(partsOf(row)), need = row["stage/reserved"], fits = need <= capacity;
      const made = order.map((name) => ({ name: words(name), value: parts.get(name), text: gigabytes(parts.get(name)), colour: colour.get(name) }));
      return el("div", { class: "bar stage" }, el("span", { class: "name plain" }, `stage ${k + 1}: ${plain(row["stage/layers"])} layers, ${plain(row["stage/in_flight"])} micro-batches`),
        stack(`Stage ${k + 1}`, [...made, { name: "free", value: most - need, text: gigabytes(Math.max(0, capacity - need)), colour: "transparent" }], most),
        el("span", { class: fits ? "told" : "told bad" }, `${gigabytes(need)}${fits ? "" : ": too much"}`));
    }),
    el("p", { class: "unit" }, `A full bar is ${gigabytes(most)}; a device has ${gigabytes(capacity)}.${rows.length > shown.length ? ` Of ${rows.length} stages the first ${shown.length} are shown.` : ""}`));
  noteBars("stages", "Memory by stage", rows.map((row, k) => ({ name: `stage ${k + 1}`, value: row["stage/reserved"], text: gigabytes(row["stage/reserved"]), colour: colourOfPart(0) })));
  return rows;
}

// The step on the devices of a pipeline.
export function drawTimeline(kind, config, told, rows) {
  const where = byId("timeline");
  if (rows === null) { show(where); return; }
  const line = timelineOf(kind, config, told, rows);
  if (line.reason) { show(where, el("p", {}, line.reason)); return; }
  const { devices } = line, kinds = [...new Set(devices.flat().map(({ kind: name }) => name))];
  const height = devices.length <= 8 ? 30 : devices.length <= 24 ? 18 : 8;
  const canvas = el("canvas", { class: "line", role: "img", "aria-label": `Timeline of a step of ${seconds(line.total)} on ${devices.length} stages with ${line.count} micro-batches` });
  const idle = devices.map((items) => 1 - (items.reduce((sum, { seconds: time }) => sum + time, 0) + line.closing) / line.total);
  show(where, legend([...kinds.map((name) => ({ name: KINDS[name][0], value: 1, text: "", colour: KINDS[name][1] })),
    { name: "update of the weights", value: line.closing > 0 ? 1 : 0, text: "", colour: CLOSING }]), canvas,
    el("p", { class: "unit" }, `${line.count} micro-batches on ${devices.length} stages${line.chunks > 1 ? ` of ${line.chunks} chunks` : ""}, ${line.name}; across: 0 to ${seconds(line.total)}. What is bare is waiting.`
      + (line.before > 0 || line.behind > 0 ? ` Gathers and reductions that nothing hides: ${seconds(line.before)} before the first pass, ${seconds(line.behind)} behind the last.` : "")
      + (line.waited > 1e-9 * line.total ? ` The closed form is a bound: stages wait ${seconds(line.waited)} for it.` : "")
      + (line.scale < 1 ? ` Passes are drawn ${percent(line.scale)} as long, so that they end with the closed form.` : "")),
    el("details", {}, el("summary", {}, "The same as a table"), el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Stages" }, table("Stages", ["stage", "first pass", "last pass ends", "idle"],
      devices.map((items, k) => [String(k + 1), seconds(items[0].start), seconds(line.ends[k]), percent(idle[k])])))));
  const width = Math.max(280, where.clientWidth), ratio = devicePixelRatio, left = 64, across = width - left - 8;
  canvas.width = width * ratio;
  canvas.height = (height * devices.length + 26) * ratio;
  canvas.style.height = `${height * devices.length + 26}px`;
  const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), at = (time) => left + across * time / line.total;
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  devices.forEach((items, k) => {
    const top = k * height, box = (from, time, colour) => { context.fillStyle = colour; context.fillRect(at(from), top + 1, Math.max(0.5, across * time / line.total - (across * time / line.total > 3 ? 1 : 0)), height - 2); };
    context.fillStyle = style.getPropertyValue("--card");
    context.fillRect(left, top + 1, across, height - 2);
    for (const item of items) {
      box(item.start, item.seconds, KINDS[item.kind][1]);
      if (height >= 18 && across * item.seconds / line.total > 8 * String(item.batch + 1).length + 4) {
        context.fillStyle = "#000000";
        context.textAlign = "center";
        context.fillText(String(item.batch + 1), at(item.start + item.seconds / 2), top + height / 2);
      }
    }
    if (line.closing > 0) box(line.starts[k] + line.pipeline, line.closing, CLOSING);
    if (height >= 18 || k % 4 === 0) {
      context.fillStyle = style.getPropertyValue("--ink");
      context.textAlign = "left";
      context.fillText(`stage ${k + 1}`, 2, top + height / 2);
    }
  });
  context.fillStyle = style.getPropertyValue("--ink");
  const marks = width < 500 ? 2 : 5;
  for (let k = 0; k <= marks; k += 1) {
    context.textAlign = k === 0 ? "left" : k === marks ? "right" : "center";
    context.fillText(scaled(line.total * k / marks, "s"), at(line.total * k / marks), height * devices.length + 14);
  }
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), time = (event.clientX - box.left - left) / across * line.total, k = Math.floor((event.clientY - box.top) / height);
    const item = devices[k]?.find(({ start, seconds: lasts }) => time >= start && time <= start + lasts);
    canvas.title = item ? `stage ${k + 1}, ${KINDS[item.kind][0]} of micro-batch ${item.batch + 1}${line.chunks > 1 ? `, chunk ${Math.floor(item.stage / devices.length) + 1}` : ""}: ${seconds(item.seconds)} from ${seconds(item.start)}` : "";
  });
}

// What the layout serves, at the lengths and the figures with which the page was made.
export function drawServing(kind, config, told) {
  const where = byId("serving"), { served } = told.inputs;
  show(where);
  if (!served) { show(where, el("p", {}, "No points of serving are in this page.")); return; }
  const [prompt, generate] = ["prompt", "generate"].map((name) => kind.numbers.find((number) => number.name === name).start);
  if (served.reason) { show(where, el("p", {}, `Requests of ${prompt} + ${generate} tokens: ${served.reason}`)); return; }
  const replicas = valueOf(kind, config, "dp"), points = [...served.points].sort(([, , one], [, , other]) => one - other);
  if (new Set(points.map(([, , tpot]) => tpot)).size > 1) {
    curve(where, { xs: points.map(([, , tpot]) => tpot), ys: points.map((point) => point[3]), x: { label: "time per token (TPOT)", unit: "s" }, y: { label: "tokens/s per device", unit: "1" }, bands: [], now: NaN, logX: false });
  }
  const moved = kind.numbers.filter(({ name, group }) => group !== "plan" && name !== "batch" && Object.hasOwn(config.numbers, name)).map(({ name }) => words(name));
  where.append(el("p", { class: moved.length ? "bad" : "unit" }, `Requests of ${prompt} + ${generate} tokens that arrive at random, ${plain(replicas)} replica${replicas === 1 ? "" : "s"}, figures as in the data sheet: these points were computed when the page was made. `
    + `${moved.length ? `They do not follow what was moved: ${moved.join(", ")}. ` : ""}symperf serve answers for others.`),
    el("p", {}, `At most ${plain(served.capacity * replicas)} requests a second; the limit is ${{ kv_cache: "the cache", chunk: "the prompt tokens of an iteration", max_num_seqs: "the sequences that the software runs" }[served.limit] ?? words(served.limit)}.`),
    el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Points of serving" }, table("TTFT: time to the first token. TPOT: time of each later one.",
      ["requests/s", "TTFT", "TPOT", "tokens/s per device", "in flight"],
      served.points.map(([load, ttft, tpot, rate, flying]) => [plain(load * replicas), seconds(ttft), tpot === null ? "–" : seconds(tpot), plain(rate, 4), flying === null ? "–" : plain(flying * replicas)]))));
}
