// A map over two symbols: a million points in a worker, whose text is made of the page's own.
import { dependents, forward, gridSource, part } from "./tape.js";
import { inputsOf, partOf } from "./model.js";

export const SIDE = 1000;
const COARSE = 160, FEW = 120;

export function axisValues(number, count) {
  const log = number.low > 0 && number.high / number.low > 20;
  const found = new Float64Array(count);
  for (let k = 0; k < count; k += 1) {
    const share = count === 1 ? 0 : k / (count - 1);
    const value = log ? number.low * (number.high / number.low) ** share : number.low + (number.high - number.low) * share;
    found[k] = number.whole ? Math.max(1, Math.round(value)) : value;
  }
  return found;
}

let running = null;

// Asks for a map; `told` gets {time, need, legal, took} and then {bound}. An earlier map that still runs is ended.
export function startMap(kind, config, [x, y], code, told) {
  running?.terminate();
  running = null;
  if (typeof Worker === "undefined") { told(coarseMap(kind, config, x, y)); return; }
  const found = inputsOf(kind, config), { outputs } = kind.structures[found.structure];
  const time = outputs.get("time"), need = outputs.get(kind.name === "train" ? "reserved" : "needed");
  const xInputs = placesMovedBy(kind, config, x), yInputs = placesMovedBy(kind, config, y);
  const [xs, ys] = [axisValues(x, SIDE), axisValues(y, SIDE)];
  // The configuration is legal, so that only rules that one of the two symbols decides are asked at each point.
  const asked = dependents(kind.tape, new Set([...xInputs, ...yInputs]));
  const roots = [time, need, ...kind.rules.map(([position]) => position).filter((position) => asked[position])];
  const tape = part(kind.tape, roots), own = partOf(kind, found.structure);
  const values = forward(tape, found.values);
  const source = gridSource(tape, values, new Set(xInputs), new Set(yInputs), roots.map((root) => tape.place[root]));
  const address = URL.createObjectURL(new Blob([code, "\nconst grid = ", source, ";\n"], { type: "text/javascript" }));
  let worker = null;
  try { worker = new Worker(address); } catch { told(coarseMap(kind, config, x, y)); return; }
  running = worker;
  worker.onmessage = ({ data }) => {
    if (running !== worker) return;
    if (data.results) {
      URL.revokeObjectURL(address);
      const [times, needs, ...slacks] = data.results, legal = new Uint8Array(times.length).fill(1);
      for (const slack of slacks) for (let k = 0; k < legal.length; k += 1) if (!(slack[k] >= 0)) legal[k] = 0;
      told({ xs, ys, time: times, need: needs, legal, took: data.took });
    } else told({ bound: data.bound, side: COARSE, names });
  };
  worker.onerror = () => { if (running === worker) told(coarseMap(kind, config, x, y)); };
  const names = [...new Set(kind.resources.map(({ resource }) => resource))];
  const resources = kind.resources.flatMap(({ place, resource, sign }) =>
    (own.byInput.has(place) ? [{ at: own.byInput.get(place), name: names.indexOf(resource), sign }] : []));
  const { code: letters, first, second, constants } = own.tape;
  worker.postMessage({
    xs, ys, coarse: {
      tape: { code: letters, first, second, constants }, inputs: found.values.slice(), resources, xInputs, yInputs,
      time: own.tape.place[time], xs: axisValues(x, COARSE), ys: axisValues(y, COARSE),
    },
  });
}

// Where a browser runs no workers, or refuses one: few points, computed here.
export function coarseMap(kind, config, x, y) {
  const began = performance.now(), [xs, ys] = [axisValues(x, FEW), axisValues(y, FEW)], inputs = inputsOf(kind, config);
  const { outputs } = kind.structures[inputs.structure], time = outputs.get("time"), need = outputs.get(kind.name === "train" ? "reserved" : "needed");
  const rules = kind.rules.map(([position]) => position), tape = part(kind.tape, [time, need, ...rules]), values = inputs.values.slice();
  const xInputs = placesMovedBy(kind, config, x), yInputs = placesMovedBy(kind, config, y), room = new Float64Array(tape.code.length);
  const found = { xs, ys, time: new Float64Array(FEW * FEW), need: new Float64Array(FEW * FEW), legal: new Uint8Array(FEW * FEW).fill(1) };
  for (let k = 0; k < FEW * FEW; k += 1) {
    for (const place of yInputs) values[place] = ys[Math.floor(k / FEW)];
    for (const place of xInputs) values[place] = xs[k % FEW];
    forward(tape, values, room);
    found.time[k] = room[tape.place[time]];
    found.need[k] = room[tape.place[need]];
    if (rules.some((rule) => !(room[tape.place[rule]] >= 0))) found.legal[k] = 0;
  }
  return { ...found, took: performance.now() - began, few: true };
}

// The inputs that take the value of a control.
export function placesMovedBy(kind, config, number) {
  const before = inputsOf(kind, config), names = new Map(kind.symbols.map(({ name }, place) => [place, name]));
  const probe = number.high === before.values[kind.number.get(number.name)] ? number.low : number.high;
  const after = inputsOf(kind, { ...config, numbers: { ...config.numbers, [number.name]: probe } });
  return [...names.keys()].filter((place) => after.values[place] === probe && before.values[place] !== probe);
}

const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

// A colour of the scale viridis, of a share from 0 to 1.
export function viridis(share) {
  const at = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1), low = Math.min(Math.floor(at), STOPS.length - 2);
  return STOPS[low].map((value, k) => Math.round(value + (STOPS[low + 1][k] - value) * (at - low)));
}
