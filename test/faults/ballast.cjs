'use strict';
// Loaded into every Node process of an instance: at SIGUSR2 the SIP server takes, or gives back, 400 MB; a gateway fills its heap until
// V8 ends it.
const { Buffer } = require('node:buffer');
const { setInterval } = require('node:timers');
const v8 = require('node:v8');
const vm = require('node:vm');
const { isMainThread } = require('node:worker_threads');

let ballast = null;

function toggle() {
  if (ballast === null) {
    ballast = Buffer.alloc(400 << 20, 1);
    return;
  }
  ballast = null;
  v8.setFlagsFromString('--expose-gc');
  vm.runInNewContext('gc')();
}

function leak() {
  const kept = [];
  setInterval(() => kept.push(Array.from({ length: 100_000 }, (_none, at) => ({ at }))), 20);
}

if (isMainThread && process.argv.includes('sip-server')) process.on('SIGUSR2', toggle);
if (isMainThread && process.argv.includes('gateway')) process.on('SIGUSR2', leak);
