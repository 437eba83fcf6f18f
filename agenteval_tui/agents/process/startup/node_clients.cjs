// Leads the requests to models of a program for Node to agenteval's proxy, whatever address its code has for them.
//
// NODE_OPTIONS makes each Node that a recorded command starts run this file first. The clients of model servers stand on
// `fetch`: below them, a request leaves for the proxy with the address that it was meant for, and the answer comes back
// in its place. `python_http_clients.py` does the same for Python, and has the same paths.
'use strict';

const proxy = process.env.AGENTEVAL_PROXY;
const MOST = 32_000_000; // characters of a request
const OPENAI = /^(.*?)(\/chat\/completions|\/completions|\/responses|\/embeddings)$/;
const ANTHROPIC = /^(.*?)(\/v1\/messages)$/;
const GEMINI =
  /^(.*?)(\/v1(?:beta|alpha)?\/(?:models|tunedModels)\/[^/]+:(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents))$/;

/** [the address at the proxy, the server without the path that the proxy knows]; null where it is no model's. */
function detour(url, body, headers) {
  if (!['http:', 'https:'].includes(url.protocol) || url.host === new URL(proxy).host) return null;
  const path = url.pathname;
  let prefix = 'gemini';
  let match = GEMINI.exec(path);
  if (!match && (match = ANTHROPIC.exec(path))) {
    // Other services have a path of this name; only Anthropic's clients send their version.
    if (!headers.has('anthropic-version')) return null;
    prefix = 'anthropic';
  } else if (!match) {
    match = OPENAI.exec(path);
    // `/responses` and the like are common names: there a model must be named.
    if (!match || (match[2] !== '/chat/completions' && !body.includes('"model"'))) return null;
    prefix = 'openai/v1';
  }
  let [, before, rest] = match;
  // The proxy knows these servers by prefixes of their own, with the whole path.
  if (prefix === 'openai/v1' && (path.includes('/openai/deployments/') || url.host === 'api.groq.com')) {
    [prefix, before, rest] = [url.host === 'api.groq.com' ? 'groq' : 'azure', '', path];
  }
  return [`${proxy}/${prefix}${rest}${url.search}`, `${url.protocol}//${url.host}${before}`];
}

/** The same request at the proxy; null where it is left alone. */
async function led(input, options) {
  // What has a way of its own to the network would reach another server through us.
  const common = globalThis[Symbol.for('undici.globalDispatcher.1')];
  if (options?.dispatcher || (common && common.constructor.name !== 'Agent')) return null;
  const request = input instanceof Request ? input : null;
  const method = options?.method ?? request?.method ?? 'GET';
  if (method.toUpperCase() !== 'POST') return null;
  let body = options?.body;
  if (body === undefined && request) body = await request.clone().text();
  // A body that is made while it is sent can't be sent twice, where the proxy doesn't reach the server.
  if (typeof body !== 'string' || !body || body.length > MOST) return null;
  const headers = new Headers(options?.headers ?? request?.headers);
  const url = new URL(request ? request.url : String(input));
  const way = detour(url, body, headers);
  if (!way) return null;
  headers.set('x-agenteval-server', way[1]);
  const signal = options?.signal ?? request?.signal;
  return { address: way[0], url: url.href, options: { ...options, method: 'POST', headers, body, signal } };
}

function begin() {
  const send = globalThis.fetch;
  globalThis.fetch = async function fetch(input, options) {
    const there = await led(input, options).catch(() => null);
    if (!there) return send(input, options);
    let response;
    try {
      response = await send(there.address, there.options);
    } catch (error) {
      // The proxy has ended, as after the run: the request goes to its server, as it would without us.
      if (error?.cause?.code !== 'ECONNREFUSED') throw error;
      return send(input, options);
    }
    if (response.headers.has('x-agenteval-unreached')) {
      await response.body?.cancel();
      return send(input, options);
    }
    Object.defineProperty(response, 'url', { value: there.url });
    return response;
  };
}

if (proxy && typeof globalThis.fetch === 'function') begin();
