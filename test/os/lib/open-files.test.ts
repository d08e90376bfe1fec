import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { maxOpenFiles } from '../../../src/lib/open-files.js';

it('maxOpenFiles reads how many files may be open', () => {
  const limits =
    'Limit                     Soft Limit           Hard Limit           Units\nMax open files            4096                 20000                files\n';
  expect([
    maxOpenFiles(limits),
    maxOpenFiles(''),
    maxOpenFiles('Max open files            unlimited            unlimited            files'),
  ]).toEqual([4_096, null, null]);
});

it('a child process may have as many files open as its parent', () => {
  expect(execFileSync('sh', ['-c', 'ulimit -Sn'], { encoding: 'utf8' }).trim()).toBe(String(maxOpenFiles() ?? 'unlimited'));
});
