// Loaded with --require into a Node process: SIGWINCH makes it collect its garbage, in full. (SIGUSR2 is the supervisor's.)
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const { isMainThread } = require('node:worker_threads');

if (isMainThread) {
  setFlagsFromString('--expose-gc');
  const collect = globalThis.gc ?? runInNewContext('gc');
  process.on('SIGWINCH', () => {
    for (let round = 0; round < 4; round += 1) collect();
  });
}
