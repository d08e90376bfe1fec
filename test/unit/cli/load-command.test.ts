import { describe, expect, it } from 'vitest';
import { loadCommand } from '../../../src/cli/load.js';
import { loadConfig } from '../../../src/config/load.js';
import { runCommand } from '../../support/run-command.js';

const config = loadConfig({ environment: {}, set: ['data_dir=/nowhere/at/all'] });

/** What the command says when it refuses: it calls nobody and asks no API. */
async function refusal(...flags: readonly string[]): Promise<string> {
  let said = '';
  const write = (text: string): void => {
    said += text;
  };
  const fetch = () => Promise.reject(new Error('the API was asked'));
  const command = loadCommand({ config: () => config, environment: {}, print: write, fetch });
  try {
    expect(await runCommand(command, flags, { print: write, error: write })).toBe(1);
  } catch (error) {
    return (error as Error).message;
  }
  return said;
}

const OWN = ['--target', '127.0.0.1:1', '--number', '+15550100100'];

describe('trunkline load refuses', () => {
  it.each<[string, string[], string]>([
    ['an address that is not this machine', ['--target', '192.0.2.1:5061', '--number', '1'], 'add --i-own-the-target'],
    ['an IPv6 address that is not this machine', ['--target', '[2001:db8::1]:5061', '--number', '1'], 'add --i-own-the-target'],
    ['a name that is not this machine', ['--target', 'sip.example.com:5061', '--number', '1'], 'add --i-own-the-target'],
    ['a target in a wrong form', ['--target', 'nonsense', '--number', '1'], 'is not host:port'],
    ['a port out of range', ['--target', '127.0.0.1:70000', '--number', '1'], 'is not host:port'],
    ['to guess a gateway', ['--number', '1'], 'no running gateway in /nowhere/at/all'],
    ['to guess a number', ['--target', '127.0.0.1:5061'], 'no number to call: set --number'],
    ['a target without its CA', OWN, 'set --ca FILE'],
    ['a CA file that does not exist', [...OWN, '--ca', '/nowhere.pem'], 'file /nowhere.pem not found'],
    ['a scenario that does not exist', [...OWN, '--ca', 'package.json', '--sipp-scenario', '/nowhere.xml'], 'file /nowhere.xml not found'],
    ['a number with more in it', ['--target', '127.0.0.1:1', '--number', '1>;evil'], '--number must be digits'],
    ['a caller with more in it', [...OWN, '--from', '1 2'], '--from must be digits'],
    ['no rate', ['--cps', '0'], 'must be a number from 0.1 to 20000'],
    ['half a call', ['--calls', '1.5'], 'must be a whole number'],
    ['more media than calls', ['--media', '101'], 'must be a number from 0 to 100'],
    ['digits that do not exist', ['--digits', 'xyz'], 'must be DTMF digits'],
    ['another ramp', ['--ramp', 'up'], 'must be rate, held or both'],
    ['another direction', ['--direction', 'up'], 'must be sendrecv or inactive'],
    ['ports the wrong way round', ['--media-ports', '5000-4000'], 'must be two ports'],
  ])('%s', async (_name, flags, text) => {
    expect(await refusal(...flags)).toContain(text);
  });
});
