import { describe, expect, it } from 'vitest';
import { simulateCommand } from '../../../src/cli/simulate.js';
import { runCommand } from '../../support/run-command.js';

describe('trunkline simulate refuses', () => {
  it.each<[string, string[], string]>([
    ['no call', ['--calls', '0'], 'must be a whole number from 1 to 100'],
    ['more calls than one machine can play', ['--calls', '101'], 'must be a whole number from 1 to 100'],
    ['half a second', ['--seconds', '1.5'], 'must be a whole number from 1 to 3600'],
    ['an empty time', ['--answer-within', ' '], 'must be a whole number from 1 to 100000'],
    ['a script that does not exist', ['--script', '/nowhere.yaml'], 'cannot read /nowhere.yaml'],
    ['a script in a wrong form', ['--script', 'package.json'], 'package.json: expected a list of 1 to 100 steps'],
    ['another format', ['--format', 'opus'], 'Allowed choices are twilio, pcmu, pcma, pcm16-8000, pcm16-16000.'],
  ])('%s', async (_name, flags, text) => {
    let written = '';
    const write = (part: string): void => {
      written += part;
    };
    expect(
      await runCommand(
        simulateCommand({ config: () => ({ data_dir: '/nowhere' }), environment: {}, print: write }),
        [...flags, 'ws://127.0.0.1:1/'],
        { print: write, error: write },
      ),
    ).toBe(1);
    expect(written).toContain(text);
  });
});
