// Leads the requests that a program for Node sends by the package undici to agenteval's proxy: `request`, `stream`,
// `pipeline` and `fetch` all end in `dispatch` of a dispatcher, also of a Client, a Pool or an Agent of the program's own.
'use strict';

const LED = Symbol('led');
const SERVER = 'x-agenteval-server';
const UNREACHED = 'x-agenteval-unreached';
const OWN = ['Agent', 'BalancedPool', 'Client', 'Pool', 'RoundRobinPool'];
const GLOBAL = [Symbol.for('undici.globalDispatcher.2'), Symbol.for('undici.globalDispatcher.1')];
const options = new WeakMap(); // of the dispatchers that the program made: [address, options]

/** What requests go by that name no dispatcher, of the newest version first: each keeps one for older ones beside it. */
const commons = () => GLOBAL.map((name) => globalThis[name]).filter(Boolean);

exports.common = () => commons()[0];
exports.goesStraight = goesStraight;

/** Whether what this dispatcher sends is seen here. */
exports.isLed = (dispatcher) => Boolean(dispatcher?.dispatch?.[LED]);

/** The names and values of headers as undici takes them: an object, pairs, or a list of both in turns. */
function pairsOf(headers) {
  if (!headers) return [];
  if (!headers[Symbol.iterator]) return Object.entries(headers);
  const list = [...headers];
  if (list.every(Array.isArray)) return list;
  return list.flatMap((name, place) => (place % 2 ? [] : [[String(name), list[place + 1]]]));
}

function addressOf({ origin, path, query }, made) {
  const url = new URL(path, origin ?? made?.[0]);
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.append(name, String(value));
  return url;
}

/** Whether a dispatcher goes straight to the server: what has a way of its own to the network would reach another one
 * through us. */
function goesStraight(dispatcher) {
  const made = options.get(dispatcher);
  if (!made) return !dispatcher || (commons().includes(dispatcher) && dispatcher.constructor.name === 'Agent');
  const { connect, factory, interceptors, socketPath, tls } = made[made.length - 1] ?? {};
  const { cert, lookup, pfx, socketPath: path } = { ...tls, ...(typeof connect === 'object' ? connect : null) };
  return ![typeof connect === 'function', factory, interceptors, socketPath, cert, lookup, pfx, path].some(Boolean);
}

/** Whether the bytes of a body can be read here. A form and a Blob say their type to undici alone. */
function hasBytes(body) {
  return typeof body === 'string' || body instanceof Uint8Array || typeof body?.[Symbol.asyncIterator] === 'function';
}

async function bytesOf(body) {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body);
  const pieces = [];
  for await (const piece of body) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

/** The handler of an answer that may be none: what the proxy did not reach is asked `again`, and tells the handler. */
function handlerOf(handler, again) {
  let isOver = false;
  const isUnreached = (headers) =>
    Array.isArray(headers) ? headers.some((name) => String(name).toLowerCase() === UNREACHED) : UNREACHED in (headers ?? {});
  const began = (place, name) => (...about) => {
    if (!isUnreached(about[place])) return handler[name](...about);
    isOver = true;
    queueMicrotask(() => again(true));
    return true;
  };
  const failed = (place, name) => (...about) => {
    // The proxy has ended, as after the run.
    if (!isOver && about[place]?.code !== 'ECONNREFUSED') return handler[name](...about);
    if (!isOver) again(false);
    isOver = true;
  };
  const special = {
    onHeaders: began(1, 'onHeaders'),
    onResponseStart: began(2, 'onResponseStart'),
    onError: failed(0, 'onError'),
    onResponseError: failed(1, 'onResponseError'),
  };
  return new Proxy(handler, {
    get(target, name) {
      const own = target[name];
      if (typeof own !== 'function') return own;
      return special[name] ?? ((...about) => (isOver ? true : own.apply(target, about)));
    },
  });
}

/** Lead what the dispatchers of one copy of undici send, which has this class of agents. */
function leadDispatch(Agent, { detour, tellPast }) {
  const base = Object.getPrototypeOf(Agent.prototype);
  if (base.dispatch[LED]) return;
  const send = base.dispatch;
  const proxies = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

  function dispatch(about, handler) {
    const direct = (more) => send.call(this, { ...about, ...more }, handler);
    let way = null;
    let url;
    const made = options.get(this);
    try {
      // Those that dispatchers make for themselves pass on what is seen above them.
      const isInner = !made && !commons().includes(this) && OWN.includes(this.constructor.name);
      if (about?.method === 'POST' && hasBytes(about.body) && !isInner) {
        url = addressOf(about, made);
        way = detour(url);
      }
      if (way && !goesStraight(this)) {
        tellPast(url.host);
        way = null;
      }
    } catch {
      // What is wrong with it, undici says.
    }
    if (!way) return send.call(this, about, handler);
    bytesOf(about.body).then(
      (body) => {
        const pairs = pairsOf(about.headers).filter(([name]) => name.toLowerCase() !== 'host');
        const names = pairs.map(([name]) => name.toLowerCase());
        if (!body.length || !way.isModels(body, (name) => names.includes(name))) return direct({ body });
        const place = new URL(way.address);
        const { bodyTimeout, headersTimeout } = made?.[made.length - 1] ?? {};
        const there = {
          bodyTimeout,
          headersTimeout,
          ...about,
          origin: place.origin,
          path: place.pathname + place.search,
          query: undefined,
          headers: [...pairs, [SERVER, way.server]].flat(),
          body,
        };
        const again = (isUnreached) => {
          if (isUnreached) tellPast(url.host);
          direct({ body });
        };
        return send.call(proxies, there, handlerOf(handler, again));
      },
      (error) => (handler.onResponseError ? handler.onResponseError(null, error) : handler.onError(error)),
    );
    return true;
  }

  dispatch[LED] = true;
  base.dispatch = dispatch;
}

/** `clients` says where a request goes (`detour`), and is told of those asked past. */
exports.lead = function (undici, clients) {
  const { detour, tellPast } = clients;
  leadDispatch(undici.Agent, clients);
  // The copy in Node may have been first: the package sends by the agent that is there.
  for (const { constructor } of commons()) if (constructor.name === 'Agent') leadDispatch(constructor, clients);
  for (const name of OWN) {
    if (undici[name]) undici[name] = noted(undici[name]);
  }
  // It has a `dispatch` of its own.
  const network = undici.ProxyAgent?.prototype;
  if (!network || !Object.hasOwn(network, 'dispatch')) return;
  const sendBy = network.dispatch;
  network.dispatch = function dispatch(about, handler) {
    if (about?.method === 'POST' && detour(addressOf(about))) tellPast(addressOf(about).host);
    return sendBy.call(this, about, handler);
  };
  network.dispatch[LED] = true;
};

/** The class, which notes with what the program makes its dispatchers. One of a class of the program's own is left. */
function noted(type) {
  return new Proxy(type, {
    construct(target, about, made) {
      const dispatcher = Reflect.construct(target, about, made);
      if (Object.getPrototypeOf(dispatcher) === target.prototype) options.set(dispatcher, about);
      return dispatcher;
    },
  });
}
