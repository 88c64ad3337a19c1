// Pictures of views as PNG files: what is on canvases, or bars drawn from their numbers.
import { byId, el } from "./dom.js";

const bars = new Map();

// Notes what the bars of a view show: [{name, value, text, colour}].
export function noteBars(id, title, rows) { bars.set(id, { title, rows }); }

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function blank(width, height) {
  const canvas = el("canvas", { width, height }), context = canvas.getContext("2d");
  context.fillStyle = style("--paper");
  context.fillRect(0, 0, width, height);
  context.fillStyle = style("--ink");
  context.textBaseline = "middle";
  return [canvas, context];
}

function ofBars({ title, rows }) {
  const line = 26, kept = rows.filter(({ value }) => value > 0), top = 56;
  const [canvas, context] = blank(1200, top + line * kept.length + 16);
  context.font = "600 20px system-ui, sans-serif";
  context.fillText(title, 16, 26, 1168);
  context.font = "15px system-ui, sans-serif";
  const most = Math.max(...kept.map(({ value }) => value));
  kept.forEach(({ name, value, text, colour }, k) => {
    const at = top + line * k + line / 2;
    context.fillStyle = style("--ink");
    context.fillText(name, 16, at, 390);
    context.fillText(text, 1020, at, 170);
    context.fillStyle = colour;
    context.fillRect(420, at - 9, Math.max(1, 580 * value / most), 18);
  });
  return canvas;
}

function ofCanvases(title, canvases, caption) {
  const width = Math.max(...canvases.map((each) => each.width)), gap = 12, top = 48;
  const heights = canvases.map((each) => (each.classList.contains("map") ? Math.round(each.height * width / each.width) : each.height));
  const [canvas, context] = blank(width + 32, top + heights.reduce((sum, each) => sum + each + gap, 0) + 40);
  context.font = "600 20px system-ui, sans-serif";
  context.fillText(title, 16, 24, width);
  let at = top;
  canvases.forEach((each, k) => { context.drawImage(each, 16, at, width, heights[k]); at += heights[k] + gap; });
  context.font = "14px system-ui, sans-serif";
  context.fillStyle = style("--ink");
  context.fillText(caption, 16, at + 12, width);
  return canvas;
}

// The picture of a view with a line about the configuration, or null where it shows none.
export function pictureOf(id, title, caption) {
  const canvases = [...byId(id).querySelectorAll("canvas")];
  if (canvases.length > 0) return ofCanvases(title, canvases, caption);
  const known = bars.get(id);
  return known === undefined ? null : ofBars({ title: `${known.title}: ${caption}`, rows: known.rows });
}

// Saves a canvas as a file of the browser's.
export function savePng(canvas, name) {
  return new Promise((done, failed) => canvas.toBlob((blob) => {
    if (blob === null) { failed(new Error("the browser makes no PNG")); return; }
    const address = URL.createObjectURL(blob), link = el("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    done();
  }, "image/png"));
}
