import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { completionCommand } from '../../../src/cli/completion.js';

const run = promisify(execFile);

async function script(shell: string): Promise<string> {
  const program = new Command('trunkline').option('--set <name=value>', 'one setting');
  const key = new Command('key');
  key.addCommand(new Command('list').option('--json', 'print JSON'));
  key.addCommand(new Command('create').option('--operator', 'of yours'));
  program.addCommand(key);
  let printed = '';
  program.addCommand(
    completionCommand(
      () => program,
      (text) => (printed = text),
    ),
  );
  await program.parseAsync(['completion', shell], { from: 'user' });
  return printed;
}

it.each([
  [
    ['trunkline', ''],
    ['key', 'completion', '--set', '--help'],
  ],
  [
    ['trunkline', 'key', ''],
    ['list', 'create', '--help'],
  ],
  [
    ['trunkline', '--set', 'key', 'list', '--'],
    ['--json', '--help'],
  ],
  [['trunkline', 'key', 'cr'], ['create']],
  [['trunkline', 'key', 'create', 'some org', '--op'], ['--operator']],
])('bash completes %j', async (words, expected) => {
  const typed = words.map((word) => `'${word}'`).join(' ');
  const ask = `${await script('bash')}\nCOMP_WORDS=(${typed}) COMP_CWORD=${String(words.length - 1)}; _trunkline; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await run('bash', ['--norc', '-c', ask]);
  expect(stdout.trim().split('\n')).toEqual(expected);
});

it('zsh and fish have scripts of their own', async () => {
  expect(await script('zsh')).toContain('compdef _trunkline trunkline');
  expect(await script('fish')).toContain(
    "complete -c trunkline -n '__fish_seen_subcommand_from key; and __fish_seen_subcommand_from list' -l json",
  );
});
