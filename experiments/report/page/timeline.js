// The drawing of a step in a page: report.html and the page of `pipelab serve`.
'use strict';

// A step's drawing that is zoomed, moved along, and asked what is where. The data beside it are
// described in timeline_page.h; times here are its ticks.
class Timeline {
  constructor(figure) {
    this.svg = figure.querySelector('svg');
    this.plot = figure.querySelector('.pl-plot');
    this.source = figure.querySelector('script');
    this.drawing = figure.querySelector('.drawing');
    this.picked = null;  // {device, at}
    this.addTools(figure);
    this.listen();
  }

  // Read when they are first needed: a page may have many.
  get data() {
    if (!this.read) this.load(JSON.parse(this.source.textContent));
    return this.read;
  }

  load(data) {
    this.read = data;
    this.rows = data.devices.map((list) => {
      const boxes = [];
      for (let i = 0, end = 0; i < list.length; i += 4) {
        const begin = end + list[i + 2];
        end = begin + list[i + 3];
        boxes.push({kind: data.kinds[list[i]], microBatch: list[i + 1], begin, end});
      }
      return boxes;
    });
    this.from = 0;
    this.to = data.end;
  }

  addTools(figure) {
    const name = this.svg.querySelector('title').textContent;
    const tools = document.createElement('div');
    tools.className = 'tools';
    tools.setAttribute('role', 'group');
    tools.setAttribute('aria-label', `Timeline of ${name}`);
    const button = (text, act) => {
      const b = document.createElement('button');
      b.type = 'button';
      b.textContent = text;
      b.addEventListener('click', act);
      tools.append(b);
    };
    button('Zoom in', () => this.zoom(0.5));
    button('Zoom out', () => this.zoom(2));
    button('Earlier', () => this.move(-0.25));
    button('Later', () => this.move(0.25));
    button('Whole step', () => this.show(0, this.data.end));
    this.output = document.createElement('output');
    this.output.textContent = 'Point at a box, or use the arrow keys in the drawing; + and - zoom, drag moves.';
    tools.append(this.output);
    figure.prepend(tools);
    this.drawing.tabIndex = 0;
    this.drawing.setAttribute('role', 'application');
    this.drawing.setAttribute('aria-roledescription', 'timeline');
    this.drawing.setAttribute('aria-label', `${name}. Arrow keys go from action to action and from ` +
        'device to device, plus and minus zoom, Escape shows the whole step.');
  }

  listen() {
    const d = this.drawing;
    d.addEventListener('pointermove', (e) => {
      if (!this.grabbed) this.pickAt(e);
    });
    d.addEventListener('pointerdown', (e) => {
      if (e.button === 0) this.grabbed = {x: e.clientX, from: (this.data, this.from), to: this.to};
    });
    addEventListener('pointermove', (e) => {
      if (!this.grabbed || e.clientX === this.grabbed.x) return;
      const {x, from, to} = this.grabbed;
      const ticks = (e.clientX - x) / this.pixels() / this.data.width * (to - from);
      this.show(from - ticks, to - ticks);
    });
    addEventListener('pointerup', () => this.grabbed = null);
    addEventListener('pointercancel', () => this.grabbed = null);
    d.addEventListener('dblclick', (e) => this.zoom(0.5, this.place(e).time));
    d.addEventListener('wheel', (e) => {
      if (!e.ctrlKey && !e.metaKey) return;  // the page scrolls
      e.preventDefault();
      this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.place(e).time);
    }, {passive: false});
    d.addEventListener('keydown', (e) => {
      const act = {
        'ArrowRight': () => this.step(0, 1), 'ArrowLeft': () => this.step(0, -1),
        'ArrowDown': () => this.step(1, 0), 'ArrowUp': () => this.step(-1, 0),
        'Home': () => this.step(0, -Infinity), 'End': () => this.step(0, Infinity),
        '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
        'Escape': () => this.show(0, this.data.end), '0': () => this.show(0, this.data.end),
      }[e.key];
      if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      act();
    });
  }

  // Of the screen, for one of the drawing.
  pixels() { return this.svg.getBoundingClientRect().width / this.svg.viewBox.baseVal.width; }
  x(time) { return this.data.left + (time - this.from) / (this.to - this.from) * this.data.width; }
  y(device) { return this.data.top + device * (this.data.row + this.data.gap); }

  place(event) {
    const box = this.svg.getBoundingClientRect(), d = this.data;
    const x = (event.clientX - box.left) / this.pixels() - d.left;
    const y = (event.clientY - box.top) / this.pixels() - d.top;
    const device = Math.floor(y / (d.row + d.gap));
    const inRow = device >= 0 && device < this.rows.length && y - device * (d.row + d.gap) <= d.row;
    return {time: this.from + x / d.width * (this.to - this.from),
            device: inRow && x >= 0 && x <= d.width ? device : -1};
  }

  // The last box of a device that begins by then; -1: none does.
  lastBy(device, time) {
    const row = this.rows[device];
    let low = -1, high = row.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (row[middle].begin <= time) low = middle; else high = middle - 1;
    }
    return low;
  }

  pickAt(event) {
    const {time, device} = this.place(event);
    if (device < 0) return;
    const at = this.lastBy(device, time);
    if (at >= 0 && time <= this.rows[device][at].end) this.pick(device, at);
    else this.output.textContent = `device ${device}: idle at ${this.time(time)} ${this.data.unit}`;
  }

  step(devices, boxes) {
    const last = this.data.devices.length - 1;
    if (!this.picked) {
      const first = this.rows.findIndex((row) => row.length > 0);
      return first < 0 ? undefined : this.pick(first, Math.max(0, this.lastBy(first, this.from)), true);
    }
    let {device, at} = this.picked;
    const middle = (this.rows[device][at].begin + this.rows[device][at].end) / 2;
    if (devices) {
      device = Math.min(last, Math.max(0, device + devices));
      if (this.rows[device].length === 0) return;
      if (device !== this.picked.device) at = Math.max(0, this.lastBy(device, middle));
    }
    at = Math.min(this.rows[device].length - 1, Math.max(0, at + boxes));
    this.pick(device, at, true);
  }

  pick(device, at, follow) {
    this.picked = {device, at};
    const box = this.rows[device][at], half = (this.to - this.from) / 2;
    if (follow && (box.begin < this.from || box.end > this.to)) {
      const middle = (box.begin + box.end) / 2;
      this.show(middle - half, middle + half);
    }
    this.output.textContent = this.describe(device, box);
    this.outline();
  }

  time(ticks) { return (ticks / this.data.ticks).toFixed(this.data.ticks > 1 ? 3 : 0); }

  number(box) {
    const {slices} = this.data;
    return slices > 1 ? `${Math.floor(box.microBatch / slices)}.${box.microBatch % slices}` : `${box.microBatch}`;
  }

  describe(device, box) {
    const [name, stage, replica, version] = box.kind;
    return `device ${device}: ${name}` + (box.microBatch >= 0 ? ` of micro-batch ${this.number(box)}` : '') +
        (stage >= 0 ? `, stage ${stage}` : '') + (replica >= 0 ? `, replica ${replica}` : '') +
        (version > 0 ? `, version ${version}` : '') +
        `: ${this.time(box.begin)} to ${this.time(box.end)} ${this.data.unit}` +
        ` (${this.time(box.end - box.begin)})`;
  }

  zoom(factor, around) {
    const d = this.data;
    const picked = this.picked && this.rows[this.picked.device][this.picked.at];
    const seen = picked && picked.end >= this.from && picked.begin <= this.to;
    const time = around ?? (seen ? (picked.begin + picked.end) / 2 : (this.from + this.to) / 2);
    const span = Math.min(d.end, Math.max(Math.min(10, d.end), (this.to - this.from) * factor));
    const share = (time - this.from) / (this.to - this.from);
    this.show(time - span * share, time + span * (1 - share));
  }

  move(share) {
    const ticks = share * (this.data, this.to - this.from);
    this.show(this.from + ticks, this.to + ticks);
  }

  show(from, to) {
    const span = Math.min(this.data.end, to - from);
    this.from = Math.max(0, Math.min(from, this.data.end - span));
    this.to = this.from + span;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  // Everything in the plot, anew; what one pixel cannot tell apart is drawn once.
  draw() {
    const d = this.data, old = this.plot;
    this.plot = old.cloneNode(false);
    this.axis();
    const numbers = [];
    this.rows.forEach((row, device) => {
      const paths = new Map(), first = Math.max(0, this.lastBy(device, this.from));
      if (this.drawDense?.(device, first)) return;
      for (let i = first; i < row.length && row[i].begin < this.to; ++i) {
        const box = row[i], [, , , , fill, css, ink, inset, shape] = box.kind;
        const x = this.x(Math.max(box.begin, this.from)), right = this.x(Math.min(box.end, this.to));
        if (right <= x) continue;
        const border = ink && right - x >= 4;
        const key = `${fill}|${ink && !border ? '' : css}`;
        if (!paths.has(key)) paths.set(key, {fill, css: ink && !border ? '' : css, border, right: 0, parts: []});
        const path = paths.get(key);
        if (right - path.right < 0.3) continue;
        path.right = right;
        const from = x.toFixed(2), width = (right - x).toFixed(2), y = this.y(device) + inset;
        path.parts.push(shape === 'line' ? `M${from} ${y + d.row / 2}h${width}`
            : `M${from} ${y}h${width}v${d.row - 2 * inset}h-${width}z`);
        if (ink && right - x > 8 && d.row >= 12) numbers.push([box, ink, (x + right) / 2, right - x, device]);
      }
      for (const p of paths.values()) {
        this.add('path', {d: p.parts.join(''), class: p.css, ...(p.fill && {fill: p.fill}),
                          ...(p.border && {'stroke-width': 0.7})});
      }
    });
    for (const [box, fill, x, width, device] of numbers) {
      const text = this.number(box), size = text.length * 6.2 + 1 <= width ? 10 : 8;
      if (text.length * 0.62 * size + 1 > width) continue;
      this.add('text', {x, y: this.y(device) + d.row / 2 + 3.5, fill, 'font-size': size,
                        'text-anchor': 'middle', 'pointer-events': 'none'}, text);
    }
    this.drawMessages();
    old.replaceWith(this.plot);
    this.outline();
  }

  axis() {
    const d = this.data, bottom = this.y(d.devices.length) - d.gap;
    const rough = (this.to - this.from) / d.ticks / 10, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((s) => rough <= s * power) ?? 10);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let i = Math.ceil(this.from / d.ticks / step - 1e-9); i * step * d.ticks <= this.to * (1 + 1e-12); ++i) {
      const x = this.x(i * step * d.ticks).toFixed(2);
      this.add('line', {x1: x, x2: x, y1: d.top - 4, y2: bottom + 5, class: 'pl-g'});
      this.add('text', {x, y: bottom + 18, class: 'pl-m', 'text-anchor': 'middle'}, (i * step).toFixed(digits));
    }
  }

  drawMessages() {
    const d = this.data, paths = ['', ''];
    for (let i = 0; i < d.messages.length; i += 5) {
      const [from, to, begin, end, gradient] = d.messages.slice(i, i + 5);
      if (end < this.from || begin > this.to) continue;
      const down = to > from;
      const y1 = this.y(from) + (down ? d.row : 0), y2 = this.y(to) + (down ? 0 : d.row);
      // The part of the line within the plot.
      const y = (time) => end > begin ? y1 + (y2 - y1) * (time - begin) / (end - begin) : time <= begin ? y1 : y2;
      const a = Math.max(begin, this.from), b = Math.min(end, this.to);
      paths[gradient] += `M${this.x(a).toFixed(2)} ${y(a).toFixed(2)}L${this.x(b).toFixed(2)} ${
          (end > begin ? y(b) : y2).toFixed(2)}`;
    }
    paths.forEach((path, gradient) => {
      if (path) this.add('path', {d: path, class: 'pl-s', 'stroke-width': 0.9, 'stroke-opacity': 0.6,
                                  ...(gradient && {'stroke-dasharray': '3 2'})});
    });
  }

  // Around what is picked.
  outline() {
    this.svg.querySelector('.pick')?.remove();
    if (!this.picked) return;
    const box = this.rows[this.picked.device][this.picked.at];
    const x = this.x(Math.max(box.begin, this.from)), right = this.x(Math.min(box.end, this.to));
    if (right < x) return;
    this.add('rect', {class: 'pick', x: x.toFixed(2), y: this.y(this.picked.device) - 1.5,
                      width: Math.max(1, right - x).toFixed(2), height: this.data.row + 3});
  }

  add(name, attributes, text) {
    const e = document.createElementNS(this.svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    if (text !== undefined) e.textContent = text;
    this.plot.append(e);
  }
}
