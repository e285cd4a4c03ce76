// Commands by POST. An error is the server's one line.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function post(command, body, signal) {
  let response;
  try {
    response = await fetch(`/api/${command}`, {
      method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body), signal,
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'The server does not answer; is `pipelab serve` still running?');
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({error: `status ${response.status}`}));
  throw new Refused(response.status, answer.error);
}

export async function call(command, body, signal) {
  return (await post(command, body, signal)).json();
}

// synthesize: `onNews` for each line before the answer.
export async function stream(command, body, onNews, signal) {
  const response = await post(command, body, signal);
  if (!response.headers.get('Content-Type').includes('ndjson')) return response.json();
  let text = '';
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const {value, done} = await reader.read();
    if (done) throw new Refused(0, 'The server ended before its answer.');
    text += value;
    const lines = text.split('\n');
    text = lines.pop();
    for (const line of lines.map((l) => JSON.parse(l))) {
      if (line.news) onNews(line.news);
      else if (line.status === 200) return line.answer;
      else throw new Refused(line.status, line.answer.error);
    }
  }
}

export function download(name, text, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
