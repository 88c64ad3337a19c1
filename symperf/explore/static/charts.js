// Charts: bars of HTML, and lines and points by uPlot.
import { el } from "./dom.js";
import { colourOf, percent, plain, scaled } from "./units.js";

// One bar in parts, each with its share in words beside its colour.
export function stack(label, parts, total) {
  const kept = parts.filter(({ value }) => value > 0);
  return el("div", { class: "stack", role: "img", "aria-label": `${label}: ${kept.map(({ name, text }) => `${name} ${text}`).join(", ")}` },
    kept.map(({ name, text, value, colour }) =>
      el("span", { style: { flexGrow: String(value / total), background: colour }, title: `${name}: ${text}` })));
}

export function legend(parts) {
  return el("ul", { class: "legend" }, parts.filter(({ value }) => value > 0).map(({ name, text, colour }) =>
    el("li", {}, el("i", { style: { background: colour }, "aria-hidden": "true" }), `${name} `, el("b", {}, text))));
}

const tint = () => getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
const faint = () => getComputedStyle(document.documentElement).getPropertyValue("--line").trim();

// Ticks of a logarithmic scale, at most so many.
export function logTicks(low, high, most) {
  const found = [], every = Math.ceil(Math.log10(high / low) / Math.max(most, 1));
  const dense = Math.log10(high / low) < 1.7 ? [1, 2, 3, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    if (power % every === 0) for (const step of dense) if (step * 10 ** power >= low * 0.999 && step * 10 ** power <= high * 1.001) found.push(step * 10 ** power);
  }
  return found;
}

function axis(label, unit, log) {
  return {
    label, stroke: tint, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 }, labelSize: 20, labelGap: 4, size: (_, values, place) => (place === 0 ? 44 : Math.max(40, ...(values ?? []).map((text) => 24 + 7.2 * (text ?? "").length))),
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", space: 60,
    values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : unit === "%" ? percent(tick) : scaled(tick, unit, 2))),
    ...(log ? { splits: (chart, place) => {
      const scale = chart.scales[chart.axes[place].scale];
      return logTicks(scale.min, scale.max, (place === 0 ? chart.bbox.width / 64 : chart.bbox.height / 28) / devicePixelRatio);
    }, filter: (_, splits) => splits } : {}),
  };
}

function size(where) { return { width: Math.max(280, where.clientWidth - 2), height: 300 }; }

// A curve over one symbol, bands behind it where resources bind, and marks where they change.
export function curve(where, { xs, ys, x, y, bands, now, logX }) {
  const [lo, hi] = [Math.min(...ys.filter(Number.isFinite)), Math.max(...ys.filter(Number.isFinite))];
  const logY = lo > 0 && hi / lo > 20;
  const draw = (chart) => {
    const { ctx, bbox } = chart;
    ctx.save();
    for (const { from, to, resource } of bands) {
      const left = chart.valToPos(from, "x", true), right = chart.valToPos(to, "x", true);
      ctx.fillStyle = `${colourOf(resource)}30`;
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.setLineDash([4, 4]);
    ctx.strokeStyle = tint();
    for (const { from } of bands.slice(1)) line(ctx, chart.valToPos(from, "x", true), bbox);
    ctx.setLineDash([]);
    ctx.lineWidth = 2;
    if (now >= xs[0] && now <= xs[xs.length - 1]) line(ctx, chart.valToPos(now, "x", true), bbox);
    ctx.restore();
  };
  return new uPlot({
    ...size(where), legend: { show: true }, cursor: { drag: { setScale: false } },
    scales: { x: { time: false, distr: logX ? 3 : 1, range: () => [xs[0], xs[xs.length - 1]] }, y: { distr: logY ? 3 : 1 } },
    axes: [axis(x.label, x.unit, logX), axis(y.label, y.unit, logY)],
    series: [{ label: x.label, value: (_, v) => (v === null || v === undefined ? "–" : scaled(v, x.unit)) },
      { label: y.label, stroke: tint, width: 2, points: { show: false }, value: (_, v) => (v === null || v === undefined ? "–" : y.unit === "%" ? percent(v) : scaled(v, y.unit)) }],
    hooks: { drawClear: [draw] },
  }, [xs, ys.map((value) => (Number.isFinite(value) ? value : null))], where);
}

function line(ctx, at, bbox) {
  ctx.beginPath();
  ctx.moveTo(at, bbox.top);
  ctx.lineTo(at, bbox.top + bbox.height);
  ctx.stroke();
}

// Operations by intensity and rate, under the roofs of memory and compute.
export function roofline(where, { points, peak, bandwidth }) {
  const kept = points.filter(({ x, y }) => x > 0 && y > 0).sort((one, other) => one.x - other.x);
  if (kept.length === 0) return null;
  const low = 10 ** Math.floor(Math.log10(Math.min(kept[0].x, peak / bandwidth) / 2));
  const high = 10 ** Math.ceil(Math.log10(Math.max(kept[kept.length - 1].x, peak / bandwidth) * 2));
  const bottom = 10 ** Math.floor(Math.log10(Math.min(...kept.map(({ y }) => y))));
  const draw = (chart) => {
    const { ctx } = chart, at = (x, y) => [chart.valToPos(x, "x", true), chart.valToPos(y, "y", true)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(chart.bbox.left, chart.bbox.top, chart.bbox.width, chart.bbox.height);
    ctx.clip();
    ctx.strokeStyle = tint();
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(...at(low, low * bandwidth));
    ctx.lineTo(...at(peak / bandwidth, peak));
    ctx.lineTo(...at(high, peak));
    ctx.stroke();
    for (const point of kept) {
      ctx.beginPath();
      ctx.arc(...at(point.x, point.y), (4 + 14 * Math.sqrt(point.share)) * devicePixelRatio, 0, 2 * Math.PI);
      ctx.fillStyle = `${colourOf(point.bound)}b0`;
      ctx.fill();
    }
    ctx.restore();
  };
  return new uPlot({
    ...size(where), cursor: { drag: { setScale: false } },
    scales: { x: { time: false, distr: 3, range: () => [low, high] }, y: { distr: 3, range: () => [bottom, peak * 2] } },
    axes: [axis("FLOPs a byte of memory", "1", true), axis("rate", "FLOP/s", true)],
    series: [{ label: "FLOPs a byte", value: (_, v) => (v === null || v === undefined ? "–" : plain(v)) },
      { label: "rate", stroke: "transparent", points: { show: false }, value: (_, v) => (v === null || v === undefined ? "–" : scaled(v, "FLOP/s")) },
      { label: "operation", stroke: "transparent", points: { show: false }, value: (chart, _, __, at) => (at === null || at === undefined ? "–" : kept[at].path) }],
    hooks: { draw: [draw] },
  }, [kept.map(({ x }) => x), kept.map(({ y }) => y), kept.map(({ y }) => y)], where);
}
