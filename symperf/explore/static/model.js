// What a page knows, and the answers that it gives: numbers from a configuration.
import { forward, part, slopes, unpack } from "./tape.js";

// The kinds of runs of a page, unpacked. A configuration is {kind, choices: {name: value}, numbers: {name: value}}.
export function readKinds(data) {
  return Object.fromEntries(data.kinds.map((kind) => [kind.name, readKind(kind, data.texts)]));
}

function readKind(kind, texts) {
  const tape = unpack(kind.pool);
  const calls = kind.calls.map((list) => list.flatMap((place, k) => (k % 2 === 0 ? [[texts[place], texts[list[k + 1]]]] : [])));
  const number = new Map(kind.symbols.map((symbol, place) => [symbol.name, place]));
  const structures = kind.structures.map(({ outputs, terms, stages, answers }) => {
    const found = { outputs: new Map(), terms: [], stages: new Map(), answers: new Map() };
    for (let k = 0; k < stages.length; k += 2) found.stages.set(texts[stages[k]], stages[k + 1]);
    for (let k = 0; k < answers.length; k += 3) found.answers.set(texts[answers[k]], [answers[k + 1], answers[k + 2]]);
    for (let k = 0; k < outputs.length; k += 2) found.outputs.set(texts[outputs[k]], outputs[k + 1]);
    for (let k = 0; k < terms.length; k += 4) {
      found.terms.push({ path: texts[terms[k]], at: terms[k + 1], idle: terms[k + 2] === 1, summed: terms[k + 2] === 2, calls: calls[terms[k + 3]] });
    }
    return found;
  });
  const rules = part(tape, [...kind.rules.map(([position]) => position), ...Object.values(kind.derived)]);
  const resources = kind.symbols.flatMap(({ name, resource }, place) =>
    (resource ? [{ place, resource, sign: name.includes("_latency") ? 1 : -1 }] : []));
  return { ...kind, calls, tape, number, structures, ruleTape: rules, resources, texts, parts: new Map(), bases: new Map(), stageTapes: new Map() };
}

// The configuration that a page begins with.
export function startOf(kind) {
  return {
    kind: kind.name,
    choices: Object.fromEntries(kind.choices.map(({ name, start }) => [name, start])),
    numbers: {},
  };
}

function placeOf(kind, choices) {
  return kind.choices.reduce((place, { name, values }) => place * values.length + values.indexOf(choices[name]), 0);
}

// The case of a model and a system that others are told by their differences from.
function baseOf(kind, place) {
  const span = kind.choices.slice(2).reduce((count, { values }) => count * values.length, 1);
  const begin = Math.floor(place / span) * span;
  if (!kind.bases.has(begin)) {
    kind.bases.set(begin, kind.cases.slice(begin, begin + span).find(({ structure }) => structure >= 0));
  }
  return kind.bases.get(begin);
}

// The places of a configuration's model, system and format.
const formOf = (kind, config) => ["model", "system", "precision"].flatMap((name) =>
  kind.choices.filter((choice) => choice.name === name).map(({ values }) => values.indexOf(config.choices[name]))).join("/");

// Whether a number means something in a configuration: a figure of a system only where the system has it.
export const applies = (kind, config, number) => number.group !== "system" || Object.hasOwn(number.follows, formOf(kind, config));

// Values and sources of all inputs; `reason` says why the choices do not go together.
export function inputsOf(kind, config) {
  const place = placeOf(kind, config.choices), found = kind.cases[place], base = baseOf(kind, place);
  if (found === undefined) return { reason: "no such choice" };
  if (found.structure < 0) return { reason: found.reason };
  const values = new Float64Array(kind.symbols.length), sources = new Int32Array(kind.symbols.length);
  for (const list of base === found ? [found.values] : [base.values, found.values]) {
    for (let k = 0; k < list.length; k += 3) { values[list[k]] = list[k + 1]; sources[list[k]] = list[k + 2]; }
  }
  const moved = new Set(), form = formOf(kind, config);
  for (const each of kind.numbers) {
    const own = Object.hasOwn(config.numbers, each.name);
    if (each.group === "system" && !(own && Object.hasOwn(each.follows, form))) continue;
    const value = own ? config.numbers[each.name] : each.start;
    for (const name of [each.name, ...(own ? each.follows[form] ?? [] : []), ...(each.name === "scale_up_size" ? ["rule/scale_up_size"] : [])]) {
      if (kind.number.has(name)) { values[kind.number.get(name)] = value; if (own) moved.add(name); }
    }
  }
  return { structure: found.structure, values, sources, moved, words: base.words, served: found.served, reason: "" };
}

// The value of a control that is not moved: of a figure of a system, that of the system chosen.
export function unmovedValue(kind, config, number) {
  if (number.group !== "system") return number.start;
  const { [number.name]: _, ...numbers } = config.numbers, found = inputsOf(kind, { ...config, numbers });
  return found.reason ? number.start : found.values[kind.number.get(number.name)];
}

// The first rule that does not hold, in words; "" where all hold.
export function refusalOf(kind, config, found = inputsOf(kind, config)) {
  if (found.reason) return found.reason;
  const values = forward(kind.ruleTape, found.values);
  for (const [position, , message] of kind.rules) {
    if (!(values[kind.ruleTape.place[position]] >= 0)) return fill(kind, message, config, found, values);
  }
  return "";
}

function fill(kind, message, config, { values, words }, derived) {
  const read = (name) => {
    if (Object.hasOwn(kind.derived, name)) return derived[kind.ruleTape.place[kind.derived[name]]];
    const place = kind.number.get(name) ?? kind.number.get(`rule/${name}`);
    if (place !== undefined) return values[place];
    const each = kind.numbers.find((number) => number.name === name);
    if (each) return config.numbers[name] ?? each.start;
    return config.choices[name] ?? 1;
  };
  const told = {
    stages: () => read("pp") * read("vpp"), share: () => read("dp") * read("micro_batch"),
    micro_batches: () => Math.floor(read("batch") / (read("dp") * read("micro_batch"))),
    devices: () => read("tp") * read("pp") * read("dp") * read("cp"), total: () => read("prompt") + read("generate"),
    ends_counted: () => (read("counted") > 0 && kind.number.has("rule/counted") ? ` and ${read("counted")} that account_for counts` : ""),
    chunks: () => (read("balanced") === 1 ? `2 x cp = ${2 * read("cp")}` : `cp = ${read("cp")}`),
  };
  return message.replace(/\{(\w+)\}/g, (_, name) => {
    if (name === "schedule" && "schedule" in config.choices) return String(config.choices.schedule ?? "None");
    if (words !== undefined && Object.hasOwn(words, name)) return words[name];
    return String(Object.hasOwn(told, name) ? told[name]() : read(name));
  });
}

// The tape of a structure, its positions and room for its slopes, made when first asked for.
export function partOf(kind, structure) {
  if (!kind.parts.has(structure)) {
    const { outputs, terms } = kind.structures[structure];
    const tape = part(kind.tape, [...outputs.values(), ...terms.map(({ at }) => at)]);
    const stop = new Uint8Array(tape.code.length);
    for (const { at, idle } of terms) if (idle) stop[tape.place[at]] = 1;
    const byInput = new Map();
    tape.code.forEach((code, at) => { if (code === 0) byInput.set(tape.first[at], at); });
    kind.parts.set(structure, { tape, stop, byInput, room: new Float64Array(tape.code.length) });
  }
  return kind.parts.get(structure);
}

// Shares of resources in the time at a position, by Euler's theorem over latencies and reciprocal rates.
function sharesAt(kind, own, values, at) {
  const found = {}, total = values[at];
  if (!(total > 0)) return found;
  const slope = slopes(own.tape, values, at, undefined, own.room);
  for (const { place, resource, sign } of kind.resources) {
    const where = own.byInput.get(place);
    if (where === undefined || where > at || slope[where] === 0) continue;
    found[resource] = (found[resource] ?? 0) + sign * slope[where] * values[where] / total;
  }
  return found;
}

export function largest(shares) {
  let best = null;
  for (const [name, share] of Object.entries(shares)) if (share > 0 && (best === null || share > shares[best])) best = name;
  return best;
}

// All that is told of a configuration; {reason} where it cannot be.
export function answer(kind, config, { terms = true } = {}) {
  const found = inputsOf(kind, config), reason = refusalOf(kind, config, found);
  if (reason) return { reason };
  const own = partOf(kind, found.structure), { outputs, terms: paths } = kind.structures[found.structure];
  const values = forward(own.tape, found.values);
  const value = (name) => values[own.tape.place[outputs.get(name)]];
  const input = (name) => found.values[kind.number.get(name)];
  const told = { reason: "", inputs: found, values, value, input, microBatch: microBatchOf(kind, found.values) };
  const need = value(kind.name === "train" ? "reserved" : "needed"), capacity = input("memory_capacity");
  told.memory = { need, capacity, fits: need <= capacity, parts: partsOf(outputs, value) };
  told.joules = energyOf(outputs, value, input);
  told.dollars = input("price_per_hour") > 0 ? value("rented_cost") : null;
  const time = own.tape.place[outputs.get("time")];
  told.shares = sharesAt(kind, own, values, time);
  if (terms) {
    const slope = Float64Array.from(slopes(own.tape, values, time, own.stop, own.room));
    told.rows = paths.map(({ path, at, idle, summed, calls }) => {
      const here = own.tape.place[at], seconds = values[here] * slope[here];
      const shares = idle ? {} : sharesAt(kind, own, values, here), of = (what) => value(`term/${path}/${what}`);
      const count = idle ? 1 : of("count");
      // An operation that is summed has the time of all steps: one of it is the mean.
      const steps = summed ? Math.max(input("generate") - 1, 1) : 1;
      return {
        path, at, idle, calls, seconds, each: values[here] / steps, share: seconds / values[time], bound: largest(shares), count,
        flops: idle ? 0 : of("flops"), bytes: idle ? 0 : of("bytes"), message: idle ? 0 : of("message"),
      };
    });
  }
  return told;
}

// Sequences of a micro-batch: a symbol, or what follows from others.
function microBatchOf(kind, inputs) {
  if (!Object.hasOwn(kind.derived, "micro_batch")) return inputs[kind.number.get("micro_batch")];
  return forward(kind.ruleTape, inputs)[kind.ruleTape.place[kind.derived.micro_batch]];
}

function partsOf(outputs, value) {
  const found = [];
  for (const name of outputs.keys()) {
    if (name.startsWith("memory/") || name.startsWith("beside/")) found.push({ name: name.slice(7), output: name, bytes: value(name) });
  }
  return found.filter(({ bytes }) => bytes > 0);
}

function energyOf(outputs, value, input) {
  if (input("rule/told") === 1) {
    let sum = 0;
    for (const name of outputs.keys()) if (name.startsWith("energy/")) sum += value(name);
    return sum;
  }
  const power = input("power");
  return power > 0 ? power * value("devices") * value("time") : null;
}
