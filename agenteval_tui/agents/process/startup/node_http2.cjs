// Leads the requests that a program for Node sends by HTTP/2 to agenteval's proxy, by HTTP/1.1: Amazon's client asks
// Bedrock that way.
'use strict';

const http = require('node:http');
const http2 = require('node:http2');
const { Duplex } = require('node:stream');

const plain = http.request;
// Of the connection, and not of the message.
const OF_CONNECTION = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'host'];
const OF_STREAM = ['headers', 'trailers', 'push', 'aborted', 'frameError', 'continue', 'ready'];

function withoutConnection(headers) {
  const isKept = ([name]) => !name.startsWith(':') && !OF_CONNECTION.includes(name.toLowerCase());
  return Object.fromEntries(Object.entries(headers).filter(isKept));
}

/** A stream of the session, to the program: what it writes goes to the proxy as one request. Where the proxy is not to
 * have it, or does not reach the server, `direct` begins a real stream, and this one passes on what that does. */
class LedStream extends Duplex {
  constructor(session, headers, way, client, direct) {
    super();
    Object.assign(this, { session, sentHeaders: headers, rstCode: 0, aborted: false, pending: false, id: undefined });
    Object.assign(this, { way, client, direct, pieces: [], place: null, limit: null });
  }

  _write(chunk, _encoding, then) {
    this.pieces.push(chunk);
    then();
  }

  _final(then) {
    const body = Buffer.concat(this.pieces);
    const { address, server, isModels } = this.way;
    const names = Object.keys(this.sentHeaders).map((name) => name.toLowerCase());
    if (!body.length || !isModels(body, (name) => names.includes(name))) {
      this.step(body);
      return then();
    }
    const headers = { ...withoutConnection(this.sentHeaders), 'x-agenteval-server': server };
    const asked = plain(address, { method: 'POST', headers, agent: this.client });
    this.hold(asked);
    asked.on('response', (response) => this.take(response, body));
    asked.on('error', (error) => (error.code === 'ECONNREFUSED' ? this.step(body) : this.destroy(error)));
    asked.end(body);
    then();
  }

  take(response, body) {
    if ('x-agenteval-unreached' in response.headers) {
      response.resume();
      this.way.failed();
      return this.step(body);
    }
    this.emit('response', { ':status': response.statusCode, ...withoutConnection(response.headers) }, 4);
    this.from(response);
  }

  hold(place) {
    this.place = place;
    if (this.limit !== null) place.setTimeout(this.limit);
    place.on('timeout', () => this.emit('timeout'));
  }

  /** Pass on what another stream gives. */
  from(stream) {
    stream.on('data', (piece) => this.push(piece) || stream.pause());
    stream.on('end', () => this.push(null));
    stream.on('error', (error) => this.destroy(error));
    stream.on('aborted', () => this.destroy());
    this.source = stream;
  }

  step(body) {
    const real = this.direct();
    this.hold(real);
    real.on('response', (headers, flags) => {
      this.emit('response', headers, flags);
      this.from(real);
    });
    for (const name of OF_STREAM) real.on(name, (...about) => this.emit(name, ...about));
    real.on('error', (error) => this.destroy(error));
    real.on('close', () => {
      this.rstCode = real.rstCode;
      if (!this.source) this.destroy();
    });
    if (body.length) real.end(body);
    else real.end();
  }

  _read() {
    this.source?.resume();
  }

  _destroy(error, then) {
    if (!this.place?.closed) this.place?.destroy();
    then(error);
  }

  setTimeout(time, listener) {
    if (listener) this.once('timeout', listener);
    this.limit = time;
    this.place?.setTimeout(time);
    return this;
  }

  close(code, listener) {
    this.rstCode = code ?? 0;
    if (listener) this.once('close', listener);
    this.destroy();
  }

  priority() {}
}

/** `clients` says where a request goes (`detour`), which servers are of models, and is told of those asked past. */
exports.lead = function (clients) {
  const { connect } = http2;
  http2.connect = function (authority, options, listener) {
    const session = connect.call(this, authority, options, listener);
    try {
      leadSession(session, originOf(authority), typeof options?.createConnection !== 'function', clients);
    } catch {
      // A session of another shape: its requests are not seen.
    }
    return session;
  };
};

function originOf(authority) {
  if (typeof authority === 'string' || authority instanceof URL) return new URL(authority);
  const { protocol = 'https:', hostname, host = 'localhost', port } = authority;
  return new URL(`${protocol}//${hostname ?? host}${port ? `:${port}` : ''}`);
}

function leadSession(session, origin, isStraight, { detour, isModelServer, tellPast }) {
  const send = session.request;
  const client = new http.Agent({ keepAlive: false });
  session.request = function request(headers, options) {
    const direct = () => send.call(session, headers, options);
    let way = null;
    try {
      const url = new URL(headers[':path'], origin);
      const isLed = isStraight && !options?.endStream;
      const asks = headers[':method'] === 'POST';
      way = asks ? detour(url) : null;
      // gRPC has paths of its own.
      if (asks && (way ? !isLed : isModelServer(url.hostname))) tellPast(url.host);
      if (!isLed) way = null;
      if (way) way.failed = () => tellPast(url.host);
    } catch {
      // What is wrong with it, its own module says.
    }
    return way ? new LedStream(session, headers, way, client, direct) : direct();
  };
}
