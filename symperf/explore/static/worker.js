// In a worker: a grid by the function `grid` of the text before, and what binds on a coarser one.
import { forward, slopes } from "./tape.js";

function bindings({ tape, inputs, resources, time, xInputs, yInputs, xs, ys }) {
  const found = new Uint8Array(xs.length * ys.length), room = new Float64Array(tape.code.length);
  const values = new Float64Array(tape.code.length), shares = new Float64Array(256);
  for (let j = 0; j < ys.length; j += 1) {
    for (const place of yInputs) inputs[place] = ys[j];
    for (let i = 0; i < xs.length; i += 1) {
      for (const place of xInputs) inputs[place] = xs[i];
      forward(tape, inputs, values);
      slopes(tape, values, time, undefined, room);
      shares.fill(0);
      let best = 0;
      for (const { at, name, sign } of resources) {
        shares[name] += sign * room[at] * values[at];
      }
      for (const { name } of resources) if (shares[name] > shares[best]) best = name;
      found[j * xs.length + i] = best;
    }
  }
  return found;
}

onmessage = ({ data }) => {
  const began = performance.now();
  const results = grid(data.xs, data.ys);
  const took = performance.now() - began;
  postMessage({ results, took });
  postMessage({ bound: bindings(data.coarse) });
};
