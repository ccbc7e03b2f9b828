// Puts the data into the page.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

function key(i) {
  return element("span", { class: "key", style: `background:${colour(i)}` });
}

function share(met, jobs) {
  const cell = element("td", { class: "share" }, percent(met, jobs));
  if (jobs > 0) {
    const part = element("i", { style: `width:${(100 * met) / jobs}%` });
    cell.append(element("span", { class: "meter" }, part));
  }
  return cell;
}

function table(place, head, rows) {
  const cells = head.map((text) => element("th", { scope: "col" }, text));
  place.append(element("thead", {}, element("tr", {}, ...cells)), element("tbody", {}, ...rows));
}

function quantile(values, part) {
  return values.length === 0 ? null : values[Math.round(part * (values.length - 1))];
}

function fillSchedulers() {
  const critical = data.tasks.some((task) => task.critical);
  const head = ["Scheduler", "Jobs", "Compliance %"];
  if (critical) head.push("PITMD %");
  head.push("Unfinished", "ART ms", "Response max", "Lateness p50", "Lateness max", "rt-app slack mean", "rt-app slack min");
  const rows = data.schedulers.map((scheduler, i) => {
    const t = scheduler.total;
    const name = element("th", { scope: "row" }, key(i), scheduler.name);
    const cells = [element("td", {}, t.jobs), share(t.met, t.jobs)];
    if (critical) cells.push(element("td", {}, figure(t.pitmd === null ? null : 100 * t.pitmd)));
    const rest = [
      t.art, quantile(t.response, 1), quantile(t.lateness, 0.5), quantile(t.lateness, 1), t.slack && t.slack[0], t.slack && t.slack[1],
    ];
    // Jobs that never finished bound response times from below and slack from above.
    const bounds = t.unfinished ? ["≥ ", "≥ ", "", "≥ ", "≤ ", "≤ "] : rest.map(() => "");
    cells.push(element("td", {}, t.unfinished));
    cells.push(...rest.map((value, i) => element("td", {}, (value === null ? "" : bounds[i]) + figure(value))));
    return element("tr", {}, name, ...cells);
  });
  table(at("schedulers"), head, rows);
}

function fillTasks() {
  const head = ["Task", "Jobs", ...data.schedulers.map((scheduler) => scheduler.name)];
  const rows = data.tasks.map((task, i) => {
    const name = element("th", { scope: "row" }, task.name);
    if (task.critical) name.append(element("span", { class: "critical", title: "critical" }, " !"));
    const figures = data.schedulers.map((scheduler) => scheduler.tasks[i]);
    const cells = figures.map((f) => share(f.met, f.jobs));
    return element("tr", {}, name, element("td", {}, figures[0] ? figures[0].jobs : 0), ...cells);
  });
  table(at("tasks"), head, rows);
}

function fillDistributions() {
  const pick = at("task");
  pick.append(element("option", { value: "all" }, "all"));
  data.tasks.forEach((task, i) => pick.append(element("option", { value: i }, task.name)));
  const draw = () => {
    const curves = (name) => data.schedulers.map((scheduler, index) => {
      const figures = pick.value === "all" ? scheduler.total : scheduler.tasks[pick.value];
      return { name: scheduler.name, index, values: figures[name] };
    });
    distribution(at("response"), curves("response"), false);
    distribution(at("lateness"), curves("lateness"), true);
  };
  pick.addEventListener("change", draw);
  data.schedulers.forEach((scheduler, i) => at("legend").append(element("span", {}, key(i), scheduler.name)));
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
  const gantt = new Gantt(at("gantt"), at("pointed"), stretch, data.tasks);
  stretch.runs.forEach((run, i) => {
    const missed = run.jobs.filter((job) => !job[5] && job[3] >= stretch.start && job[3] <= stretch.end).length;
    const text = `${run.scheduler} (${missed} missed here${run.cut ? "; not all is shown" : ""})`;
    at("run").append(element("option", { value: i }, text));
  });
  at("run").value = stretch.first;
  gantt.show(stretch.runs[stretch.first]);
  at("run").addEventListener("change", () => gantt.show(stretch.runs[at("run").value]));
  at("in").addEventListener("click", () => gantt.zoom(1.6));
  at("out").addEventListener("click", () => gantt.zoom(1 / 1.6));
  at("whole").addEventListener("click", () => gantt.whole());
  gantt.whole();
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

const lead = data.schedulers
  .map((scheduler) => `${scheduler.name} ${percent(scheduler.total.met, scheduler.total.jobs)} %`);
at("lead").textContent = `Deadlines met: ${lead.join(", ")}.`;
fillSchedulers();
fillTasks();
fillDistributions();
fillStretch();
fillFacts();
