import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

it('a warning of Node.js becomes a line of the log, and nothing else is printed', () => {
  const program = `
    import { createLogger } from './src/observability/log/logger.ts';
    createLogger('test', 'info').info({}, 'process.ready');
    process.emitWarning('too many listeners', 'MaxListenersExceededWarning');
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(stderr).toBe('');
  expect(lines).toMatchObject([
    { msg: 'process.ready' },
    { msg: 'process.warning', level: 'warn', warning: 'MaxListenersExceededWarning', error: 'too many listeners' },
  ]);
});
