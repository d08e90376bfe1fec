// Loaded with --require into every Node process and thread of a subject: a V8 CPU profile of each, from its start to its exit, into
// PROFILE_DIRECTORY.
const { Session } = require('node:inspector');
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { threadId } = require('node:worker_threads');

const directory = process.env.PROFILE_DIRECTORY;
if (directory !== undefined) {
  mkdirSync(directory, { recursive: true });
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.start');
  process.on('exit', () => {
    session.post('Profiler.stop', (error, result) => {
      if (error !== null) return;
      const name = [process.argv[2] ?? 'node', process.pid, threadId].join('-');
      writeFileSync(join(directory, `${name}.cpuprofile`), JSON.stringify(result.profile));
    });
  });
}
