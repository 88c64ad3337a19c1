// The controls of a configuration, made once for its kind and brought up to date in place.
import { el, show } from "./dom.js";
import { applies, refusalOf } from "./model.js";
import { legal, valueOf } from "./state.js";
import { plain, words } from "./units.js";

const STEPS = 1000;

export function buildControls(where, state) {
  const { kind } = state, updates = [];
  const degrees = kind.numbers.filter((number) => number.degrees.length > 0);
  const rest = kind.numbers.filter((number) => number.degrees.length === 0);
  const group = (title, parts) => el("fieldset", {}, el("legend", {}, title), parts);
  const kinds = Object.keys(state.kinds);
  const kindControl = kinds.length < 2 ? null : select("kind of run", "train a step, or infer", kinds.map((name) => [name, name]), (at) => {
    state.set((now) => { now[now.slot] = state.startLike(kinds[at]); });
  }, (update) => updates.push(() => update(kinds.indexOf(state.config.kind), kinds.map(() => ""))));
  const tabs = state.now.b === null ? null : el("div", { class: "row", role: "group", "aria-label": "Configuration to change" },
    ["a", "b"].map((slot) => el("button", { type: "button", "aria-pressed": String(state.now.slot === slot),
      onclick: () => state.set((now) => { now.slot = slot; }) }, slot.toUpperCase())));
  const chosen = kind.choices.map((choice) => select(choice.name, choice.sentence,
    choice.values.map((value) => [String(value), value === null ? "default" : value === true ? "yes" : value === false ? "no" : String(value)]),
    (at) => state.choose(choice.name, choice.values[at]),
    (update) => updates.push(() => update(choice.values.indexOf(state.config.choices[choice.name]), choice.values.map((value) =>
      refusalOf(kind, { ...state.config, choices: { ...state.config.choices, [choice.name]: value } }))))));
  const counted = degrees.map((number) => select(number.name, "", number.degrees.map((value) => [String(value), String(value)]),
    (at) => state.move(number.name, number.degrees[at]),
    (update) => updates.push(() => update(number.degrees.indexOf(valueOf(kind, state.config, number.name)), number.degrees.map((value) =>
      refusalOf(kind, { ...state.config, numbers: { ...state.config.numbers, [number.name]: value } }))))));
  const slid = (name) => rest.filter((number) => number.group === name).map((number) => slider(state, number, updates));
  show(where, tabs, kindControl === null ? null : group("Question", [kindControl]), group("Work", slid("work")),
    group("Choices", [...chosen, ...counted, ...slid("plan")]),
    el("details", { open: innerWidth > 900 }, el("summary", {}, "Hardware and efficiencies"), group("", slid("system"))));
  const update = () => updates.forEach((each) => each());
  update();
  return update;
}

// A list of values, of which those that cannot be are disabled, with the reasons below it.
function select(name, sentence, options, chosen, hand) {
  const id = `c-${name.replaceAll(" ", "-")}`, list = el("select", { id, title: sentence, onchange: () => chosen(list.selectedIndex) },
    options.map(([value, text]) => el("option", { value }, text)));
  const reasons = el("ul", {}), told = el("details", { class: "why" }, el("summary", {}, ""), reasons);
  hand((at, refusals) => {
    list.selectedIndex = at;
    const refused = options.flatMap(([, text], k) => (refusals[k] ? [`${text}: ${refusals[k]}`] : []));
    options.forEach((_, k) => { list.options[k].disabled = refusals[k] !== "" && k !== at; list.options[k].title = refusals[k]; });
    told.hidden = refused.length === 0;
    told.firstChild.textContent = `${refused.length} of ${options.length} not possible`;
    if (told.dataset.shown !== refused.join("\n")) {
      told.dataset.shown = refused.join("\n");
      show(reasons, refused.map((text) => el("li", {}, text)));
    }
  });
  return el("div", { class: "control" }, el("label", { for: id, title: sentence }, words(name)), list, told);
}

// A number by a slider, on a logarithmic scale where it spans much, and by its text.
function slider(state, number, updates) {
  const { name, low, high, whole } = number, { kind } = state, id = `c-${name}`, log = low > 0 && high / low > 20;
  const symbol = kind.symbols[kind.number.get(name)] ?? {};
  const top = number.group === "work" ? Math.min(high, Math.max(1024, number.start * 64)) : high;
  const at = (value) => Math.round(STEPS * (log ? Math.log(value / low) / Math.log(top / low) : (value - low) / (top - low)));
  const of = (place) => {
    const value = log ? low * (top / low) ** (place / STEPS) : low + (top - low) * (place / STEPS);
    return whole ? Math.round(value) : Number(value.toPrecision(6));
  };
  const unit = symbol.unit && symbol.unit !== "1" ? symbol.unit : "";
  const text = el("input", { type: "text", id, inputmode: "decimal", onchange: () => {
    const value = legal(number, text.value);
    if (value === null) {
      text.setAttribute("aria-invalid", "true");
      state.say(`${words(name)}: found ${JSON.stringify(text.value.slice(0, 40))}, expected ${whole ? "a whole number" : "a number"} from ${plain(low)} to ${plain(high)}`);
      return;
    }
    state.move(name, value);
  } });
  const range = el("input", { type: "range", min: 0, max: STEPS, "aria-label": `${words(name)}, slider`,
    oninput: () => state.move(name, Math.min(Math.max(of(Number(range.value)), low), high)),
    onkeydown: (event) => {
      // A step of the slider may be less than 1: by keys a whole number moves by one.
      const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!whole || way === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      state.move(name, Math.min(Math.max(valueOf(kind, state.config, name) + way, low), high));
    } });
  const label = el("label", { for: id, title: symbol.sentence ?? "" }, words(name), unit ? el("span", { class: "unit" }, ` ${unit}`) : null);
  const control = el("div", { class: "control" }, label, text, range);
  updates.push(() => {
    control.hidden = !applies(kind, state.config, number);
    if (control.hidden) return;
    const own = Object.hasOwn(state.config.numbers, name);
    const value = valueOf(kind, state.config, name);
    label.classList.toggle("moved", own);
    text.removeAttribute("aria-invalid");
    if (document.activeElement !== text || own) text.value = plain(value, 6);
    if (Number(range.value) !== at(value)) range.value = at(value);
    range.setAttribute("aria-valuetext", `${plain(value, 4)} ${unit}`.trim());
  });
  return control;
}
