// What an answer looks like: figures, timeline, memory, bubble, and the table beside them.
import {Timeline} from '/timeline.js';

const SVG = 'http://www.w3.org/2000/svg';

export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

export function drawn(name, attributes = {}, text) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
}

// As the command line prints numbers: %.12g.
export const number = (value) => String(Number(value.toPrecision(12)));
const percent = (share) => `${(100 * share).toFixed(2)} %`;
const bytes = (count) => {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = count > 0 ? Math.min(4, Math.floor(Math.log2(count) / 10)) : 0;
  return `${Number((count / 1024 ** power).toPrecision(4))} ${units[power]}`;
};

// {title, right, of: row => text or element}; a row may be marked best.
export function table(caption, columns, rows) {
  const head = element('tr', {}, ...columns.map((c) => element('th', {scope: 'col', class: c.right ? 'num' : ''}, c.title)));
  const body = rows.map((row) => {
    const cells = columns.map((c, i) => {
      const wrong = i > 0 && row.error !== undefined;
      if (wrong && i > 1) return null;
      return element(i === 0 ? 'th' : 'td', {
        ...(i === 0 && {scope: 'row'}), class: wrong ? 'wrong' : c.right ? 'num' : '',
        ...(wrong && {colspan: columns.length - 1}),
      }, wrong ? row.error : c.of(row));
    });
    return element('tr', {class: row.best ? 'best' : ''}, ...cells.filter(Boolean));
  });
  return element('table', {}, element('caption', {}, caption), element('thead', {}, head), element('tbody', {}, ...body));
}

export function showFigures(json, doesNotFit) {
  const unit = json.unit ? ` ${json.unit}` : '';
  const figures = [['Makespan', `${number(json.makespan)}${unit}`], ['Bubble', percent(json.bubble)]];
  const peaks = json.devices.map((d) => d.peak_memory?.all).filter((b) => b !== undefined);
  if (peaks.length) figures.push(['Memory of the fullest device', bytes(Math.max(...peaks))]);
  if (json.tflops_per_device) figures.push(['Tflop/s a device', json.tflops_per_device.toFixed(2)]);
  if (json.samples_per_second) figures.push(['Samples a second', json.samples_per_second.toFixed(2)]);
  figures.push(['Fits', doesNotFit ? 'no' : 'yes']);
  if (json.fits === undefined) figures.pop();
  document.querySelector('#figures').replaceChildren(
      ...figures.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
}

export function showDevices(json) {
  const unit = json.unit ? ` [${json.unit}]` : '';
  const columns = [
    {title: 'Device', of: (d) => String(d.index)},
    {title: `Busy${unit}`, right: true, of: (d) => number(d.busy)},
    {title: `Idle${unit}`, right: true, of: (d) => number(d.idle)},
    {title: 'Idle [%]', right: true, of: (d) => percent(d.idle / json.makespan)},
    {title: 'In flight', right: true, of: (d) => String(d.peak_in_flight)},
  ];
  const rows = json.devices.map((d, index) => ({...d, index}));
  if (rows[0]?.peak_memory) {
    for (const [key, title] of [['weights', 'Weights'], ['gradients', 'Gradients'], ['optimizer_state', 'Optimizer'],
                                ['kept', 'Activations'], ['messages', 'Messages'], ['action', 'Workspace'], ['all', 'All']]) {
      columns.push({title, right: true, of: (d) => bytes(d.peak_memory[key] ?? 0)});
    }
  }
  document.querySelector('#devices').replaceChildren(table('Times, and memory at its fullest', columns, rows));
}

// "#0072b2" as four bytes of a picture, red first.
const colour32 = (hex) => new Uint32Array(new Uint8Array(
    [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).concat(255)).buffer)[0];

// The reports' timeline, given new data again and again.
class LiveTimeline extends Timeline {
  constructor(figure, svg) {
    figure.querySelector('.drawing').append(svg);
    super(figure);
    this.figure = figure;
  }

  addTools(figure) {
    super.addTools(figure);
    this.tools = figure.querySelector('.tools');
  }

  // Rows as high as the screen allows.
  redraw(data, title) {
    const devices = data.devices.length, height = Math.max(240, Math.min(900, innerHeight * 0.65));
    data.row = Math.max(3, Math.min(26, Math.floor(height / devices * 0.75)));
    data.gap = devices > 64 ? 1 : Math.max(1, Math.min(10, Math.floor(data.row * 0.4)));
    data.top = 12;
    const kept = this.read && this.to - this.from < this.read.end ? [this.from / this.read.end, this.to / this.read.end] : null;
    this.load(data);
    if (kept) [this.from, this.to] = kept.map((share) => share * data.end);
    this.picked = null;
    const width = data.left + data.width + 20, bottom = data.top + devices * (data.row + data.gap);
    this.svg.setAttribute('viewBox', `0 0 ${width} ${bottom + 42}`);
    const every = Math.ceil(14 / (data.row + data.gap)), frame = drawn('g', {class: 'frame'});
    for (let d = 0; d < devices; ++d) {
      const y = this.y(d);
      frame.append(drawn('rect', {x: data.left, y, width: data.width, height: data.row, class: 'pl-i'}));
      if (d % every === 0) {
        frame.append(drawn('text', {x: data.left - 8, y: y + data.row / 2 + 4, class: 'pl-t', 'text-anchor': 'end'}, `device ${d}`));
      }
    }
    frame.append(drawn('text', {x: data.left, y: bottom + 34, class: 'pl-t'}, `time [${data.unit}]`));
    this.svg.querySelector('.frame')?.remove();
    this.svg.querySelector('title').textContent = title;
    this.plot.before(frame);
    this.drawing.setAttribute('aria-label', `${title}. Arrow keys go from action to action and from device to ` +
        'device, plus and minus zoom, Escape shows the whole step. The table below has each device.');
    this.tools.setAttribute('aria-label', `Timeline of ${title}`);
    this.draw();
    this.legend();
  }

  draw() {
    this.pixels32 = null;
    super.draw();
    if (!this.pixels32) return;
    const {left, top, width} = this.data, height = this.image.height;
    const canvas = element('canvas', {width, height});
    canvas.getContext('2d').putImageData(this.image, 0, 0);
    this.plot.prepend(drawn('image', {x: left, y: top, width, height, preserveAspectRatio: 'none',
                                      href: canvas.toDataURL(), style: 'image-rendering: pixelated'}));
  }

  // A row with more boxes than pixels: each pixel shows what runs at its middle.
  drawDense(device, first) {
    const d = this.data, row = this.rows[device], height = d.row + d.gap;
    if (this.lastBy(device, this.to) - first <= d.width / 2) return false;
    if (!this.pixels32) {
      this.image = new ImageData(d.width, d.devices.length * height);
      this.pixels32 = new Uint32Array(this.image.data.buffer);
      this.colours = new Map(d.kinds.map((kind) => [kind, kind[8] === 'line' ? 0 : colour32(kind[4] || '#777777')]));
    }
    const ticks = (this.to - this.from) / d.width, at = device * height * d.width;
    for (let x = 0, i = first; x < d.width; ++x) {
      const time = this.from + (x + 0.5) * ticks;
      while (i + 1 < row.length && row[i + 1].begin <= time) ++i;
      if (row[i].begin <= time && time <= row[i].end) this.pixels32[at + x] = this.colours.get(row[i].kind);
    }
    for (let line = 1; line < d.row; ++line) {
      this.pixels32.copyWithin(at + line * d.width, at, at + d.width);
    }
    return true;
  }

  legend() {
    const seen = new Map();
    for (const [name, , , , fill, css, , , shape] of this.read.kinds) {
      if (shape === 'box' && !seen.has(name)) seen.set(name, {fill, css});
    }
    const parts = [...seen].map(([name, {fill, css}]) => {
      const svg = drawn('svg', {viewBox: '0 0 16 12', 'aria-hidden': 'true'});
      svg.append(drawn('rect', {width: 16, height: 12, class: css, ...(fill && {fill})}));
      return element('span', {}, svg, name);
    });
    document.querySelector('#legend').replaceChildren(...parts, 'Shades are stages of a device, numbers micro-batches.');
  }
}

let live = null;
export function showTimeline({timeline, timeline_note: note}, title) {
  document.querySelector('#timeline figure').hidden = !timeline;
  if (!timeline) return document.querySelector('#legend').replaceChildren(`${note}; the table has each device.`);
  if (!live) {
    const svg = drawn('svg', {class: 'pl-svg', role: 'img', viewBox: '0 0 1100 200'});
    svg.append(drawn('title', {}, title), drawn('g', {class: 'pl-plot'}));
    live = new LiveTimeline(document.querySelector('#timeline figure'), svg);
  }
  live.redraw(timeline, title);
}

export function showMemory(answer) {
  const place = document.querySelector('#memory .memory');
  if (!answer.memory) {
    const why = answer.memory_note ?? 'Give activations or weights, or a model on a machine, to see memory in bytes.';
    return place.replaceChildren(element('p', {class: 'note'}, `${why} The table has each device's peak.`));
  }
  place.replaceChildren(new DOMParser().parseFromString(answer.memory, 'image/svg+xml').documentElement);
}

// Each device's time: computing, and idle.
export function showBubble(json) {
  const rows = json.devices.length, row = rows > 40 ? 6 : 18, gap = rows > 40 ? 1 : 6, left = 78, width = 1000;
  const every = Math.ceil(14 / (row + gap)), bottom = 10 + rows * (row + gap);
  const svg = drawn('svg', {class: 'pl-svg', role: 'img', viewBox: `0 0 1180 ${bottom + 26}`});
  svg.append(drawn('title', {}, `Idle time of each device: ${percent(json.bubble)} of the devices' time is bubble`));
  json.devices.forEach((d, i) => {
    const y = 10 + i * (row + gap), busy = width * d.busy / json.makespan;
    svg.append(drawn('rect', {x: left, y, width, height: row, class: 'pl-i'}),
               drawn('rect', {x: left, y, width: busy.toFixed(2), height: row, fill: '#0072b2'}));
    if (i % every) return;
    svg.append(drawn('text', {x: left - 8, y: y + row / 2 + 4, class: 'pl-t', 'text-anchor': 'end'}, `device ${i}`),
               drawn('text', {x: left + width + 8, y: y + row / 2 + 4, class: 'pl-t'}, `${percent(d.idle / json.makespan)} idle`));
  });
  svg.append(drawn('text', {x: left, y: bottom + 16, class: 'pl-m'}, 'blue: computing; grey: idle'));
  document.querySelector('#bubble .bars').replaceChildren(svg);
}
