// The page: what is chosen goes into the address and to the server, what is answered is shown.
import {call, download, Refused} from '/api.js';
import {compare, search, stop, synthesize} from '/panels.js';
import {commandLine, readAddress, scheduleRequest, simulateRequest, state, writeAddress} from '/state.js';
import {element, showBubble, showDevices, showFigures, showMemory, showTimeline} from '/views.js';

const VIEWS = [['timeline', 'Timeline'], ['memory', 'Memory'], ['bubble', 'Bubble'], ['compare', 'Compare'],
               ['search', 'Search'], ['synthesize', 'Synthesize']];
const $ = (selector) => document.querySelector(selector);
const $$ = (selector) => [...document.querySelectorAll(selector)];
let schemes = [], answer = null, waiting = null, compared = '';
const running = {};  // panel: AbortController

// For whoever measures: from a change to its drawing.
window.pipelab = {state, answers: 0, lastMs: 0, answer: () => answer};

function begin(panel) {
  running[panel]?.abort();
  running[panel] = new AbortController();
  return running[panel].signal;
}

function fillForm() {
  for (const field of $$('[name]')) {
    if (field.type === 'radio') field.checked = state[field.name] === field.value;
    else field.value = state[field.name];
  }
  for (const range of $$('[data-of]')) range.value = state[range.dataset.of].split(',')[0];
  for (const part of $$('[data-mode]')) part.hidden = part.dataset.mode !== state.mode;
  $('#scheme-note').textContent = state.own ? `Shown: ${state.name}, a schedule of your own`
      : schemes.find((s) => s.name === state.scheme)?.summary ?? '';
  for (const name of ['scheme', 'P', 'M', 'V']) {
    for (const field of $$(`#step [name=${name}], #step [data-of=${name}]`)) field.disabled = state.own !== '';
  }
  if (document.activeElement !== $('#own-text')) $('#own-text').value = state.own;
}

function showView() {
  for (const [id] of VIEWS) {
    const chosen = id === state.view, tab = $(`#tab-${id}`);
    $(`#${id}`).hidden = !chosen;
    tab.setAttribute('aria-selected', chosen);
    tab.tabIndex = chosen ? 0 : -1;
  }
}

function addTabs() {
  $('.tablist').append(...VIEWS.map(([id, text]) => {
    const tab = element('button', {type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': id}, text);
    tab.addEventListener('click', () => change({view: id}));
    return tab;
  }));
  $('.tablist').addEventListener('keydown', (e) => {
    const at = VIEWS.findIndex(([id]) => id === state.view), last = VIEWS.length - 1;
    const to = {ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last}[e.key];
    if (to === undefined) return;
    e.preventDefault();
    change({view: VIEWS[to][0]});
    $(`#tab-${state.view}`).focus();
  });
}

// Draws what there is for this view; false: it needs an answer.
function draw() {
  if (!answer) return false;
  const {json} = answer;
  if (state.view === 'timeline') {
    if (!answer.asked.includes('timeline')) return false;
    showTimeline(answer, `${answer.title}: ${$('#figures').textContent ? `makespan ${json.makespan}` : ''}`);
  }
  if (state.view === 'memory') {
    if (!answer.asked.includes('memory')) return false;
    showMemory(answer);
  }
  if (state.view === 'bubble') showBubble(json);
  return true;
}

async function refresh(since) {
  const signal = begin('step');
  const drawings = state.view === 'timeline' ? ['timeline'] : state.view === 'memory' ? ['memory'] : [];
  const request = simulateRequest(drawings);
  $('#command').textContent = commandLine('simulate', request);
  $('#figures').classList.add('stale');
  try {
    const got = await call('simulate', request, signal);
    if (signal.aborted) return;
    answer = {...got, asked: drawings, title: request.words[0]};
    $('#error').textContent = got.does_not_fit ?? '';
    showFigures(got.json, got.does_not_fit);
    showDevices(got.json);
    draw();
    const ms = performance.now() - since;
    window.pipelab.lastMs = ms;
    $('#took').textContent = `answered in ${ms.toFixed(0)} ms`;
    $('#status').textContent = `${request.words[0]}: ${$('#figures').textContent}`;
    $('#figures').classList.remove('stale');
  } catch (error) {
    if (error.name === 'AbortError') return;
    if (!(error instanceof Refused)) throw error;
    $('#error').textContent = error.message;
  }
  window.pipelab.answers += 1;
}

function change(values, since = performance.now()) {
  const before = {...state};
  Object.assign(state, values);
  writeAddress();
  fillForm();
  showView();
  // A search's and a synthesis' fields wait for their buttons.
  const own = ['view', 'cmp', 'sdev', 'batch', 'top', 'schemes', 'maxt', 'fixed', 'mem', 'limit', 'free'];
  const step = Object.keys(state).some((key) => state[key] !== before[key] && !own.includes(key));
  const wanted = JSON.stringify({...state, view: ''});
  if (state.view === 'compare' && compared !== wanted) {
    compared = wanted;
    compare(begin('compare'), choose).catch((error) => { if (error.name !== 'AbortError') throw error; });
  }
  if (!step && answer && draw()) return;
  if (waiting) return;
  waiting = requestAnimationFrame(() => {
    waiting = null;
    refresh(since);
  });
}

// "zbv:P=8,T=2,M=16,sharding=optimizer": each key into its field.
function choose(word) {
  const [scheme, keys = ''] = word.split(':');
  if (!keys) return change(scheme === state.name ? {view: 'timeline'} : {scheme, own: '', view: 'timeline'});
  const values = {scheme, V: '0', T: '1', D: '1', b: '1', view: 'timeline'}, rest = [];
  for (const part of keys.split(',')) {
    const [key, value] = part.split('=');
    if (['P', 'M', 'V', 'T', 'D', 'b'].includes(key)) values[key] = value;
    else rest.push(part);
  }
  values.keys = rest.join(',');
  if (scheme !== state.name) values.own = '';
  if (state.view === 'search') values.mode = 'model';
  change(values);
}

function use(text, name) {
  if (!text.trim()) return;
  change({own: text, name, view: 'timeline'});
}

async function exportAs(what) {
  try {
    const name = state.own ? state.name.replace(/\.\w+$/, '') : state.scheme.replace(/\W+/g, '_');
    if (what === 'link') return await navigator.clipboard.writeText(location.href);
    if (what === 'json') return download(`${name}.json`, `${JSON.stringify(answer.json, null, 2)}\n`, 'application/json');
    if (what === 'csv' || what === 'text') {
      const {text} = await call('schedule', scheduleRequest(what));
      return download(`${name}.${what === 'csv' ? 'csv' : 'txt'}`, text, 'text/plain');
    }
    const drawing = what === 'svg' && state.view === 'memory' ? 'memory' : what;
    const shown = await call('show', simulateRequest([drawing]));
    if (what === 'trace') return download(`${name}_trace.json`, JSON.stringify(shown.trace), 'application/json');
    download(`${name}.svg`, shown[drawing], 'image/svg+xml');
  } catch (error) {
    $('#error').textContent = error.message;
  }
}

function listen() {
  document.addEventListener('input', (e) => {
    const {name, value, dataset} = e.target, since = performance.now();
    if (dataset.of) return change({[dataset.of]: value}, since);
    if (!(name in state) || name === 'name' || value === '' && e.target.type === 'number') return;
    change({[name]: value}, since);
  });
  for (const form of $$('form')) form.addEventListener('submit', (e) => e.preventDefault());
  $('#search-form').addEventListener('submit', () => search(begin('search'), choose));
  $('#synthesize-form').addEventListener('submit', () => synthesize(begin('synthesize'), (text) => use(text, 'synthesized.txt')));
  $('#stop').addEventListener('click', stop);
  $('#own-use').addEventListener('click', () => {
    const text = $('#own-text').value;
    use(text, text.trim().startsWith('{') ? 'own.json' : /^\s*\d+[A-Z]/.test(text) ? 'own.csv' : 'own.txt');
  });
  $('#own-drop').addEventListener('click', () => change({own: ''}));
  $('#own-file').addEventListener('change', async (e) => {
    const [file] = e.target.files;
    if (file.size > 1 << 20) return $('#error').textContent = `${file.name}: has ${file.size} bytes; at most 1048576`;
    use(await file.text(), `own.${file.name.split('.').pop()}`);
  });
  for (const b of $$('[data-export]')) b.addEventListener('click', () => exportAs(b.dataset.export));
  $('[data-skip]').addEventListener('click', (e) => {
    e.preventDefault();  // the address is the state's
    $('#content').focus();
  });
  addEventListener('hashchange', () => {
    readAddress();
    answer = null;
    change({});
  });
}

async function start() {
  readAddress();
  addTabs();
  listen();
  const lists = await Promise.all(['schemes', 'models', 'clusters'].map((what) => call('list', {words: [what]})));
  schemes = lists[0].json.schemes;
  [['scheme', schemes], ['model', lists[1].json.models], ['cluster', lists[2].json.clusters]].forEach(([name, list]) => {
    for (const field of $$(`select[name=${name}]`)) field.append(...list.map((one) => element('option', {}, one.name)));
  });
  change({});
}

start().catch((error) => { $('#error').textContent = error.message; });
