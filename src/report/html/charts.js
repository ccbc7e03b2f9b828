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
// The ninth scheduler has the first one's colour, but a dashed line.
const dash = (i) => (i < 8 ? "" : i < 16 ? "6 3" : "2 3");

function figure(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(digits).replace("-", "−");
}

const percent = (met, jobs) => (jobs === 0 ? "–" : figure((100 * met) / jobs));

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

/**
 * Draws quantiles as a cumulative share over milliseconds. `curves` are
 * {name, index, values}; with `zero` the point 0 is marked and always in sight.
 */
function distribution(place, curves, zero) {
  place.replaceChildren();
  const shown = curves.filter((curve) => curve.values.length > 0);
  if (shown.length === 0) {
    place.append(element("p", { class: "small", style: "padding:0.5rem 0.8rem" }, "No job of this task was judged."));
    return;
  }
  // One unit is one pixel, so that letters keep their size on a phone.
  const width = Math.max(place.clientWidth, 240), height = 260, left = 48, right = 14, top = 12, bottom = 34;
  const least = Math.min(...shown.map((c) => c.values[0]), 0);
  const most = Math.max(...shown.map((c) => c.values[c.values.length - 1]), zero ? 0 : -Infinity);
  const span = most - least || 1;
  const x = (ms) => left + ((ms - least) / span) * (width - left - right);
  const y = (share) => height - bottom - share * (height - top - bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "distribution" });
  for (const tick of ticks(least, most, Math.max(2, width / 80))) {
    svg.append(drawn("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: height - bottom }));
    svg.append(drawn("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, label(tick, span)));
  }
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }));
    svg.append(drawn("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${share * 100} %`));
  }
  svg.append(drawn("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "ms"));
  if (zero) svg.append(drawn("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: height - bottom }));
  for (const curve of shown) {
    const last = curve.values.length - 1 || 1;
    const points = curve.values.map((ms, i) => `${x(ms).toFixed(1)},${y(i / last).toFixed(1)}`);
    // From nobody to everybody, also where all values are the same.
    points.unshift(`${x(curve.values[0]).toFixed(1)},${y(0)}`);
    points.push(`${x(curve.values[curve.values.length - 1]).toFixed(1)},${y(1)}`, `${width - right},${y(1)}`);
    svg.append(drawn("polyline", {
      class: "curve", points: points.join(" "), "stroke-dasharray": dash(curve.index),
      style: `stroke:${colour(curve.index)}`,
    }));
  }
  const tip = element("div", { class: "tip", hidden: "" });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const ms = least + (((event.clientX - box.left) / box.width * width - left) / (width - left - right)) * span;
    if (ms < least || ms > most) return;
    tip.hidden = false;
    tip.textContent = `${figure(ms)} ms\n` + shown.map((c) => `${c.name}: ${figure(100 * shareAt(c.values, ms), 1)} %`).join("\n");
  });
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
  place.append(svg, tip);
}

/** The share of the jobs at or below this value. */
function shareAt(values, ms) {
  const above = values.findIndex((value) => value > ms);
  if (above === -1) return 1;
  if (above === 0) return 0;
  const part = (ms - values[above - 1]) / (values[above] - values[above - 1]);
  return (above - 1 + part) / (values.length - 1);
}
