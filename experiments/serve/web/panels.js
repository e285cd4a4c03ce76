// Comparison, search and synthesis.
import {call, Refused, stream} from '/api.js';
import {commandLine, searchRequest, simulateRequest, state, synthesizeRequest} from '/state.js';
import {drawn, element, number, table} from '/views.js';

const place = (panel) => document.querySelector(`#${panel} .results`);
const note = (text) => element('p', {class: 'note'}, text);

function button(text, act) {
  const b = element('button', {type: 'button'}, text);
  b.addEventListener('click', act);
  return b;
}

// Each by itself, so that one that is refused leaves the others.
export async function compare(signal, choose) {
  const words = [...new Set(state.cmp.split(/\s+/).filter(Boolean))].slice(0, 12);
  const rows = await Promise.all(words.map(async (word) => {
    const request = simulateRequest([], word);
    const own = Object.keys(request.files).some((name) => word.startsWith(name));
    if (!own) request.files = {};
    try {
      const answer = await call('simulate', request, signal);
      return {word, ...answer.json, fits: !answer.does_not_fit};
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return {word, error: error.message};
    }
  }));
  // Times by hand are those of a stage, so more stages are another model: there the bubble counts.
  const byBubble = state.mode === 'times';
  const cost = (r) => byBubble ? r.bubble : -r.tflops_per_device;
  const least = Math.min(...rows.filter((r) => r.fits).map(cost));
  for (const row of rows) row.best = row.fits && cost(row) === least;
  const unit = rows.find((r) => r.unit)?.unit;
  const memory = (r) => {
    const peaks = r.devices.map((d) => d.peak_memory?.all ?? NaN);
    return Number.isNaN(peaks[0]) ? '-' : (Math.max(...peaks) / 2 ** 30).toFixed(3);
  };
  const columns = [
    {title: 'Configuration', of: (r) => r.word},
    {title: `Makespan${unit ? ` [${unit}]` : ''}`, right: true, of: (r) => number(r.makespan)},
    {title: 'Bubble [%]', right: true, of: (r) => (100 * r.bubble).toFixed(2)},
    {title: 'In flight', right: true, of: (r) => String(Math.max(...r.devices.map((d) => d.peak_in_flight)))},
    ...(byBubble ? [] : [{title: 'Tflop/s a device', right: true, of: (r) => r.tflops_per_device.toFixed(2)}]),
    {title: 'Memory [GiB]', right: true, of: memory},
    {title: 'Fits', of: (r) => r.fits ? 'yes' : 'no'},
    {title: '', of: (r) => button('show', () => choose(r.word))},
  ];
  place('compare').replaceChildren(
      table(`What fits and has the ${byBubble ? 'least bubble' : 'most Tflop/s a device'} is bold`, columns, rows));
}

export async function search(signal, choose) {
  const request = searchRequest();
  place('search').replaceChildren(note('Searching ...'));
  try {
    const {json, text} = await call('search', request, signal);
    const columns = [
      {title: 'Configuration', of: (r) => r.config},
      {title: 'Step [ms]', right: true, of: (r) => number(r.step_ms)},
      {title: 'Samples/s', right: true, of: (r) => r.samples_per_second.toFixed(3)},
      {title: 'Tflop/s a device', right: true, of: (r) => r.tflops_per_device.toFixed(2)},
      {title: 'Memory [GiB]', right: true, of: (r) => (r.memory_bytes / 2 ** 30).toFixed(2)},
      {title: '', of: (r) => button('show', () => choose(r.config))},
    ];
    place('search').replaceChildren(
        json.note ? note(json.note) : '',
        table(json.stopped ? 'The best that were found in the time there is' : 'The fastest, in order', columns, json.best),
        element('details', {}, element('summary', {}, 'As the command line has it'),
                element('pre', {}, `${commandLine('search', request)}\n\n${text ?? ''}`)));
  } catch (error) {
    if (error.name !== 'AbortError') place('search').replaceChildren(element('p', {role: 'alert', class: 'note'}, error.message));
  }
}

// The gap between the best order and the bound, over the time.
function gapChart(news, seconds) {
  const width = 1000, height = 140, left = 60, end = Math.max(seconds, ...news.map((n) => n.seconds), 0.1);
  const most = Math.max(1e-9, ...news.map((n) => n.gap)) * 1.1;
  const x = (t) => (left + width * t / end).toFixed(1), y = (gap) => (10 + height * (1 - gap / most)).toFixed(1);
  const svg = drawn('svg', {class: 'pl-svg', role: 'img', viewBox: `0 0 1080 ${height + 50}`});
  const last = news[news.length - 1];
  svg.append(drawn('title', {}, last ? `The gap to the bound: ${(100 * last.gap).toFixed(2)} % after ${last.seconds.toFixed(1)} s` : 'No order yet'));
  for (const share of [0, 0.5, 1]) {
    svg.append(drawn('line', {x1: left, x2: left + width, y1: y(most * share), y2: y(most * share), class: 'pl-g'}),
               drawn('text', {x: left - 6, y: Number(y(most * share)) + 4, class: 'pl-m', 'text-anchor': 'end'}, `${(100 * most * share).toFixed(1)} %`));
  }
  let path = '';
  for (const n of news) path += path ? `H${x(n.seconds)}V${y(n.gap)}` : `M${x(n.seconds)} ${y(n.gap)}`;
  if (path) svg.append(drawn('path', {d: `${path}H${x(end)}`, class: 'pl-c2', 'stroke-width': 2}));
  svg.append(drawn('text', {x: left, y: height + 34, class: 'pl-t'}, `gap to the lower bound over ${end.toFixed(1)} s`));
  document.querySelector('#synthesize .gap').replaceChildren(svg);
}

let current = null;  // the id of what runs

export async function stop() {
  if (current) await call('stop', {id: current}).catch(() => 0);
}

export async function synthesize(signal, use) {
  const id = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0')).join('');
  const request = synthesizeRequest(id), news = [], begin = performance.now();
  const stopButton = document.querySelector('#stop'), result = place('synthesize');
  const passed = () => (performance.now() - begin) / 1000;
  result.replaceChildren(note('Synthesizing ...'));
  gapChart(news, 0);
  current = id;
  stopButton.disabled = false;
  const timer = setInterval(() => gapChart(news, passed()), 250);
  try {
    const {json, schedule, text} = await stream('synthesize', request, (n) => {
      if (news.length && n.passes_ns >= news[news.length - 1].passes_ns) return;
      news.push(n);
      gapChart(news, passed());
    }, signal);
    clearInterval(timer);
    news.push({seconds: passed(), gap: json.gap});
    gapChart(news, passed());
    const unit = json.unit ? ` ${json.unit}` : '';
    const beside = json.catalogue_scheme ? `; best of the catalogue ${number(json.catalogue_step)}${unit} (${json.catalogue_scheme})` : '';
    result.replaceChildren(
        element('p', {role: 'status'}, `Passes take ${number(json.passes)}${unit}, no order less than ${number(json.lower_bound)}${unit}: ` +
            `gap ${(100 * json.gap).toFixed(2)} %${json.optimal ? ', proven best' : ''}${json.stopped ? ', stopped' : ''}. ` +
            `Simulated step ${number(json.step)}${unit}${beside}.`),
        button('Show this schedule', () => use(schedule)),
        element('details', {}, element('summary', {}, 'As the command line has it'),
                element('pre', {}, `${commandLine('synthesize', request)}\n\n${text}`)));
  } catch (error) {
    if (error.name !== 'AbortError') result.replaceChildren(element('p', {role: 'alert', class: 'note'}, error.message));
  } finally {
    clearInterval(timer);
    if (current === id) current = null;
    stopButton.disabled = current === null;
  }
}
