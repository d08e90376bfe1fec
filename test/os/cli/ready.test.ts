import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { caOfSipServer, startedWith } from '../../../src/cli/ready.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'trunkline-ready-'));
});
afterEach(() => rm(directory, { recursive: true }));

const FLAGS = { config: '/etc/mine.yaml', set: ['http.port=8090'] };
const write = (content: object): Promise<void> => writeFile(join(directory, 'ready.json'), JSON.stringify(content));

describe('the flags that a running product was started with', () => {
  it('are read while it runs', async () => {
    await write({ pid: process.pid, config_flags: FLAGS });
    expect(startedWith({ data_dir: directory })).toEqual(FLAGS);
  });

  it('are null where none runs, where it has died, and where the file lacks them', async () => {
    expect(startedWith({ data_dir: directory })).toBeNull();
    const dead = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await once(dead, 'exit');
    await write({ pid: dead.pid, config_flags: FLAGS });
    expect(startedWith({ data_dir: directory })).toBeNull();
    await write({ pid: process.pid });
    expect(startedWith({ data_dir: directory })).toBeNull();
  });
});

describe('the CA of the SIP server’s certificate', () => {
  it('is the one that was made, else the one of ca_file, as with an external server, and none with a public one', () => {
    expect(caOfSipServer('/data/tls/ca.pem', { ca_file: '/etc/private.pem' })).toBe('/data/tls/ca.pem');
    expect(caOfSipServer(null, { ca_file: '/etc/private.pem' })).toBe('/etc/private.pem');
    expect(caOfSipServer(null, { ca_file: 'private.pem' })).toBe(join(process.cwd(), 'private.pem'));
    expect(caOfSipServer(null, { ca_file: null })).toBeNull();
  });
});
