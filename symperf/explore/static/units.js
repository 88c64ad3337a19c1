// Numbers for people: scaled units, in which they are read back too.
const PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"],
  [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];

export function plain(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(digits)));
}

export function scaled(value, unit, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  if (unit === "1" || unit === "") return plain(value, digits);
  const size = Math.abs(value);
  const [scale, prefix] = value === 0 ? [1, ""] : PREFIXES.find(([each]) => size >= each * 0.9995) ?? [1e-12, "p"];
  return `${Number((value / scale).toPrecision(digits))} ${prefix}${unit}`;
}

export const seconds = (value) => scaled(value, "s");
export const percent = (value) => (Number.isFinite(value) ? `${(100 * value).toFixed(value < 0.0995 ? 2 : 1)} %` : "–");
export const gigabytes = (value) => `${Number((value / 1e9).toPrecision(4))} GB`;

export function dollars(value) {
  return value === null ? "no price" : `$${value < 0.01 ? value.toExponential(2) : Number(value.toPrecision(4))}`;
}

// Names of symbols as words.
export const words = (name) => name.replaceAll("_", " ");

const ITEMS = [["compute", "#0072b2"], ["memory", "#e69f00"], ["l2", "#f0e442"], ["scale_up", "#009e73"],
  ["scale_out", "#d55e00"], ["network", "#8c564b"], ["launch", "#cc79a7"], ["host", "#595959"], ["nvme", "#56b4e9"]];
const COLOURS = new Map(ITEMS);
export const colourOf = (resource) => COLOURS.get(resource) ?? "#999999";

const PARTS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#c9b000", "#7f7f7f", "#8c564b", "#4d4d4d"];
export const colourOfPart = (place) => PARTS[place % PARTS.length];
