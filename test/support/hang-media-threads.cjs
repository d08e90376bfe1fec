'use strict';
// Loaded into every Node process and thread of an instance: at SIGUSR2 a gateway's media threads stand still.
const { BroadcastChannel, isMainThread } = require('node:worker_threads');

const channel = new BroadcastChannel('hang');
channel.unref();
if (!isMainThread) channel.onmessage = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
else if (process.argv.includes('gateway')) process.on('SIGUSR2', () => channel.postMessage(null));
