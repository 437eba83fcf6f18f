// Tells agenteval what a program for Node does, a line each, in the file of its run. A line is written when it happens,
// so that also a program that is killed has told what it did until then.
'use strict';

const { openSync, writeSync } = require('node:fs');

const seen = new Set();
let report;

/** Tell it once. It must not fail: the program would. */
exports.tell = function (kind, text) {
  const line = `${kind} ${text}\n`;
  if (!process.env.AGENTEVAL_REPORT || seen.has(line) || text.includes('\n')) return;
  seen.add(line);
  try {
    report ??= openSync(process.env.AGENTEVAL_REPORT, 'a');
    writeSync(report, line);
  } catch {
    // It is not known then.
  }
};
