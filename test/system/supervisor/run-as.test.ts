import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CHILDREN, childrenOf } from '../../support/processes.js';
import { checkoutForAll, Instance, UpProcess } from '../../support/up.js';

const NOBODY = 65_534;
const BOT_TOKEN = 'bot-token-of-a-test';
const CONTROL_SECRET = 'control-secret-of-a-test';

let checkout: Awaited<ReturnType<typeof checkoutForAll>>;
let instance: Instance;
let up: UpProcess | undefined;

beforeAll(async () => {
  checkout = await checkoutForAll();
});

afterAll(() => checkout.remove());

beforeEach(async () => {
  instance = await Instance.settings({ TRUNKLINE_AGENTS_BEARER_TOKEN: BOT_TOKEN, TRUNKLINE_DRACHTIO_SECRET: CONTROL_SECRET });
  chmodSync(instance.directory, 0o755);
});

afterEach(async () => {
  await up?.destroy();
  await instance.remove();
});

function start(overrides: Readonly<Record<string, string>>, uid?: number): UpProcess {
  up = UpProcess.spawn({ ...instance.environment, ...overrides }, uid, checkout.directory);
  return up;
}

const line = (pid: number, name: string): string =>
  new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1] ?? '';
const four = `${String(NOBODY)}\t${String(NOBODY)}\t${String(NOBODY)}\t${String(NOBODY)}`;

/** Only root can become somebody else. */
const needsRoot = process.getuid?.() === 0;

describe.skipIf(!needsRoot)('a start as root with run_as', () => {
  it('runs every process as that user and group, without capabilities or a way to more, with the secrets in place', async () => {
    // From a time when it ran as root, with a link that leads out of the directory.
    const outside = join(instance.directory, 'outside');
    writeFileSync(outside, 'of root', { mode: 0o600 });
    mkdirSync(instance.dataDir, { mode: 0o700 });
    writeFileSync(join(instance.dataDir, 'control-secret'), 'kept', { mode: 0o600 });
    symlinkSync(outside, join(instance.dataDir, 'link'));
    const running = start({ TRUNKLINE_RUN_AS: 'nobody' });
    await running.printed('Trunkline is ready.');
    expect(running.output).not.toContain('runs as root');
    const children = childrenOf(running.pid);
    expect(children.map(({ name }) => name).sort()).toEqual([...CHILDREN].sort());
    for (const { pid } of [{ pid: running.pid }, ...children]) {
      expect([line(pid, 'Uid'), line(pid, 'Gid'), line(pid, 'Groups')]).toEqual([four, four, '']);
      expect([line(pid, 'CapEff'), line(pid, 'CapPrm'), line(pid, 'CapAmb')]).toEqual(Array(3).fill('0'.repeat(16)));
    }
    for (const { name, pid } of children) expect([name, line(pid, 'NoNewPrivs')]).toEqual([name, '1']);

    const environmentOf = (pid: number): string => readFileSync(`/proc/${String(pid)}/environ`, 'utf8');
    const knows = (secret: string) => children.filter(({ pid }) => environmentOf(pid).includes(secret)).map(({ name }) => name);
    expect(knows(BOT_TOKEN)).toEqual(['gateway']);
    expect(knows(CONTROL_SECRET).sort()).toEqual(['gateway', 'sip-server']);
    expect(knows('TRUNKLINE_').sort()).toEqual(['gateway', 'sip-server']);
    const rtpengine = children.find(({ name }) => name === 'rtpengine');
    expect(readFileSync(`/proc/${String(rtpengine?.pid)}/maps`, 'utf8')).toContain('/libjemalloc.so.2');

    expect([statSync(instance.dataDir).mode & 0o777, statSync(outside).uid]).toEqual([0o700, 0]);
    for (const name of readdirSync(instance.dataDir)) expect([name, lstatSync(join(instance.dataDir, name)).uid]).toEqual([name, NOBODY]);
    expect((await fetch(`http://127.0.0.1:${instance.environment['TRUNKLINE_HTTP_PORT']!}/readyz`)).status).toBe(200);
    running.kill('SIGTERM');
    expect(await running.ended).toBe(0);
  });

  it.each([
    ['nobody-of-this-name', 'no such user. Create it: useradd'],
    ['root', 'is root or in its group'],
    ['-x', 'must be the name of a user'],
  ])('refuses %s: %s', async (name, text) => {
    const refused = start({ TRUNKLINE_RUN_AS: name });
    expect(await refused.ended).toBe(1);
    expect(refused.output).toContain(`run_as = ${JSON.stringify(name)}`);
    expect(refused.output).toContain(text);
  });

  it('refuses a data_dir of another user, which keeps its owner', async () => {
    mkdirSync(instance.dataDir, { mode: 0o700 });
    chownSync(instance.dataDir, 12_345, 12_345);
    const refused = start({ TRUNKLINE_RUN_AS: 'nobody' });
    expect(await refused.ended).toBe(1);
    expect(refused.output).toContain(`data_dir ${instance.dataDir} belongs to user id 12345`);
    expect(statSync(instance.dataDir).uid).toBe(12_345);
  });

  it('uses a data_dir of root that the user may write to, as a mounted volume is, with its mode', async () => {
    mkdirSync(instance.dataDir);
    chmodSync(instance.dataDir, 0o2777);
    const running = start({}, NOBODY);
    await running.printed('Trunkline is ready.');
    expect([statSync(instance.dataDir).uid, statSync(instance.dataDir).mode & 0o7777]).toEqual([0, 0o2777]);
    const secret = statSync(join(instance.dataDir, 'control-secret'), { throwIfNoEntry: false });
    expect([secret?.uid ?? NOBODY, (secret?.mode ?? 0o600) & 0o777]).toEqual([NOBODY, 0o600]);
  });

  it.each(['up', 'gateway', 'sip-server'])('refuses in %s a data_dir of root that the user may not write to', async (command) => {
    mkdirSync(instance.dataDir);
    chmodSync(instance.dataDir, 0o755);
    up = UpProcess.spawn(instance.environment, NOBODY, checkout.directory, command);
    expect(await up.ended).toBe(1);
    expect(up.output.trim()).toBe(
      `trunkline: data_dir ${instance.dataDir} cannot be used: EACCES: permission denied, access '${instance.dataDir}'. ` +
        `Trunkline runs as user id 65534: chown -R 65534 ${instance.dataDir} (for a container, the directory or volume that is mounted there), ` +
        'or set data_dir (TRUNKLINE_DATA_DIR) to a directory that its user may write to.',
    );
    expect(readdirSync(instance.dataDir)).toEqual([]);
  });

  it('accepts a user id without a name, as a container may have, in a directory of its own', async () => {
    const nameless = 54_321;
    mkdirSync(instance.dataDir, { mode: 0o700 });
    chownSync(instance.dataDir, nameless, nameless);
    await start({}, nameless).printed('Trunkline is ready.');
  });

  it('refuses a data_dir that the user cannot access', async () => {
    chmodSync(instance.directory, 0o700);
    const refused = start({ TRUNKLINE_RUN_AS: 'nobody' });
    expect(await refused.ended).toBe(1);
    expect(refused.output).toContain(`data_dir ${instance.dataDir} is not accessible to nobody`);
  });

  it('without it warns and names the setting', async () => {
    const warned = start({});
    await warned.printed('Trunkline is ready.');
    await warned.printed('everything runs as root: set run_as (TRUNKLINE_RUN_AS)');
  });

  it('by another user refuses a different user', async () => {
    const refused = start({ TRUNKLINE_RUN_AS: 'daemon' }, NOBODY);
    expect(await refused.ended).toBe(1);
    expect(refused.output.trim()).toBe(
      'trunkline: run_as = "daemon" needs root, and this is nobody: start it as root or as daemon, or unset run_as (TRUNKLINE_RUN_AS)',
    );
  });
});
