// The stages of a pipeline: bytes of each device, and the schedule of a step run event by event with the seconds of
// each stage's passes, as `symperf train --timeline` does.
import { forward, part } from "./tape.js";

export const MOST_PASSES = 20000;
const OVERHEADS = ["host/overhead", "waits/stragglers"], PLAIN = ["1f1b", "gpipe", "interleaved"];

// The closed forms of each stage, by name; null for an inference.
export function stagesOf(kind, told) {
  const { structure, values } = told.inputs, { stages } = kind.structures[structure];
  if (stages.size === 0) return null;
  if (!kind.stageTapes.has(structure)) kind.stageTapes.set(structure, part(kind.tape, [...stages.values()]));
  const tape = kind.stageTapes.get(structure), inputs = values.slice(), at = kind.number.get("stage_number");
  return Array.from({ length: told.input("pp") }, (_, k) => {
    if (at !== undefined) inputs[at] = k + 1;
    const found = forward(tape, inputs), named = {};
    for (const [name, position] of stages) named[name] = found[tape.place[position]];
    return named;
  });
}

const task = (kind, batch, stage) => ({ kind, batch, stage });

function alternate(count, ahead, made) {
  const items = [];
  for (let k = 0; k < ahead; k += 1) items.push(made("F", k));
  for (let k = 0; k < count; k += 1) {
    if (k + ahead < count) items.push(made("F", k + ahead));
    items.push(made("D", k));
  }
  return items;
}

// On each stage `ahead` forward passes, then in turn B, the W of `late` micro-batches before, and F.
function split(count, ahead, late) {
  return ahead.map((first, stage) => {
    const items = [], delay = late[stage];
    for (let k = 0; k < Math.min(count, first); k += 1) items.push(task("F", k, stage));
    for (let k = 0; k < count + delay; k += 1) {
      if (k < count) items.push(task("B", k, stage));
      if (k >= delay) items.push(task("W", k - delay, stage));
      if (k + first < count) items.push(task("F", k + first, stage));
    }
    return items;
  });
}

// What each device runs, in order (symperf/timeline/simulator.py has the sources).
export function scheduleOf(name, count, stages, chunks) {
  const each = (make) => Array.from({ length: stages }, (_, stage) => make(stage));
  const plain = (stage) => (kind, k) => task(kind, k, stage);
  if (name === "gpipe") return each((stage) => ["F", "D"].flatMap((kind) => Array.from({ length: count }, (_, k) => task(kind, k, stage))));
  if (name === "1f1b") return each((stage) => alternate(count, Math.min(count, stages - stage - 1), plain(stage)));
  if (name === "zero-bubble") return split(count, each((stage) => stages - stage), each((stage) => stage));
  if (name === "zb-h2") return split(count, each((stage) => 2 * (stages - stage) - 1), each((stage) => 2 * stage));
  if (name !== "interleaved") return null;
  const all = count * chunks;
  return each((device) => {
    const ahead = count === stages ? all : Math.min(all, 2 * (stages - device - 1) + (chunks - 1) * stages);
    return alternate(all, ahead, (kind, step) => {
      const group = Math.floor(step / (stages * chunks)), inside = step % (stages * chunks), chunk = Math.floor(inside / stages);
      return task(kind, group * stages + (inside % stages), (kind === "D" ? chunks - 1 - chunk : chunk) * stages + device);
    });
  });
}

// The moment at which each item of each device begins. What another device has comes `delay` after its end.
export function simulate(schedule, duration, delay) {
  const stages = Math.max(...schedule.flat().map(({ stage }) => stage)) + 1, done = new Map();
  const key = (kind, batch, stage) => `${kind}${batch}/${stage}`;
  const back = schedule.flat().some(({ kind }) => kind === "B") ? "B" : "D";
  const needs = ({ kind, batch, stage }) => {
    if (kind === "F") return stage > 0 ? [key("F", batch, stage - 1)] : [];
    if (kind === "W") return [key("B", batch, stage)];
    return [key("F", batch, stage), ...(stage + 1 < stages ? [key(back, batch, stage + 1)] : [])];
  };
  const home = new Map(schedule.flatMap((items, device) => items.map(({ kind, batch, stage }) => [key(kind, batch, stage), device])));
  const position = schedule.map(() => 0), free = schedule.map(() => 0), begins = schedule.map(() => []), waiting = new Map();
  const ready = schedule.map((_, device) => device);
  while (ready.length > 0) {
    const device = ready.pop();
    while (position[device] < schedule[device].length) {
      const item = schedule[device][position[device]], asked = needs(item), missing = asked.find((need) => !done.has(need));
      if (missing !== undefined) {
        if (!waiting.has(missing)) waiting.set(missing, []);
        waiting.get(missing).push(device);
        break;
      }
      const begin = Math.max(free[device], ...asked.filter((need) => home.get(need) !== device).map((need) => done.get(need) + delay));
      const own = key(item.kind, item.batch, item.stage);
      begins[device].push(begin);
      free[device] = begin + duration(item);
      done.set(own, free[device]);
      position[device] += 1;
      ready.push(...(waiting.get(own) ?? []));
      waiting.delete(own);
    }
  }
  return { begins, ends: free };
}

// A step as it is drawn: {devices: [[{kind, batch, stage, start, seconds}]], ...}; {reason} where it is not drawn.
export function timelineOf(kind, config, told, rows) {
  const name = config.choices.schedule ?? kind.flags.plan.schedule ?? "1f1b", [p, total] = [rows.length, told.value("time")];
  const count = Math.round(told.input("batch") / (told.input("dp") * told.microBatch)), chunks = name === "interleaved" ? told.input("vpp") : 1;
  const instead = "symperf train --timeline FILE draws it, for a viewer of traces.";
  if (!("pass/layers/F" in rows[0])) return { reason: `The page does not draw the schedule ${name} of this model. ${instead}` };
  const splits = "pass/layers/W" in rows[0];
  if ((splits ? 3 : 2) * count * p * chunks > MOST_PASSES) {
    return { reason: `${count} micro-batches on ${p} stages are more than the ${MOST_PASSES} passes that the page draws. ${instead}` };
  }
  const schedule = scheduleOf(name, count, p, chunks), last = p * chunks - 1, seconds = (row, what) => row[`pass/${what}`] ?? 0;
  const duration = ({ kind: pass, stage }) => {
    const row = rows[stage % p];
    return seconds(row, `layers/${pass}`) / chunks + (stage === 0 ? seconds(row, `first/${pass}`) : 0) + (stage === last ? seconds(row, `last/${pass}`) : 0);
  };
  const { begins, ends } = simulate(schedule, duration, PLAIN.includes(name) ? seconds(rows[0], "sent") : 0);
  const rest = told.rows.filter(({ path }) => OVERHEADS.includes(path)).reduce((sum, { each }) => sum + each, 0);
  const closing = seconds(rows[0], "closing"), before = seconds(rows[0], "before"), behind = seconds(rows[0], "behind");
  const pipeline = total - closing - rest, apart = name === "zb-h2";
  const span = apart ? Math.max(...ends.map((end, k) => end - begins[k][0])) : Math.max(...ends);
  const taken = span + before + behind, scale = taken > pipeline * (1 + 1e-9) ? pipeline / taken : 1;
  const devices = schedule.map((items, device) => items.map((item, k) => (
    { ...item, start: (begins[device][k] + before) * scale, seconds: duration(item) * scale })));
  return {
    reason: "", name, total, count, chunks, devices, scale, before: before * scale, behind: behind * scale,
    starts: devices.map(([first]) => (apart ? first.start - before * scale : 0)), pipeline, closing, rest, waited: Math.max(0, pipeline - taken),
    ends: ends.map((end) => (end + before) * scale),
  };
}
