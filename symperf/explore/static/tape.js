// Instructions as arrays: run forward, run in reverse, and written as source for a grid. One value per instruction.

// What each letter of a pool does, in the order of the compiler's table of operations.
export const OPERATIONS = ["input", "constant", "let", "add", "subtract", "multiply", "divide", "max", "min", "power",
  "sqrt", "log2", "ceil_div", "above_one", "stop_gradient", "at_least"];
const [INPUT, CONSTANT, LET, ADD, SUBTRACT, MULTIPLY, DIVIDE, MAX, MIN, POWER, SQRT, LOG2, CEIL_DIV, ABOVE_ONE, STOP,
  AT_LEAST] = OPERATIONS.keys();
const UNARY = new Set([LET, SQRT, LOG2, ABOVE_ONE, STOP]);
export const CODES = { constant: CONSTANT, max: MAX, min: MIN };
export const UNARY_CODES = UNARY;

// The instructions of a pool, operands as positions.
export function unpack(pool) {
  const count = pool.operations.length;
  const code = new Uint8Array(count), first = new Int32Array(count), second = new Int32Array(count);
  for (let at = 0; at < count; at += 1) {
    code[at] = pool.operations.charCodeAt(at) - 97;
    const leaf = code[at] <= CONSTANT;
    first[at] = leaf ? pool.first[at] : at - pool.first[at];
    second[at] = leaf ? 0 : at - pool.second[at];
  }
  return { code, first, second, constants: Float64Array.from(pool.constants) };
}

// The part of a tape that some positions need, with `place`: where each position of the whole went, or -1.
export function part(tape, roots) {
  const needed = new Uint8Array(tape.code.length);
  for (const root of roots) needed[root] = 1;
  let count = 0;
  for (let at = tape.code.length - 1; at >= 0; at -= 1) {
    if (!needed[at]) continue;
    count += 1;
    if (tape.code[at] <= CONSTANT) continue;
    needed[tape.first[at]] = 1;
    if (!UNARY.has(tape.code[at])) needed[tape.second[at]] = 1;
  }
  const place = new Int32Array(tape.code.length).fill(-1);
  const code = new Uint8Array(count), first = new Int32Array(count), second = new Int32Array(count);
  let next = 0;
  for (let at = 0; at < tape.code.length; at += 1) {
    if (!needed[at]) continue;
    place[at] = next;
    code[next] = tape.code[at];
    first[next] = code[next] <= CONSTANT ? tape.first[at] : place[tape.first[at]];
    if (code[next] > CONSTANT && !UNARY.has(code[next])) second[next] = place[tape.second[at]];
    next += 1;
  }
  return { code, first, second, constants: tape.constants, place };
}

// The value of every instruction, given those of the inputs by number.
export function forward(tape, inputs, values = new Float64Array(tape.code.length)) {
  const { code, first, second, constants } = tape;
  for (let at = 0; at < code.length; at += 1) {
    const one = first[at], a = values[one], b = values[second[at]];
    switch (code[at]) {
      case INPUT: values[at] = inputs[one]; break;
      case CONSTANT: values[at] = constants[one]; break;
      case ADD: values[at] = a + b; break;
      case SUBTRACT: values[at] = a - b; break;
      case MULTIPLY: values[at] = a * b; break;
      case DIVIDE: values[at] = a / b; break;
      case MAX: values[at] = a >= b ? a : b; break;
      case MIN: values[at] = a <= b ? a : b; break;
      case POWER: values[at] = Math.pow(a, b); break;
      case SQRT: values[at] = Math.sqrt(a); break;
      case LOG2: values[at] = Math.log2(a); break;
      case CEIL_DIV: values[at] = Math.ceil(a / b); break;
      case ABOVE_ONE: values[at] = a > 1 ? 1 : 0; break;
      case AT_LEAST: values[at] = a >= b ? 1 : 0; break;
      default: values[at] = a;
    }
  }
  return values;
}

// The slope of one instruction by every earlier one: maxima give that of the branch that wins, the first of equals.
// Nothing passes through the positions of `stop`.
export function slopes(tape, values, seed, stop, found = new Float64Array(tape.code.length)) {
  const { code, first, second } = tape;
  found.fill(0, 0, seed + 1);
  found[seed] = 1;
  for (let at = seed; at >= 0; at -= 1) {
    const slope = found[at];
    if (slope === 0 || code[at] <= CONSTANT || (stop !== undefined && stop[at])) continue;
    const one = first[at], two = second[at], a = values[one], b = values[two];
    switch (code[at]) {
      case LET: found[one] += slope; break;
      case ADD: found[one] += slope; found[two] += slope; break;
      case SUBTRACT: found[one] += slope; found[two] -= slope; break;
      case MULTIPLY: found[one] += slope * b; found[two] += slope * a; break;
      case DIVIDE:
      case CEIL_DIV: found[one] += slope / b; found[two] -= slope * a / (b * b); break;
      case MAX: found[a >= b ? one : two] += slope; break;
      case MIN: found[a <= b ? one : two] += slope; break;
      case POWER: {
        const base = a > 0 ? a : 1;
        found[one] += slope * b * values[at] / base;
        found[two] += slope * values[at] * Math.log2(base) * Math.LN2;
        break;
      }
      case SQRT: if (values[at] > 0) found[one] += slope * 0.5 / values[at]; break;
      case LOG2: found[one] += slope / (a * Math.LN2); break;
      default:
    }
  }
  return found;
}

// 1 at each instruction that depends on one of some inputs.
export function dependents({ code, first, second }, inputs) {
  const found = new Uint8Array(code.length);
  for (let at = 0; at < code.length; at += 1) {
    if (code[at] === INPUT) found[at] = inputs.has(first[at]) ? 1 : 0;
    else if (code[at] !== CONSTANT) found[at] = found[first[at]] | (UNARY.has(code[at]) ? 0 : found[second[at]]);
  }
  return found;
}

const TEXTS = {
  [LET]: "A", [ADD]: "A + B", [SUBTRACT]: "A - B", [MULTIPLY]: "A * B", [DIVIDE]: "A / B", [MAX]: "A >= B ? A : B",
  [MIN]: "A <= B ? A : B", [POWER]: "Math.pow(A, B)", [SQRT]: "Math.sqrt(A)", [LOG2]: "Math.log2(A)",
  [CEIL_DIV]: "Math.ceil(A / B)", [ABOVE_ONE]: "A > 1 ? 1 : 0", [STOP]: "A", [AT_LEAST]: "A >= B ? 1 : 0",
};

function literal(value) {
  const text = Object.is(value, -0) ? "-0" : String(value);
  return value < 0 || Object.is(value, -0) ? `(${text})` : text;
}

// Source of a function of two lists of values: rows of results over a grid, an array for each root. What neither symbol
// changes is a number in it, what one changes is computed once for each of its values, and the rest at each point.
export function gridSource(tape, values, xInputs, yInputs, roots) {
  const { code, first, second } = tape;
  const count = code.length, depends = new Uint8Array(count), text = new Array(count), lines = { 1: [], 2: [], 3: [] };
  const tables = [], stored = new Uint8Array(count);
  for (let at = 0; at < count; at += 1) {
    if (code[at] === INPUT) depends[at] = xInputs.has(first[at]) ? 1 : yInputs.has(first[at]) ? 2 : 0;
    else if (code[at] !== CONSTANT) depends[at] = depends[first[at]] | (UNARY.has(code[at]) ? 0 : depends[second[at]]);
  }
  // A value of one symbol that a point reads is kept in a table.
  for (let at = 0; at < count; at += 1) {
    if (depends[at] !== 3 || code[at] <= CONSTANT) continue;
    for (const operand of UNARY.has(code[at]) ? [first[at]] : [first[at], second[at]]) {
      if (depends[operand] === 1) stored[operand] = 1;
    }
  }
  for (const root of roots) if (depends[root] === 1) stored[root] = 1;
  for (let at = 0; at < count; at += 1) {
    const on = depends[at];
    if (on === 0) { text[at] = literal(values[at]); continue; }
    if (code[at] === INPUT) { text[at] = on === 1 ? "x" : "y"; } else {
      const read = (operand) => (on === 3 && depends[operand] === 1 ? `t${operand}[i]` : text[operand]);
      const one = read(first[at]), two = UNARY.has(code[at]) ? "" : read(second[at]);
      lines[on].push(`const v${at} = ${TEXTS[code[at]].replace(/[AB]/g, (letter) => (letter === "A" ? one : two))};`);
      text[at] = `v${at}`;
    }
    if (stored[at]) { tables.push(`const t${at} = new Float64Array(xs.length);`); lines[1].push(`t${at}[i] = ${text[at]};`); }
  }
  const out = roots.map((root, k) => `r${k}[j * n + i] = ${depends[root] === 1 ? `t${root}[i]` : text[root]};`);
  const made = roots.map((_, k) => `const r${k} = new Float64Array(n * ys.length);`);
  // A row is a function of its own: called a thousand times it is compiled after a few.
  return ["(xs, ys) => {", "const n = xs.length;", ...tables, ...made, "const column = (i, x) => {", ...lines[1], "};",
    "const row = (j, y) => {", ...lines[2], "for (let i = 0; i < n; i += 1) {", ...lines[3], ...out, "}", "};",
    "for (let i = 0; i < n; i += 1) column(i, xs[i]);", "for (let j = 0; j < ys.length; j += 1) row(j, ys[j]);",
    `return [${roots.map((_, k) => `r${k}`).join(", ")}];`, "}"].join("\n");
}
