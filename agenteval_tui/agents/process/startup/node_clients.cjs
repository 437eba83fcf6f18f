// Leads the requests to models of a program for Node to agenteval's proxy, whatever address its code has for them.
//
// NODE_OPTIONS makes each Node that a recorded command starts run this file first. The clients of model servers stand
// on `fetch`, on `http` and `https` (axios, node-fetch, got), on `http2`, or on the package undici: below them, a request
// leaves for the proxy with the address that it was meant for, and the answer comes back in its place.
// `python_http_clients.py` does the same for Python, and has the same paths.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const http = require('node:http');
const https = require('node:https');
const Module = require('node:module');
const { urlToHttpOptions } = require('node:url');

const undici = require('./node_undici.cjs');
const { tell } = require('./node_report.cjs');

// One program is one run, but a server answers several at once: each request of agenteval's that it takes says, with the
// token of this server, by way of which proxy the requests go that follow from it (`python_server_requests.py`).
const ofProgram = process.env.AGENTEVAL_PROXY;
const token = process.env.AGENTEVAL_SERVER;
const ofRequest = new AsyncLocalStorage();
const plain = http.request;
const SERVER = 'x-agenteval-server';
const UNREACHED = 'x-agenteval-unreached';
const IS_UNDICI = /(?:^|[\\/]node_modules[\\/])undici(?:[\\/]index(?:\.js)?)?$/;
const MOST = 32_000_000; // characters, or bytes, of a request
const OPENAI = /^(.*?)(\/chat\/completions|\/completions|\/responses|\/embeddings)$/;
const ANTHROPIC = /^(.*?)(\/v1\/messages)$/;
const GEMINI =
  /^(.*?)(\/v1(?:beta1?|alpha)?\/(?:projects\/[^/]+\/locations\/[^/]+\/)?(?:publishers\/[^/]+\/)?(?:models|tunedModels|endpoints)\/[^/]+:(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents|rawPredict|streamRawPredict))$/;

const BEDROCK = /^(.*?)(\/model\/[^/]+\/(?:converse|converse-stream|invoke|invoke-with-response-stream))$/;
const OLLAMA = /^(.*?)(\/api\/(?:chat|generate|embed|embeddings))$/;

const MODEL_SERVER =
  /^(?:api\.(?:openai|anthropic|groq|mistral|deepseek|fireworks|perplexity|cerebras|cohere|together|x)\.(?:com|ai|xyz)|generativelanguage\.googleapis\.com|[\w-]*aiplatform\.googleapis\.com|[\w-]+\.openai\.azure\.com|bedrock-runtime[\w-]*\.[\w-]+\.amazonaws\.com|openrouter\.ai)$/;
const isModelServer = (host) => MODEL_SERVER.test(host);

/** A server was asked for a model, and not by way of the proxy. */
function tellPast(server) {
  tell('past', server);
}

/** Whether a server is Ollama: many a server has a path `/api/chat`. */
function isOllama(host) {
  const named = (process.env.OLLAMA_HOST ?? '').replace(/^.*?:\/\//, '').split('/')[0];
  return host.endsWith(':11434') || host === 'ollama.com' || (named !== '' && host === named);
}

/** The proxy by way of which requests go now; undefined: they go to their servers. */
function proxyOfNow() {
  return ofProgram ?? ofRequest.getStore();
}

/** Where a request goes at the proxy, if this address is one of a model: `address` there, and `server`, without the path
 * that the proxy knows. `isModels` says whether the request is one for a model. Null where no such request is. */
function detour(url) {
  const proxy = proxyOfNow();
  if (!proxy || !['http:', 'https:'].includes(url.protocol) || url.host === new URL(proxy).host) return null;
  const path = url.pathname;
  let prefix = 'gemini';
  let isModels = () => true;
  let match = GEMINI.exec(path);
  if (!match && isOllama(url.host) && (match = OLLAMA.exec(path))) {
    prefix = 'ollama';
  } else if (!match && (match = BEDROCK.exec(path))) {
    prefix = 'bedrock';
  } else if (!match && (match = ANTHROPIC.exec(path))) {
    // Other services have a path of this name; only Anthropic's clients send their version.
    isModels = (body, hasHeader) => hasHeader('anthropic-version');
    prefix = 'anthropic';
  } else if (!match) {
    match = OPENAI.exec(path);
    if (!match) return null;
    // `/responses` and the like are common names: there a model must be named.
    if (match[2] !== '/chat/completions') isModels = (body) => body.includes('"model"');
    prefix = 'openai/v1';
  }
  let [, before, rest] = match;
  // The proxy knows these servers by prefixes of their own, with the whole path.
  if (prefix === 'openai/v1' && (path.includes('/openai/deployments/') || url.host === 'api.groq.com')) {
    [prefix, before, rest] = [url.host === 'api.groq.com' ? 'groq' : 'azure', '', path];
  }
  const address = `${proxy}/${prefix}${rest}${url.search}`;
  return { address, server: `${url.protocol}//${url.host}${before}`, isModels };
}

// fetch

/** The same request at the proxy; null where it is left alone. */
async function led(input, options) {
  const request = input instanceof Request ? input : null;
  const method = options?.method ?? request?.method ?? 'GET';
  if (method.toUpperCase() !== 'POST') return null;
  const url = new URL(request ? request.url : String(input));
  const way = detour(url);
  if (!way) return null;
  const dispatcher = options?.dispatcher ?? undici.common();
  if (options?.dispatcher || !undici.goesStraight(dispatcher)) {
    if (!undici.isLed(dispatcher)) tellPast(url.host);
    return null;
  }
  const headers = new Headers(options?.headers ?? request?.headers);
  let body = options?.body;
  if (body === undefined && request) body = request.clone().body;
  if (!body) return null;
  // What is made while it is sent is sent once it is there: it may have to be sent twice.
  if (typeof body !== 'string') {
    const whole = new Response(body);
    // A form and a Blob say their type themselves, and their bytes don't.
    const type = whole.headers.get('content-type');
    if (type && !headers.has('content-type')) headers.set('content-type', type);
    body = Buffer.from(await whole.arrayBuffer());
  }
  const direct = options?.body ? [input, { ...options, headers: new Headers(headers), body }] : [input, options];
  if (!body.length || !way.isModels(body, (name) => headers.has(name))) return { direct };
  headers.set(SERVER, way.server);
  const signal = options?.signal ?? request?.signal;
  const there = { ...options, method: 'POST', headers, body, signal };
  return { address: way.address, url, there, direct };
}

/** `fetch`, by way of the proxy. */
function ledFetch(send) {
  return async function fetch(input, options) {
    const way = await led(input, options).catch(() => null);
    if (!way) return send(input, options);
    const { address, url, there, direct } = way;
    if (!address) return send(...direct);
    let response;
    try {
      response = await send(address, there);
    } catch (error) {
      // The proxy has ended, as after the run: the request goes to its server, as it would without us.
      if (error?.cause?.code !== 'ECONNREFUSED') throw error;
      return send(...direct);
    }
    if (response.headers.has(UNREACHED)) {
      await response.body?.cancel();
      tellPast(url.host);
      return send(...direct);
    }
    Object.defineProperty(response, 'url', { value: url.href });
    return response;
  };
}

/** The package is part of the program, and is seen when it is loaded. */
function leadPackages() {
  const load = Module._load;
  const seen = new Set();
  Module._load = function _load(name, ...more) {
    const loaded = load.call(this, name, ...more);
    if (IS_UNDICI.test(name) && !seen.has(loaded)) {
      seen.add(loaded);
      try {
        undici.lead(loaded, { detour, tellPast });
      } catch {
        // A version of another shape: its requests are not seen.
      }
    }
    return loaded;
  };
}

// http and https

/** Whether connections of this agent go straight to the server. The agents of agentkeepalive, which OpenAI's client has
 * brought for long, only keep them; those of other classes may lead through a proxy of the network. */
function isDirect(agent) {
  if (agent === undefined || agent === null || agent === false) return true;
  const isOfKeepAlive = typeof agent.getCurrentStatus === 'function';
  if (!isOfKeepAlive && ![http.Agent, https.Agent].includes(agent.constructor)) return false;
  const { cert, pfx, proxyEnv } = agent.options ?? {};
  return !cert && !pfx && !proxyEnv && !Object.hasOwn(agent, 'createConnection');
}

/** The options of a request, as `http.request` takes them. */
function optionsOf([input, more]) {
  if (typeof input === 'string') input = new URL(input);
  if (!(input instanceof URL)) return { ...input };
  // By names only: by the symbols of an address, Node 18 would take the options for one, and read its path anew.
  const ofAddress = Object.fromEntries(Object.entries(urlToHttpOptions(input)));
  return { ...ofAddress, ...(typeof more === 'function' ? null : more) };
}

/** Where the request of these options goes at the proxy; null where it is left alone. */
function wayOf(options, isSecure) {
  const { agent, headers, method } = options;
  // The whole address as a path: that is a request to a proxy of the network.
  if (!options.path?.startsWith('/')) return null;
  const protocol = options.protocol ?? (isSecure ? 'https:' : 'http:');
  const host = options.hostname || options.host || 'localhost';
  const port = options.port || options.defaultPort;
  const place = host.includes(':') ? `[${host}]` : host;
  const url = new URL(`${protocol}//${place}${port ? `:${port}` : ''}${options.path}`);
  const names = Object.keys((!Array.isArray(headers) && headers) || {}).map((name) => name.toLowerCase());
  // A WebSocket: what is said by it is not seen.
  if (names.includes('upgrade') && isModelServer(url.hostname)) tellPast(url.host);
  const way = method?.toUpperCase() === 'POST' ? detour(url) : null;
  if (!way) return null;
  const isOwn = [options.socketPath, options.createConnection, options.lookup, options.cert, options.pfx].some(Boolean);
  // With `expect`, Node sends the head of the request before anything of its body is there.
  if (!isDirect(agent) || isOwn || Array.isArray(headers) || names.includes('expect')) {
    tellPast(url.host);
    return null;
  }
  way.failed = () => tellPast(url.host);
  return way;
}

/** A request to the proxy, which waits for its whole body. Where the proxy is not to have it, or does not reach the
 * server, another request takes its place: `direct` begins it. To the program both are this one. */
function ledRequest(way, options, callback, direct) {
  const there = new URL(way.address);
  const headers = Object.entries(options.headers ?? {}).filter(([name]) => name.toLowerCase() !== 'host');
  const request = plain({
    ...options,
    protocol: 'http:',
    host: there.hostname,
    hostname: there.hostname,
    port: there.port,
    defaultPort: undefined,
    localAddress: undefined,
    path: there.pathname + there.search,
    headers: Object.fromEntries(headers),
    agent: new http.Agent(),
  });
  if (callback) request.once('response', callback);
  const own = {};
  for (const name of ['write', 'end', 'emit', 'destroy', 'setTimeout']) own[name] = request[name].bind(request);
  const pieces = [];
  let size = 0;
  let hasEnded = false;
  let hasFinished = false;
  let timeout = 0;
  let inPlace = null;

  function step() {
    inPlace = direct();
    for (const name of request.getRawHeaderNames()) {
      if (!['host', SERVER].includes(name.toLowerCase())) inPlace.setHeader(name, request.getHeader(name));
    }
    for (const name of ['socket', 'timeout', 'drain', 'continue', 'information', 'error', 'close']) {
      inPlace.on(name, (...about) => own.emit(name, ...about));
    }
    inPlace.on('finish', () => hasFinished || own.emit('finish'));
    inPlace.on('response', (response) => {
      request.res = response;
      if (!own.emit('response', response)) response.resume();
    });
    if (timeout) inPlace.setTimeout(timeout);
    const last = hasEnded ? (pieces.pop() ?? []) : [];
    for (const piece of pieces) inPlace.write(...piece);
    if (hasEnded) inPlace.end(...last);
    own.destroy();
  }

  request.emit = (name, about, ...more) => {
    if (inPlace) return name === 'abort' && own.emit(name);
    if (name === 'response' && about.headers[UNREACHED]) {
      about.resume();
      way.failed();
      step();
      return true;
    }
    // The proxy has ended, as after the run.
    if (name === 'error' && about?.code === 'ECONNREFUSED' && about.port === Number(there.port)) {
      step();
      return true;
    }
    hasFinished ||= name === 'finish';
    if (name === 'response') {
      request.protocol = options.protocol ?? request.protocol;
      request.host = options.hostname || options.host || request.host;
      request.path = options.path ?? request.path;
    }
    return own.emit(name, about, ...more);
  };
  request.write = (chunk, encoding, then) => {
    if (inPlace) return inPlace.write(chunk, encoding, then);
    if (hasEnded) return own.write(chunk, encoding, then); // its error
    if (typeof encoding === 'function') [encoding, then] = [undefined, encoding];
    pieces.push([chunk, encoding]);
    size += chunk.length;
    if (typeof then === 'function') process.nextTick(then);
    if (size > MOST) step();
    return true;
  };
  request.end = (chunk, encoding, then) => {
    if (typeof chunk === 'function') [chunk, encoding, then] = [undefined, undefined, chunk];
    if (typeof encoding === 'function') [encoding, then] = [undefined, encoding];
    if (chunk !== undefined && chunk !== null) request.write(chunk, encoding);
    if (typeof then === 'function') request.once('finish', then);
    if (inPlace) {
      inPlace.end();
      return request;
    }
    if (hasEnded) return request;
    hasEnded = true;
    const body = Buffer.concat(pieces.map(([piece, as]) => (typeof piece === 'string' ? Buffer.from(piece, as) : piece)));
    if (!body.length || !way.isModels(body, (name) => request.hasHeader(name))) {
      step();
      return request;
    }
    request.setHeader('Host', there.host);
    request.setHeader(SERVER, way.server);
    own.end(body);
    return request;
  };
  request.flushHeaders = () => inPlace?.flushHeaders();
  request.setTimeout = (...about) => {
    timeout = about[0];
    own.setTimeout(...about);
    inPlace?.setTimeout(timeout);
    return request;
  };
  request.destroy = (error) => {
    if (inPlace) inPlace.destroy(error);
    else own.destroy(error);
    return request;
  };
  return request;
}

function leadModule(module) {
  const send = module.request;
  module.request = function request(...about) {
    let way = null;
    let options;
    try {
      options = optionsOf(about);
      way = wayOf(options, module === https);
    } catch {
      // What is wrong with it, its own module says.
    }
    if (!way) return send.apply(this, about);
    const callback = about.find((each) => typeof each === 'function');
    // Without its callback, which is called for the request that the program has.
    return ledRequest(way, options, callback, () => send.apply(this, about.filter((each) => each !== callback)));
  };
}

// Servers

/** Whatever a server begins to answer a request has the proxy that the request names. */
function leadServer(module) {
  const emit = module.Server.prototype.emit;
  module.Server.prototype.emit = function (name, ...about) {
    const header = name === 'request' ? about[0]?.headers?.['x-agenteval-run'] : undefined;
    const [given, address] = (header ?? '').split(' ');
    if (given !== token || !address?.startsWith('http://127.0.0.1:')) return emit.call(this, name, ...about);
    return ofRequest.run(address, () => emit.call(this, name, ...about));
  };
}

if (ofProgram || token) {
  if (ofProgram) {
    require('./node_files.cjs');
    require('./node_input.cjs').follow();
  } else {
    [http, https].forEach(leadServer);
  }
  if (typeof globalThis.fetch === 'function') globalThis.fetch = ledFetch(globalThis.fetch);
  leadModule(http);
  leadModule(https);
  require('./node_http2.cjs').lead({ detour, isModelServer, tellPast });
  Module.syncBuiltinESMExports();
  leadPackages();
}
