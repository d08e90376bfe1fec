import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

// A copy: the logs of its steps go beside it.
const root = mkdtempSync(join(tmpdir(), 'trunkline-steps-'));
cpSync('scripts/lib.sh', join(root, 'scripts/lib.sh'));
afterAll(() => rmSync(root, { recursive: true }));

const run = (commands: string): { status: number | null; stdout: string; stderr: string } =>
  spawnSync('bash', ['-c', `set -euo pipefail; . ${root}/scripts/lib.sh; ${commands}`], { encoding: 'utf8' });

it('the setup continues after steps that end at once', () => {
  const { status, stdout, stderr } = run('for n in 1 2 3 4 5 6 7 8 9 10; do step "quick $n" true; done; echo over');
  expect({ status, stderr, lines: stdout.trimEnd().split('\n').length, last: stdout.trimEnd().split('\n').at(-1) }).toEqual({
    status: 0,
    stderr: '',
    lines: 11,
    last: 'over',
  });
});

it('the setup ends at a step that fails, and prints its output', () => {
  const { status, stdout } = run('step "hard" bash -c "echo no space; exit 3"; echo over');
  expect(status).toBe(1);
  expect(stdout).toContain('FAIL  hard');
  expect(stdout).toContain('no space');
  expect(stdout).not.toContain('over');
});
