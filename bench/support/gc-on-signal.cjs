// Loaded with --require into a Node process: SIGUSR2 makes it collect its garbage, in full.
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const { isMainThread } = require('node:worker_threads');

if (isMainThread) {
  setFlagsFromString('--expose-gc');
  const collect = globalThis.gc ?? runInNewContext('gc');
  process.on('SIGUSR2', () => {
    for (let round = 0; round < 4; round += 1) collect();
  });
}
