"use strict";
// Small helpers, and curves of cumulative distributions.

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}

function drawn(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
}

const colour = (i) => `var(--s${i % 8})`;
// Lines are told apart without colours too.
const DASHES = ["none", "9 4", "2 3", "9 3 2 3", "15 4", "5 5", "15 3 2 3", "1 4"];
const dash = (i) => DASHES[(i + Math.floor(i / 8)) % 8];

function figure(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(digits).replace("-", "−");
}

/** Round steps that divide a range into about `count` parts. */
function ticks(low, high, count) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => span / s <= count);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

function label(value, span) {
  const digits = span > 20 ? 0 : span > 2 ? 1 : span > 0.2 ? 2 : 3;
  return figure(value, digits);
}

/** The value that this share of the jobs does not exceed. */
function valueAt(points, share) {
  return points.find((point) => point[0] >= share - 1e-9)[1];
}

/** The share of the jobs at or below this value. */
function shareAt(points, ms) {
  const above = points.findIndex((point) => point[1] > ms);
  if (above === -1) return 1;
  if (above === 0) return 0;
  const [low, high] = [points[above - 1], points[above]];
  return low[0] + ((ms - low[1]) / (high[1] - low[1])) * (high[0] - low[0]);
}

/**
 * Milliseconds to a share of the width and back. Linear; but where a tail would crush a
 * curve's nine tenths into one tenth of the width, logarithmic in both directions from
 * 0, beginning at the order of magnitude of the smallest median.
 */
function axis(curves, least, most) {
  const span = most - least || 1;
  const crushed = curves.some(({ points }) =>
    Math.min(valueAt(points, 0.9) - least, most - valueAt(points, 0.1)) < span / 10);
  const medians = curves.map(({ points }) => Math.abs(valueAt(points, 0.5))).filter((ms) => ms > 0);
  const typical = Math.min(...medians);
  const far = Math.max(Math.abs(least), Math.abs(most));
  if (!crushed || medians.length === 0 || far < 20 * typical) {
    return {
      log: false, to: (ms) => (ms - least) / span, from: (part) => least + part * span,
      ticks: (count) => ticks(least, most, count).map((ms) => [ms, label(ms, span)]),
    };
  }
  const unit = 10 ** Math.floor(Math.log10(typical));
  const bend = (ms) => Math.sign(ms) * Math.log10(1 + Math.abs(ms) / unit);
  const [low, high] = [bend(least), bend(most)];
  const decades = [0];
  for (let ms = unit; ms <= far; ms *= 10) decades.push(ms, -ms);
  const shown = decades.filter((ms) => ms >= least && ms <= most).sort((a, b) => a - b);
  return {
    log: true, to: (ms) => (bend(ms) - low) / (high - low),
    from: (part) => {
      const bent = low + part * (high - low);
      return Math.sign(bent) * unit * (10 ** Math.abs(bent) - 1);
    },
    ticks: (count) => {
      const every = Math.ceil(shown.length / count);
      const zero = shown.indexOf(0);
      return shown.filter((_, i) => (i - zero) % every === 0).map((ms) => [ms, label(ms, Math.abs(ms) * 2.1 || 30)]);
    },
  };
}

/**
 * Draws quantiles as a cumulative share over milliseconds. `curves` are
 * {name, index, points}; with `zero` the point 0 is marked and always in sight.
 */
function distribution(place, curves, zero) {
  place.replaceChildren();
  const shown = curves.filter((curve) => curve.points.length > 0);
  if (shown.length === 0) {
    place.append(element("p", { class: "small", style: "padding:0.5rem 0.8rem" }, "No job of this task was judged."));
    return;
  }
  // One unit is one pixel, so that letters keep their size on a phone.
  const width = Math.max(place.clientWidth, 240), height = 260, left = 48, right = 22, top = 12, bottom = 50;
  const least = Math.min(...shown.map((c) => c.points[0][1]), 0);
  const most = Math.max(...shown.map((c) => c.points[c.points.length - 1][1]), zero ? 0 : -Infinity);
  const scale = axis(shown, least, most);
  place.dataset.axis = scale.log ? "log" : "linear";
  const x = (ms) => left + scale.to(ms) * (width - left - right);
  const y = (share) => height - bottom - share * (height - top - bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "distribution" });
  for (const [ms, text] of scale.ticks(Math.max(2, width / 70))) {
    svg.append(drawn("line", { class: "grid", x1: x(ms), x2: x(ms), y1: top, y2: height - bottom }));
    svg.append(drawn("text", { x: x(ms), y: height - bottom + 16, "text-anchor": "middle" }, text));
  }
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }));
    svg.append(drawn("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${share * 100} %`));
  }
  const unit = scale.log ? "ms, logarithmic" : "ms";
  svg.append(drawn("text", { x: width - right, y: height - 8, "text-anchor": "end" }, unit));
  if (zero) svg.append(drawn("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: height - bottom }));
  for (const curve of shown) {
    const { points } = curve;
    const path = points.map(([share, ms]) => `${x(ms).toFixed(1)},${y(share).toFixed(1)}`);
    // From nobody to everybody, also where all values are the same.
    path.unshift(`${x(points[0][1]).toFixed(1)},${y(0)}`);
    path.push(`${x(points[points.length - 1][1]).toFixed(1)},${y(1)}`, `${width - right},${y(1)}`);
    svg.append(drawn("polyline", {
      class: "curve", points: path.join(" "), "stroke-dasharray": dash(curve.index),
      style: `stroke:${colour(curve.index)}`,
    }));
  }
  const tip = element("div", { class: "tip", hidden: "" });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const ms = scale.from(((event.clientX - box.left) / box.width * width - left) / (width - left - right));
    if (ms < least || ms > most) return;
    tip.hidden = false;
    tip.textContent = `${figure(ms)} ms\n` + shown.map((c) => `${c.name}: ${figure(100 * shareAt(c.points, ms), 1)} %`).join("\n");
  });
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
  place.append(svg, tip);
}
