// A schedule to move and zoom in: a row per task, drawn on a canvas.

class Gantt {
  /** `shared` is what all schedules of a page have in common: view, rows and each other. */
  constructor(canvas, pointed, run, shared) {
    Object.assign(this, { canvas, pointed, run, shared, rows: shared.rows });
    this.pointers = new Map();
    this.rowOf = new Map(this.rows.map((task, row) => [task, row]));
    shared.all.push(this);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  static share(stretch, names) {
    // Only the tasks that do something here.
    const busy = new Set();
    for (const run of stretch.runs) for (const job of run.jobs) busy.add(job[0]);
    for (const run of stretch.runs) for (const segment of run.segments) busy.add(segment[1]);
    const rows = [...busy].sort((a, b) => a - b);
    return { stretch, names, rows, all: [], view: [stretch.start, stretch.end] };
  }

  get view() {
    return this.shared.view;
  }

  /** Zooms by a factor around a share of the width. */
  zoom(factor, around = 0.5) {
    const [start, end] = this.view;
    const { start: first, end: last } = this.shared.stretch;
    const whole = last - first;
    const span = Math.min(Math.max((end - start) / factor, whole / 2000), whole);
    const fixed = start + (end - start) * around;
    this.look(fixed - span * around, span);
  }

  look(start, span) {
    const { start: first, end: last } = this.shared.stretch;
    start = Math.min(Math.max(start, first), last - span);
    this.shared.view = [start, start + span];
    for (const gantt of this.shared.all) {
      gantt.canvas.dataset.span = span;
      gantt.draw();
    }
  }

  whole() {
    const { start, end } = this.shared.stretch;
    this.look(start, end - start);
  }

  listen() {
    const { canvas } = this;
    const share = (x) => {
      const box = canvas.getBoundingClientRect();
      return Math.min(Math.max((x - box.left - this.left) / (box.width - this.left), 0), 1);
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), share(event.clientX));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event.clientX);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.pointers.has(event.pointerId)) return this.point(event);
      const before = [...this.pointers.values()];
      this.pointers.set(event.pointerId, event.clientX);
      const after = [...this.pointers.values()];
      const [start, end] = this.view;
      if (after.length === 1) {
        const width = canvas.clientWidth - this.left;
        this.look(start - ((after[0] - before[0]) / width) * (end - start), end - start);
      } else {
        const apart = (xs) => Math.max(Math.abs(xs[0] - xs[1]), 10);
        this.zoom(apart(after) / apart(before), share((after[0] + after[1]) / 2));
      }
    });
    for (const over of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(over, (event) => {
        this.pointers.delete(event.pointerId);
        if (over === "pointerup") this.point(event);
      });
    }
    canvas.addEventListener("keydown", (event) => {
      const [start, end] = this.view;
      const step = (end - start) / 5;
      const keys = {
        "+": () => this.zoom(1.6), "=": () => this.zoom(1.6), "-": () => this.zoom(1 / 1.6), 0: () => this.whole(),
        ArrowLeft: () => this.look(start - step, end - start), ArrowRight: () => this.look(start + step, end - start),
      };
      if (keys[event.key]) {
        event.preventDefault();
        keys[event.key]();
      }
    });
  }

  /** Says what is under the pointer. */
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const task = this.rows[Math.floor((event.clientY - box.top - Gantt.TOP) / this.pitch)];
    const [start, end] = this.view;
    const time = start + ((event.clientX - box.left - this.left) / (box.width - this.left)) * (end - start);
    const job = this.run.jobs.find((j) => j[0] === task && j[2] <= time && time <= Math.max(j[3], j[4] ?? j[3]));
    if (!job) {
      this.pointed.textContent = `${figure(time, 3)} ms`;
      return;
    }
    const [, index, release, deadline, finish, met] = job;
    const done = finish === null ? "not finished" : `finished at ${figure(finish, 3)}`;
    this.pointed.textContent = `${this.shared.names[task]}, job ${index}: released at ${figure(release, 3)} ms, due at ` +
      `${figure(deadline, 3)}, ${done}${met ? "" : ", missed"}`;
  }

  get left() {
    return Math.min(150, this.canvas.clientWidth * 0.27);
  }

  get pitch() {
    return this.rows.length > 24 ? 18 : 28;
  }

  draw() {
    const { canvas, rows, pitch, left } = this;
    const width = canvas.clientWidth, height = Gantt.TOP + rows.length * pitch + 6;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(`--${name}`);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const [start, end] = this.view;
    const x = (ms) => left + ((ms - start) / (end - start)) * (width - left);
    this.drawAxis(pen, ink, x, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, width - left, height);
    pen.clip();
    this.drawJobs(pen, ink, x);
    this.drawSegments(pen, ink, x);
    pen.restore();
  }

  drawAxis(pen, ink, x, width, height) {
    const { rows, pitch, left } = this;
    const [start, end] = this.view;
    pen.strokeStyle = ink("line");
    pen.fillStyle = ink("soft");
    pen.textAlign = "center";
    for (const tick of ticks(start, end, Math.max(2, (width - left) / 90))) {
      pen.beginPath();
      pen.moveTo(x(tick), Gantt.TOP - 4);
      pen.lineTo(x(tick), height);
      pen.stroke();
      if (x(tick) < width - 34) pen.fillText(`${label(tick, end - start)} ms`, Math.max(x(tick), left + 22), 10);
    }
    pen.textAlign = "left";
    pen.fillStyle = ink("ink");
    rows.forEach((task, row) => {
      let text = this.shared.names[task];
      while (text.length > 1 && pen.measureText(text).width > left - 10) text = `${text.replace("…", "").slice(0, -1)}…`;
      pen.fillText(text, 4, Gantt.TOP + (row + 0.5) * pitch);
    });
  }

  drawJobs(pen, ink, x) {
    for (const [task, , release, deadline, , met] of this.run.jobs) {
      const top = Gantt.TOP + this.rowOf.get(task) * this.pitch + 2;
      pen.strokeStyle = met ? ink("line") : ink("bad");
      pen.lineWidth = met ? 1 : 1.5;
      pen.strokeRect(x(release) + 0.5, top + 0.5, Math.max(x(deadline) - x(release) - 2, 1), this.pitch - 5);
    }
    pen.lineWidth = 1;
  }

  drawSegments(pen, ink, x) {
    const late = new Map(this.run.jobs.map((job) => [`${job[0]}:${job[1]}`, job[5] ? Infinity : job[3]]));
    for (const [core, task, index, from, to] of this.run.segments) {
      const top = Gantt.TOP + this.rowOf.get(task) * this.pitch + 5;
      const due = late.get(`${task}:${index}`) ?? Infinity;
      const onTime = Math.min(to, Math.max(due, from));
      pen.fillStyle = ink(`s${core % 8}`);
      pen.fillRect(x(from), top, Math.max(x(onTime) - x(from), from < onTime ? 0.7 : 0), this.pitch - 10);
      pen.fillStyle = ink("bad");
      pen.fillRect(x(onTime), top, x(to) - x(onTime), this.pitch - 10);
      if (this.shared.stretch.cores > 1 && x(to) - x(from) > 18) {
        pen.fillStyle = ink("paper");
        pen.textAlign = "center";
        pen.fillText(core, (x(from) + x(to)) / 2, top + (this.pitch - 10) / 2);
      }
    }
  }
}
Gantt.TOP = 24;
