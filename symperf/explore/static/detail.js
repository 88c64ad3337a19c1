// What stands behind a number: its equation, the formulas that it calls, the branch in force, and its symbols.
import { el, math, table } from "./dom.js";
import { partOf } from "./model.js";
import { CODES, slopes, UNARY_CODES } from "./tape.js";
import { plain, scaled, words } from "./units.js";

let formulas = {}, equations = [], book = "", copy = () => {};
export function readBook(data, copied) { ({ formulas, equations, book = "" } = data); copy = copied; }

const copied = (latex, title) => (latex ? el("button", { type: "button", onclick: () => copy(latex, `LaTeX of ${title}`) }, "Copy LaTeX") : null);

function equation({ math: trees, lines }, title) {
  if (trees) return el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": `Equation of ${title}` }, trees.map(math));
  return lines ? el("pre", { tabindex: 0 }, lines.join("\n")) : null;
}

// A formula: its title, its equation, what stands for its parameters here, its page of the book and its source.
function formula(name, given) {
  const told = formulas[name];
  const page = `${told.number} in the chapter ${told.chapter} of the book`;
  return el("div", { class: "formula" }, el("h3", {}, told.title, " ", el("code", {}, name)), el("p", {}, told.sentence),
    equation(told, told.title), given ? el("p", {}, "Here ", el("code", {}, given)) : null,
    el("p", { class: "unit" }, "Formula ", book ? el("a", { href: book + told.page, rel: "noopener noreferrer" }, page) : `${page}: symperf formulas ${name}`, ". ", told.source),
    copied(told.latex, told.title));
}

export function formulasOf(calls) {
  return [...new Map(calls).keys()].map((name) => formula(name, calls.filter(([each]) => each === name).map(([, given]) => given).find(Boolean)));
}

// The equation of an answer and the formulas that it calls; nothing where none is told.
export function answerForm(kind, told, name, title) {
  const found = kind.structures[told.inputs.structure].answers.get(name);
  if (found === undefined) return [];
  const [at, calls] = found, shown = equations[at];
  return [shown.latex ? el("h3", {}, title) : null, equation(shown, title), copied(shown.latex, title), ...formulasOf(kind.calls[calls])];
}

const LONGEST = 120;
const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);

// The symbols that a value reads, with how strongly it follows each: at zero another branch of a maximum is in force.
export function behind(kind, told, position, title) {
  const own = partOf(kind, told.inputs.structure), { tape } = own, at = tape.place[position], { values } = told;
  const slope = Float64Array.from(slopes(tape, values, at, undefined, own.room)), needed = new Uint8Array(at + 1);
  needed[at] = 1;
  let branches = 0, nearest = 0;
  for (let k = at; k >= 0; k -= 1) {
    if (!needed[k] || tape.code[k] <= CODES.constant) continue;
    needed[tape.first[k]] = 1;
    if (!UNARY_CODES.has(tape.code[k])) needed[tape.second[k]] = 1;
    if ((tape.code[k] === CODES.max || tape.code[k] === CODES.min) && slope[k] !== 0) {
      const [a, b] = [values[tape.first[k]], values[tape.second[k]]];
      if (a > 0 && b > 0 && a !== b) { branches += 1; nearest = Math.max(nearest, Math.min(a, b) / Math.max(a, b)); }
    }
  }
  const rows = [];
  for (const [place, k] of own.byInput) {
    const symbol = kind.symbols[place];
    if (k > at || !needed[k] || !symbol.sentence) continue;
    rows.push({ symbol, place, follows: values[at] === 0 ? 0 : slope[k] * values[k] / values[at] });
  }
  rows.sort((one, other) => Math.abs(other.follows) - Math.abs(one.follows) || (one.symbol.name < other.symbol.name ? -1 : 1));
  const idle = rows.filter(({ follows }) => Math.abs(follows) < 5e-5), live = rows.filter(({ follows }) => Math.abs(follows) >= 5e-5);
  const source = ({ symbol, place }) => (told.inputs.moved.has(symbol.name) ? "moved here" : kind.texts[told.inputs.sources[place]]);
  const line = (row) => [row.symbol.name, scaled(told.inputs.values[row.place], row.symbol.unit), row.follows.toFixed(3), row.symbol.sentence, short(source(row))];
  return el("div", {},
    el("h3", {}, `What ${title} follows now`), el("p", {}, "Branch in force: ", live.length === 0 ? "a number that no symbol moves" : `it follows ${live.slice(0, 4).map(({ symbol }) => words(symbol.name)).join(", ")}`,
      idle.length ? `; of ${idle.length} other symbols it reads, none moves it now. ` : ". ",
      branches ? `${branches} maxima and minima decide it; the nearest other branch is at ${Number((100 * nearest).toPrecision(5))} % of the one in force.` : "No maximum decides it.", " An elasticity of 1 means in proportion, -1 inversely. Sources are in full under Symbols."),
    live.length ? el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": `Symbols of ${title}` },
      table("Symbols that move it", ["symbol", "value", "elasticity", "meaning", "source"], live.map(line))) : null,
    idle.length ? el("details", {}, el("summary", {}, `${idle.length} symbols on branches that are not in force, or that change it in steps`),
      el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": `Other symbols of ${title}` }, table("They do not move it now", ["symbol", "value", "elasticity", "meaning", "source"], idle.map(line)))) : null);
}

// What is told of one operation: its demand, its bound, its formulas, and the symbols that its time reads.
export function operationDetail(kind, told, row) {
  const rows = [["bound", row.idle ? "waits for others" : words(row.bound ?? "nothing")], ["executions", plain(row.count, 6)],
    ["one of them", scaled(row.each, "s")], ["FLOPs of one", scaled(row.flops, "FLOP")], ["bytes of memory of one", scaled(row.bytes, "B")],
    ["bytes of messages of one", scaled(row.message, "B")]];
  return el("div", { class: "detail" }, table(row.path, ["what", "value"], row.idle ? rows.slice(0, 3) : rows),
    row.calls.length || row.idle ? null : el("p", {}, "No formula: a figure of the software."), formulasOf(row.calls),
    behind(kind, told, row.at, row.path));
}

// What is told of an answer.
export function answerDetail(kind, told, name, title) {
  const position = kind.structures[told.inputs.structure].outputs.get(name);
  const more = name === "time" || name === "prefill" || name === "time_per_token"
    ? el("p", {}, "It is the sum of what the operations below are responsible for; these formulas join them.") : null;
  return el("div", { class: "detail" }, more, answerForm(kind, told, name, title), position === undefined ? null : behind(kind, told, position, title));
}
