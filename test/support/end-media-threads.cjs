'use strict';
// Loaded into every Node process of an instance: at SIGUSR2 a gateway's media threads die.
const threads = new Set();

if (process.argv.includes('gateway')) {
  process.on('worker', (worker) => {
    threads.add(worker);
    worker.once('exit', () => threads.delete(worker));
  });
  process.on('SIGUSR2', () => {
    for (const thread of threads) void thread.terminate();
  });
}
