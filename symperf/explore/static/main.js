// The page: its state, its controls and its views joined.
import { buildControls } from "./controls.js";
import { byId, el, show } from "./dom.js";
import { answer, readKinds, startOf } from "./model.js";
import { readBook } from "./detail.js";
import { pictureOf, savePng } from "./pictures.js";
import { drawServing, drawStages, drawTimeline } from "./pipeline.js";
import { commandLine, pythonCode, State } from "./state.js";
import { csvOf, latexOf } from "./tables.js";
import { words } from "./units.js";
import { drawHeadline, drawLatency, drawMap, drawMemory, drawOperations, drawRoofline, drawShares, drawSweep, drawSymbols, headRows, metricsOf } from "./views.js";

const json = (id) => JSON.parse(byId(id).textContent);
const data = json("data"), kinds = readKinds(data), code = json("worker");
readBook(data, (text, what) => copy(text, what));
// Views that a refused configuration has not, and those of one kind of run alone.
const VIEWS = ["shares", "operations", "memory", "stages", "timeline", "roofline", "sweep", "latency", "serving", "phase", "symbols"];
const KINDS = { stages: "train", timeline: "train", latency: "infer", serving: "infer" };
let update = () => {}, built = "", open = null, swept = {}, waiting = 0, stages = null;

const say = (text) => { byId("said").textContent = text; };
const state = new State(kinds, () => draw());
state.say = say;
state.startLike = (name) => {
  const made = startOf(kinds[name]);
  for (const { name: choice, values } of kinds[name].choices) {
    if (values.includes(state.config.choices[choice])) made.choices[choice] = state.config.choices[choice];
  }
  return made;
};

function draw() {
  const began = performance.now();
  const mark = `${state.now.slot} ${state.config.kind} ${state.now.b !== null}`;
  if (built !== mark) { update = buildControls(byId("controls"), state); built = mark; sweepControls(); }
  update();
  const told = {};
  for (const slot of state.now.b === null ? ["a"] : ["a", "b"]) {
    const config = state.now[slot], kind = kinds[config.kind];
    told[slot] = { kind, config, answer: answer(kind, config) };
  }
  const { kind, answer: now } = told[state.now.slot];
  byId("undo").disabled = state.past.length === 0;
  byId("redo").disabled = state.future.length === 0;
  byId("compare").setAttribute("aria-pressed", String(state.now.b !== null));
  byId("refused").hidden = now.reason === "";
  byId("refused").textContent = now.reason;
  const toggle = (key) => {
    open = open === key ? null : key;
    drawAnswers(told);
    document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  };
  drawAnswers(told);
  function drawAnswers() {
    drawHeadline(told, state.now.slot, open, toggle);
    if (now.reason !== "") return;
    drawOperations(kind, now, open, toggle);
    drawMemory(kind, state.config, now, open, toggle);
  }
  for (const id of VIEWS) byId(id).parentElement.hidden = now.reason !== "" || (KINDS[id] ?? kind.name) !== kind.name;
  stages = null;
  if (now.reason === "") {
    drawShares(now);
    drawSymbols(kind, now);
    stages = kind.name === "train" ? drawStages(kind, now) : null;
  }
  const address = `#${state.address()}`;
  if (location.hash !== address) history.replaceState(null, "", address);
  document.documentElement.dataset.drawn = String(performance.now() - began);
  cancelAnimationFrame(waiting);
  if (now.reason === "") waiting = requestAnimationFrame(() => drawCharts(kind, now));
}

// What is drawn on a canvas: once for each frame, however often a slider moves in it.
function drawCharts(kind, told) {
  const began = performance.now();
  drawRoofline(told);
  drawSweep(kind, state.config, numberOf("x"), swept.metric.value);
  if (kind.name === "infer") { drawLatency(kind, state.config); drawServing(kind, state.config, told); }
  else drawTimeline(kind, state.config, told, stages);
  document.documentElement.dataset.charted = String(performance.now() - began);
}

const numberOf = (axis) => state.kind.numbers.find(({ name }) => name === swept[axis].value) ?? state.kind.numbers[0];

function sweepControls() {
  const { kind } = state, own = kind.numbers.filter(({ name }) => kind.number.has(name) || name === "micro_batch");
  const list = (id, label, names, value, changed) => {
    const made = el("select", { id, onchange: changed }, names.map(([name, text]) => el("option", { value: name }, text)));
    if (names.some(([name]) => name === value)) made.value = value;
    return [el("label", { for: id }, label), made];
  };
  const all = own.map(({ name }) => [name, words(name)]);
  const free = own.filter(({ degrees }) => degrees.length === 0).map(({ name }) => [name, words(name)]);
  const again = () => { state.now.axes.x = swept.x.value; state.now.axes.y = swept.y.value; draw(); };
  const x = list("sweep-x", "Symbol", all, state.now.axes.x || "memory_bandwidth", again);
  const of = list("sweep-of", "Answer", metricsOf(kind).map(([name, label]) => [name, label]), "time", again);
  show(byId("sweep-controls"), x, of);
  const mapX = list("map-x", "Across", free, state.now.axes.x || "memory_bandwidth", () => {});
  const mapY = list("map-y", "Upwards", free, state.now.axes.y || "matrix_rate", again);
  const go = el("button", { type: "button", id: "map-go", onclick: () => {
    const [one, other] = [mapX[1].value, mapY[1].value].map((name) => kind.numbers.find((number) => number.name === name));
    if (one === other) { say("map: the same symbol twice, expected two"); return; }
    drawMap(kind, state.config, one, other, code);
  } }, "Draw the map");
  show(byId("phase-controls"), mapX, mapY, go);
  show(byId("phase"));
  swept = { x: x[1], y: mapY[1], metric: of[1] };
}

async function copy(text, what) {
  try { await navigator.clipboard.writeText(text); say(`${what} copied`); } catch {
    const area = el("textarea", { readonly: true, "aria-label": what, rows: 6, cols: 60, value: text });
    show(byId("said"), `${what}, to be copied from here: `, area);
    area.select();
  }
}

const on = (id, act) => byId(id).addEventListener("click", act);
on("undo", () => state.back());
on("redo", () => state.forth());
on("reset", () => state.set((now) => { now.a = startOf(Object.values(kinds)[0]); now.b = null; now.slot = "a"; }));
on("compare", () => state.set((now) => {
  if (now.b === null) { now.b = structuredClone(now.a); now.slot = "b"; } else { now.a = now[now.slot]; now.b = null; now.slot = "a"; }
}));
on("copy-link", () => copy(location.href, "Link"));
on("copy-command", () => copy(commandLine(state.kind, state.config), "Command line"));
on("copy-python", () => copy(pythonCode(state.kind, state.config), "Python"));
on("copy-latex", () => {
  const told = answer(state.kind, state.config), { slot } = state.now;
  if (told.reason) { say(told.reason); return; }
  copy(latexOf(headRows({ [slot]: { kind: state.kind, config: state.config, answer: told } }), told, `${state.config.choices.model} on ${state.config.choices.system}`), "LaTeX");
});
on("copy-csv", () => {
  const told = answer(state.kind, state.config);
  if (told.reason) say(told.reason); else copy(csvOf(told), "CSV");
});
for (const id of VIEWS.filter((each) => each !== "symbols")) {
  const heading = byId(id).parentElement.querySelector("h2"), title = heading.textContent;
  heading.after(el("button", { type: "button", class: "png", "aria-label": `Save ${title} as PNG`, onclick: async () => {
    const { choices } = state.config, picture = pictureOf(id, title, `${choices.model} on ${choices.system}, symperf ${data.version}`);
    if (picture === null) { say(`${title}: there is no picture yet`); return; }
    try { await savePng(picture, `symperf-${id}.png`); say(`${title} saved as PNG`); } catch (error) { say(`${title}: ${error.message}`); }
  } }, "PNG"));
}
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.target instanceof HTMLInputElement) return;
  if (event.key === "z" && !event.shiftKey) { event.preventDefault(); state.back(); }
  if (event.key === "y" || (event.key === "z" && event.shiftKey)) { event.preventDefault(); state.forth(); }
});
addEventListener("hashchange", () => { state.read(location.hash.slice(1)); built = ""; draw(); });
let wide = innerWidth;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; draw(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
// For the browser's console: symperf.ask("a=train&a.tp=4") answers an address with exact numbers, or says why not.
globalThis.symperf = Object.freeze({ ask(address) {
  const asked = new State(kinds, () => {});
  asked.read(String(address));
  const told = answer(asked.kind, asked.config);
  if (told.reason) return { reason: told.reason };
  const { memory, joules, dollars, shares, rows } = told;
  return {
    reason: "", time: told.value("time"), memory: memory.need, fits: memory.fits, joules, dollars, shares,
    operations: rows.map(({ path, seconds, bound, flops, bytes }) => ({ path, seconds, bound, flops, bytes })),
    command: commandLine(asked.kind, asked.config),
  };
} });
state.read(location.hash.slice(1));
draw();
