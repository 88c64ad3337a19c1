// Elements from names, attributes and children. Text is text: no string here is ever read as markup.

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const byId = (id) => document.getElementById(id);

export function show(where, ...children) {
  where.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// A table: headings, and rows of cells (text, a number's text or an element). The first cell of a row is its heading.
export function table(caption, headings, rows) {
  return el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map(([first, ...rest]) =>
      el("tr", {}, el("th", { scope: "row" }, first), rest.map((cell) => el("td", {}, cell))))));
}

// MathML of a tree of [name, attributes if any, child, ...].
const MATHML = "http://www.w3.org/1998/Math/MathML";
export function math(tree) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const [name, next] = tree, has = tree.length > 1 && typeof next === "object" && !Array.isArray(next);
  return fill(document.createElementNS(MATHML, name), has ? next : {}, tree.slice(has ? 2 : 1).map(math));
}

// A path, which may be broken behind each slash.
export const path = (text) => text.split("/").flatMap((part, k) => (k === 0 ? [part] : ["/", el("wbr"), part]));
