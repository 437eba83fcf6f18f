// Tells which files and folders a program for Node reads: what it loads goes through `fs`, too, whether it is required
// or imported, and so do the sources that tsx, ts-node and bundlers take.
// Only a reader of sources in another language (esbuild, when it bundles) is not seen.
'use strict';

const fs = require('node:fs');
const Module = require('node:module');
const { resolve, sep } = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');

const { tell } = require('./node_report.cjs');

const INSTALLED = `${sep}node_modules${sep}`;
const { O_RDWR, O_WRONLY } = fs.constants;
const project = process.env.AGENTEVAL_PROJECT;
const seen = new Set();

/** Say that a file or folder of the project is read. */
function tellRead(place) {
  try {
    if (typeof place !== 'string') {
      if (Buffer.isBuffer(place)) place = place.toString();
      else if (place?.protocol === 'file:') place = fileURLToPath(place);
      else return; // a number, or what is no path
    }
    if (place.includes(INSTALLED) || seen.has(place)) return;
    const path = resolve(place);
    if (!path.startsWith(project) || path.includes(INSTALLED)) return;
    seen.add(path);
    tell('read', path);
  } catch {
    // No path: the call itself says so.
  }
}

/** Whether a file that is opened with these flags is only written. */
function isWritten(flags) {
  if (typeof flags === 'number') return (flags & (O_WRONLY | O_RDWR)) !== 0;
  return typeof flags === 'string' && /^[wa]|\+/.test(flags);
}

/** The function, which tells of its first argument. */
function telling(call, isOpen) {
  const { name, length } = call;
  const told = function (place, ...more) {
    if (!isOpen || !isWritten(more[0])) tellRead(place);
    return call.call(this, place, ...more);
  };
  Object.defineProperties(told, { name: { value: name }, length: { value: length } });
  return Object.assign(told, call);
}

function tellReads() {
  const { promises } = fs;
  for (const name of ['readFile', 'readFileSync', 'readdir', 'readdirSync', 'opendir', 'opendirSync']) {
    fs[name] = telling(fs[name]);
    if (promises[name]) promises[name] = telling(promises[name]);
  }
  fs.open = telling(fs.open, true);
  fs.openSync = telling(fs.openSync, true);
  promises.open = telling(promises.open, true);
}

/** What loads modules in a thread of its own, as tsx does in older versions, reads them there: this file runs in that
 * thread, too. */
function followLoaders() {
  const { register } = Module;
  if (typeof register !== 'function') return;
  let isThere = false;
  Module.register = function (...about) {
    if (!isThere) {
      isThere = true;
      try {
        register(pathToFileURL(__filename));
      } catch {
        // Its reads are not seen.
      }
    }
    return register(...about);
  };
}

if (project && !globalThis[Symbol.for('agenteval.files')]) {
  Object.defineProperty(globalThis, Symbol.for('agenteval.files'), { value: true });
  tellReads();
  followLoaders();
  Module.syncBuiltinESMExports();
}
