// The state of a page: one or two configurations, its history, and its address.
import { applies, startOf, unmovedValue } from "./model.js";

const LONGEST = 200;
const SLOTS = ["a", "b"];

export class State {
  constructor(kinds, changed) {
    this.kinds = kinds;
    this.changed = changed;
    this.past = [];
    this.future = [];
    const first = startOf(Object.values(kinds)[0]);
    this.now = { a: first, b: null, slot: "a", axes: { x: "", y: "" } };
  }

  get config() { return this.now[this.now.slot]; }
  get kind() { return this.kinds[this.config.kind]; }

  // Another state, which can be undone; changes of one control that follow each other at once are one change.
  set(change, merge = "") {
    if (!(merge !== "" && merge === this.merge && performance.now() - this.at < 800)) {
      this.past.push(structuredClone(this.now));
      if (this.past.length > LONGEST) this.past.shift();
    }
    this.future = [];
    this.merge = merge;
    this.at = performance.now();
    change(this.now);
    this.changed();
  }

  choose(name, value) { this.set((now) => { now[now.slot].choices[name] = value; }); }

  move(name, value) {
    this.set((now) => {
      const { numbers } = now[now.slot], each = this.kind.numbers.find((number) => number.name === name);
      if (value === unmovedValue(this.kind, this.config, each)) delete numbers[name]; else numbers[name] = value;
    }, name);
  }

  back() { this.step(this.past, this.future); }
  forth() { this.step(this.future, this.past); }

  step(from, to) {
    if (from.length === 0) return;
    to.push(structuredClone(this.now));
    this.now = from.pop();
    this.merge = "";
    this.changed();
  }

  // The address: what differs from the start.
  address() {
    const pairs = new URLSearchParams();
    for (const slot of SLOTS) {
      const config = this.now[slot];
      if (config === null) continue;
      const kind = this.kinds[config.kind];
      pairs.set(slot, config.kind);
      for (const { name, start, values } of kind.choices) {
        if (config.choices[name] !== start) pairs.set(`${slot}.${name}`, values.indexOf(config.choices[name]));
      }
      for (const [name, value] of Object.entries(config.numbers)) pairs.set(`${slot}.${name}`, value);
    }
    if (this.now.slot === "b") pairs.set("slot", "b");
    for (const axis of ["x", "y"]) if (this.now.axes[axis]) pairs.set(axis, this.now.axes[axis]);
    return pairs.toString();
  }

  // Take over an address: all of it where it names a configuration; what it says that cannot be is at its start.
  read(text) {
    const pairs = new URLSearchParams(text), named = (slot) => Object.hasOwn(this.kinds, pairs.get(slot) ?? "");
    if (named("a")) this.now.b = null;
    for (const slot of SLOTS.filter(named)) {
      const name = pairs.get(slot);
      const kind = this.kinds[name], config = startOf(kind);
      for (const choice of kind.choices) {
        const at = pairs.get(`${slot}.${choice.name}`);
        if (at !== null && /^\d{1,3}$/.test(at) && Number(at) < choice.values.length) config.choices[choice.name] = choice.values[Number(at)];
      }
      for (const number of kind.numbers) {
        const value = legal(number, pairs.get(`${slot}.${number.name}`));
        if (value !== null && value !== unmovedValue(kind, config, number)) config.numbers[number.name] = value;
      }
      this.now[slot] = config;
    }
    this.now.slot = pairs.get("slot") === "b" && this.now.b !== null ? "b" : "a";
    for (const axis of ["x", "y"]) this.now.axes[axis] = pairs.get(axis) ?? "";
  }
}

// The number that a text gives a control, or null.
export function legal(number, text) {
  if (text === null || String(text).trim() === "") return null;
  const value = Number(text);
  if (!Number.isFinite(value) || value < number.low || value > number.high) return null;
  return number.whole && !Number.isInteger(value) ? null : value;
}

export function valueOf(kind, config, name) {
  return config.numbers[name] ?? unmovedValue(kind, config, kind.numbers.find((number) => number.name === name));
}

const shell = (text) => (/^[\w.\/=+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const flag = (name) => `--${name.replaceAll("_", "-")}`;

function partsOf(kind, config) {
  const fields = { ...kind.flags.plan }, values = {}, work = {};
  for (const { name } of kind.choices) if (name !== "model" && name !== "system") fields[name] = config.choices[name];
  for (const { name, group, start } of kind.numbers.filter((number) => applies(kind, config, number))) {
    const value = config.numbers[name] ?? start;
    if (group === "work") work[name] = value;
    else if (group === "plan") fields[name] = value;
    else if (Object.hasOwn(config.numbers, name)) values[name] = value;
  }
  for (const name of Object.keys(fields)) if (fields[name] === null) delete fields[name];
  return { fields, values, work, options: kind.flags.options ?? {} };
}

export function commandLine(kind, config) {
  const { fields, values, work, options } = partsOf(kind, config);
  const parts = ["symperf", kind.name, shell(config.choices.model), "-s", shell(config.choices.system)];
  for (const [name, value] of Object.entries({ ...work, ...fields, ...options })) {
    if (value === true) parts.push(flag(name));
    else if (value === false) parts.push(`--no-${flag(name).slice(2)}`);
    else parts.push(flag(name), shell(String(value)));
  }
  for (const [name, value] of Object.entries(values)) parts.push("--set", `${name}=${value}`);
  return parts.join(" ");
}

export function pythonCode(kind, config) {
  const { fields, values, work, options } = partsOf(kind, config);
  const text = (value) => (value === true ? "True" : value === false ? "False" : JSON.stringify(value));
  const named = (pairs) => Object.entries(pairs).map(([name, value]) => `${name}=${text(value)}`).join(", ");
  const bound = Object.keys(values).length ? `.bind(${named(values)})` : "";
  return ["import symperf as sf", "",
    `run = sf.${kind.name === "train" ? "training" : "inference"}(`,
    `    sf.Model.load(${text(config.choices.model)}),`, `    sf.System.load(${text(config.choices.system)}),`,
    `    sf.Plan(${named(fields)}),`, `    ${named({ ...work, ...options })},`, `)${bound}`, "print(run.value(\"time\"))", ""].join("\n");
}
