'use strict';
// Loaded into every Node process and thread of an instance. At SIGUSR2 a gateway reads from the file at PAUSE_ORDER which of its threads
// stands still, `main` or `media`, and for how many milliseconds.
const { readFileSync } = require('node:fs');
const { BroadcastChannel, isMainThread } = require('node:worker_threads');

const stand = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const channel = new BroadcastChannel('pause');
channel.unref();
if (!isMainThread) channel.onmessage = ({ data }) => stand(data);
else if (process.argv.includes('gateway'))
  process.on('SIGUSR2', () => {
    const [thread, ms] = readFileSync(process.env.PAUSE_ORDER, 'utf8').split(' ');
    if (thread === 'media') channel.postMessage(Number(ms));
    else stand(Number(ms));
  });
