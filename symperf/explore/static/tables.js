// An answer as text for other programs.

export function csvOf(told) {
  const safe = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value));
  const cell = (value) => (/[",\n]/.test(safe(value)) ? `"${safe(value).replaceAll('"', '""')}"` : safe(value));
  return [["operation", "seconds", "share", "bound", "executions", "flops", "bytes", "message_bytes"],
    ...told.rows.map((row) => [row.path, row.seconds, row.share, row.bound ?? "", row.count, row.flops, row.bytes, row.message])]
    .map((line) => line.map(cell).join(",")).join("\n");
}

const SPECIAL = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "·": "$\\cdot$", "µ": "$\\mu$" };
const tex = (text) => String(text).replace(/[\\~^–·µ]|[#$%&_{}]/g, (letter) => SPECIAL[letter] ?? `\\${letter}`);

// Two tables in LaTeX that needs no package: the answers, and the operations.
export function latexOf(head, told, title) {
  const text = (cell) => tex(typeof cell === "string" ? cell : cell.textContent);
  const rows = [...told.rows].filter(({ seconds }) => seconds > 0).sort((one, other) => other.seconds - one.seconds);
  const number = (value) => (value === 0 ? "0" : value.toPrecision(4).replace(/e([+-])0*(\d+)$/, (_, sign, power) => ` \\times 10^{${sign === "-" ? "-" : ""}${power}}`));
  return [`% ${title.replace(/[^\x20-\x7e]/g, "?")}`, "\\begin{tabular}{lr}", "\\hline", ...head.filter(({ cells }) => cells[0] !== "").map(({ label, cells }) => `${tex(label)} & ${text(cells[0])} \\\\`), "\\hline", "\\end{tabular}", "",
    "\\begin{tabular}{lrrl}", "\\hline", "Operation & Seconds & Share & Bound \\\\", "\\hline",
    ...rows.map((row) => `${tex(row.path)} & $${number(row.seconds)}$ & ${tex(`${(100 * row.share).toFixed(2)} %`)} & ${tex((row.bound ?? "").replaceAll("_", " "))} \\\\`), "\\hline", "\\end{tabular}", ""].join("\n");
}
