// What is chosen, as the page's address has it, and as the commands' words and options.

const DEFAULTS = {
  scheme: '1f1b', P: '4', M: '8', V: '0', mode: 'times', f: '1', bi: '1', bw: '1', p2p: '0', act: '0', wt: '0',
  model: 'gpt-6.6b', cluster: 'dgx-a100', T: '1', D: '1', b: '1', keys: '', more: '', own: '', name: 'own.csv',
  view: 'timeline', cmp: 'gpipe 1f1b zb_h1 zbv', sdev: '8', batch: '32', top: '5', schemes: '', maxt: '0',
  fixed: '', mem: '', limit: '5', free: 'split,placement,stages,recompute,offload',
};

export const state = {...DEFAULTS};

export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(DEFAULTS)) state[key] = given.get(key) ?? DEFAULTS[key];
}

// Only what differs, so that addresses are short.
export function writeAddress() {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== DEFAULTS[key]) said.set(key, value);
  history.replaceState(null, '', said.size === 0 ? location.pathname : `#${said}`);
}

const isOwn = () => state.own !== '';

// "1f1b:P=4,M=8": sizes are one word, as `search` prints it.
export function wordOf(scheme) {
  if (scheme.includes(':')) return scheme;
  const keys = [];
  if (scheme !== state.name || !isOwn()) {
    keys.push(`P=${state.P}`, `M=${state.M}`);
    if (state.V !== '0') keys.push(`V=${state.V}`);
  }
  if (state.mode === 'model') {
    for (const key of ['T', 'D', 'b']) if (state[key] !== '1') keys.push(`${key}=${state[key]}`);
  }
  if (state.keys) keys.push(state.keys);
  return keys.length ? `${scheme}:${keys.join(',')}` : scheme;
}

function costs() {
  const options = state.mode === 'model' ? {model: state.model, cluster: state.cluster} : {};
  if (state.mode === 'times') {
    for (const [key, name, unit, usual] of [
      ['f', 'forward', '', '1'], ['bi', 'backward_input', '', '1'], ['bw', 'backward_weight', '', '1'],
      ['p2p', 'p2p_latency', '', '0'], ['act', 'activation_bytes', 'MiB', '0'], ['wt', 'weights', 'MiB', '0'],
    ]) {
      if (state[key] !== usual) options[name] = state[key].split(',').map((v) => v + unit).join(',');
    }
  }
  for (const word of state.more.split(/\s+/).filter(Boolean)) {
    const [, name, value] = word.match(/^-*([^=]*)=?(.*)$/);
    options[name] = word.includes('=') ? value : true;
  }
  return options;
}

const files = () => isOwn() ? {[state.name]: state.own} : {};

export function simulateRequest(drawings = [], scheme = isOwn() ? state.name : state.scheme) {
  return {words: [wordOf(scheme)], options: costs(), files: files(), drawings};
}

export function scheduleRequest(format) {
  const {words, options, files} = simulateRequest();
  const kept = Object.fromEntries(Object.entries(options).filter(([name]) => ['model', 'cluster', 'dtype'].includes(name)));
  return {words, options: {...kept, format}, files};
}

export function searchRequest() {
  const options = {model: state.model, cluster: state.cluster, devices: state.sdev, batch: state.batch, top: state.top};
  if (state.schemes) options.schemes = state.schemes.trim().split(/[\s,]+/).join(',');
  if (state.maxt !== '0') options.max_tensor = state.maxt;
  if (state.fixed) options.fixed = state.fixed;
  return {options};
}

export function synthesizeRequest(id) {
  const options = {...costs(), time_limit: `${state.limit}s`, freedoms: state.free};
  if (state.mem) options.memory = state.mem;
  return {words: [wordOf(state.scheme)], options, id};
}

// The same on the command line.
export function commandLine(command, {words = [], options = {}}) {
  const quoted = (text) => /^[\w.,:=+/@%-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  const given = Object.entries(options).map(([name, value]) => value === true ? `--${name}` : `--${name}=${value}`);
  return ['pipelab', command, ...words, ...given].map(quoted).join(' ');
}
