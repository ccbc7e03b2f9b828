// Puts the data into the page.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

/** The line of a scheduler as the curves have it. */
function key(i) {
  const svg = drawn("svg", { class: "key", viewBox: "0 0 28 10", "aria-hidden": "true" });
  svg.append(drawn("line", { x1: 0, x2: 28, y1: 5, y2: 5, "stroke-dasharray": dash(i), style: `stroke:${colour(i)}` }));
  return svg;
}

/** A column by itself: those behind a scheduler's share are that scheduler's too. */
function labels({ head, shares }, owned) {
  let owner = "";
  return head.map((text, column) => {
    if (owned && shares.includes(column)) {
      owner = text.replace(/ %$/, "");
      return text;
    }
    return `${owner} ${text}`.trim();
  });
}

/** Cells come as text; what begins a row is its name. */
function fillTable(place, sheet, name) {
  const { head, rows, shares } = sheet;
  const label = labels(sheet, place.id === "tasks");
  const cell = (text, column) => {
    const td = element("td", { "data-label": label[column] }, text.replace("-", text === "-" ? "–" : "−"));
    const percent = parseFloat(text);
    if (shares.includes(column) && !Number.isNaN(percent)) {
      td.className = "share";
      td.append(element("span", { class: "meter" }, element("i", { style: `width:${percent}%` })));
    }
    return td;
  };
  const line = ([first, ...rest], i) => {
    const row = element("tr", {}, element("th", { scope: "row" }, ...name(first, i)), ...rest.map((text, c) => cell(text, c + 1)));
    if (place.id === "schedulers" && data.best.includes(i)) row.className = "best";
    return row;
  };
  const titles = head.map((text) => element("th", { scope: "col" }, text));
  place.append(element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...rows.map(line)));
  const box = place.parentElement;
  const fit = () => {
    for (const manner of ["", "tight", "cards"]) {
      place.className = manner;
      if (place.scrollWidth <= box.clientWidth) return;
    }
  };
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    fit();
  }).observe(box);
  fit();
}

function fillDistributions() {
  const pick = at("task");
  pick.append(element("option", { value: "all" }, "all"));
  data.names.forEach((name, i) => pick.append(element("option", { value: i }, name)));
  const draw = () => {
    const curves = (kind) => data.runs.map((run, index) => {
      const own = pick.value === "all" ? run.all : run.tasks[pick.value];
      return { name: run.name, index, points: own[kind] };
    });
    distribution(at("response"), curves("response"), false);
    distribution(at("lateness"), curves("lateness"), true);
  };
  pick.addEventListener("change", draw);
  data.runs.forEach((run, i) => at("legend").append(element("span", {}, key(i), run.name)));
  draw();
  let width = at("response").clientWidth;
  new ResizeObserver(() => {
    if (at("response").clientWidth === width) return;
    width = at("response").clientWidth;
    draw();
  }).observe(at("response"));
}

function fillStretch() {
  if (!data.stretch) {
    at("worst").remove();
    return;
  }
  const { stretch } = data;
  at("why").textContent = stretch.why;
  const shared = Gantt.share(stretch, data.names);
  stretch.runs.forEach((run, i) => {
    const missed = run.jobs.filter((job) => !job[5] && job[3] >= stretch.start && job[3] <= stretch.end).length;
    const caption = `${run.scheduler}: ${missed} missed here${run.cut ? "; not all is shown" : ""}`;
    const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": `schedule under ${run.scheduler}` });
    const figure = element("figure", {}, element("figcaption", {}, caption), canvas);
    figure.hidden = !stretch.shown.includes(i);
    const box = element("input", { type: "checkbox", value: i });
    box.checked = !figure.hidden;
    at("run").append(element("label", {}, box, ` ${run.scheduler}`));
    at("gantts").append(figure);
    const gantt = new Gantt(canvas, at("pointed"), run, shared);
    box.addEventListener("change", () => {
      figure.hidden = !box.checked;
      gantt.draw();
    });
  });
  const [any] = shared.all;
  at("in").addEventListener("click", () => any.zoom(1.6));
  at("out").addEventListener("click", () => any.zoom(1 / 1.6));
  at("whole").addEventListener("click", () => any.whole());
  any.whole();
}

function fillFacts() {
  const facts = data.facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  at("facts").append(...facts);
  const notes = at("notes");
  if (data.notes.length === 0) {
    notes.remove();
    return;
  }
  const count = data.notes.length;
  notes.querySelector("summary").textContent = `${count} note${count === 1 ? "" : "s"} on how it was read and what is not modelled`;
  notes.querySelector("ul").append(...data.notes.map((note) => element("li", {}, note)));
}

const star = (i) => (data.best.includes(i) ? [element("span", { class: "star", title: "best" }, " ★")] : []);
fillTable(at("schedulers"), data.schedulers, (name, i) => [key(i), name, ...star(i)]);
fillTable(at("tasks"), data.tasks, (name) => [name]);
fillDistributions();
fillStretch();
fillFacts();
