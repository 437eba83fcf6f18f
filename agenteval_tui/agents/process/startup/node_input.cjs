// Tells that a program for Node asks for more by `readline` than its standard input has: it ends by that, as a rule.
'use strict';

const readline = require('node:readline');
const readlinePromises = require('node:readline/promises');

const { tell } = require('./node_report.cjs');

function tellEnd(prototype, name) {
  const ask = prototype[name];
  prototype[name] = function question(...about) {
    const isOfInput = this.input === process.stdin;
    if (isOfInput && this.closed) tell('ended', 'input');
    const answer = ask.apply(this, about);
    if (isOfInput && !this.closed) watch(this, answer);
    return answer;
  };
}

/** A question that is open when the input ends gets no answer. */
function watch(asking, answer) {
  const ended = () => tell('ended', 'input');
  const isAnswered = () => asking.off('close', ended);
  asking.once('close', ended);
  asking.once('line', isAnswered);
  if (typeof answer?.then === 'function') answer.then(isAnswered, isAnswered);
}

exports.follow = function () {
  tellEnd(readline.Interface.prototype, 'question');
  tellEnd(readlinePromises.Interface.prototype, 'question');
};
