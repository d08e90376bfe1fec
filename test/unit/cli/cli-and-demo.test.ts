import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyCommand } from '../../../src/cli/key.js';
import { orgCommand } from '../../../src/cli/org.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { ensureDemo } from '../../../src/gateway/wiring/demo.js';
import { createMemoryStores } from '../../support/store/memory.js';
import type { ApiKeyRecord, Stores } from '../../../src/gateway/ports/stores.js';
import { runCommand } from '../../support/run-command.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const clock = new VirtualClock();

describe('trunkline org and key', () => {
  let stores: Stores;
  let printed: string[];
  let notes: string[];
  let errors: string;
  let closed: number;
  beforeEach(() => {
    stores = createMemoryStores({ clock });
    printed = [];
    notes = [];
    errors = '';
    closed = 0;
  });

  const print = (line: string): void => void printed.push(line);
  const connect = () => Promise.resolve({ ...stores, close: () => Promise.resolve(void (closed += 1)) });

  /** Runs one command; resolves with its exit code. */
  async function run(...args: string[]): Promise<number> {
    const build = args[0] === 'org' ? orgCommand : keyCommand;
    const command = build({ connect, print, note: (line) => void notes.push(line) });
    return runCommand(command, args.slice(1), { print, error: (text) => (errors += text) });
  }
  const json = (): unknown => JSON.parse(printed.at(-1) ?? '');

  it('creates an organization and a key, and shows both without secrets', async () => {
    expect(await run('org', 'create', 'My company', '--sip')).toBe(0);
    expect(await run('key', 'create', 'My company', '--name', 'ci')).toBe(0);
    const key = printed.find((line) => line.startsWith('tl_'));
    const org = (await stores.orgs.list())[0];
    expect(await stores.keys.find(key ?? '')).toMatchObject({ name: 'ci', org_id: org?.org_id });
    printed = [];
    expect(await run('org', 'list')).toBe(0);
    expect(await run('org', 'list', '--json')).toBe(0);
    expect(await run('key', 'list', 'My company')).toBe(0);
    const text = printed.join('\n');
    expect(text).toContain('My company');
    expect(text).toContain('ci');
    expect(text).not.toContain(org?.webhook_secret);
    expect(text).not.toContain(org?.twilio_token);
    expect(text).not.toContain(key);
    expect(closed).toBe(5);
  });

  it('changes the entitlement and the state, by id and by name', async () => {
    await run('org', 'create', 'a', '--json');
    const { org_id } = json() as { org_id: string };
    for (const [command, field, value] of [
      ['enable-sip', 'sip_enabled', true],
      ['disable-sip', 'sip_enabled', false],
      ['disable', 'disabled', true],
      ['enable', 'disabled', false],
    ] as const) {
      expect(await run('org', command, command.includes('sip') ? org_id : 'a', '--json')).toBe(0);
      expect(json()).toMatchObject({ [field]: value });
      expect((await stores.orgs.get(org_id))?.[field]).toBe(value);
    }
  });

  it('sets limits, keeps the others, and removes them', async () => {
    await run('org', 'create', 'a');
    const stored = async () => (await stores.orgs.list())[0];
    expect(await run('org', 'set-limits', 'a', '--max-concurrent-calls', '10', '--allowed-sources', '203.0.113.0/24, 2001:db8::1')).toBe(0);
    expect(printed.at(-1)).toBe('"a": calls in progress 10, calls a second no limit, from 203.0.113.0/24, 2001:db8::1');
    expect(await run('org', 'set-limits', 'a', '--max-calls-per-second', '0', '--json')).toBe(0);
    const limits = { max_concurrent_calls: 10, max_calls_per_second: 0, allowed_sources: ['203.0.113.0/24', '2001:db8::1'] };
    expect(json()).toMatchObject(limits);
    expect(await stored()).toMatchObject(limits);
    await run('org', 'set-limits', 'a', '--max-concurrent-calls', 'none', '--max-calls-per-second', 'none', '--allowed-sources', 'any');
    expect(await stored()).toMatchObject({ max_concurrent_calls: null, max_calls_per_second: null, allowed_sources: [] });
  });

  it('sets limits on providers, and shows their usage', async () => {
    await run('org', 'create', 'a');
    const flags = ['--max-provider-sessions', '2', '--max-provider-minutes-per-day', '60', '--max-provider-tokens-per-day', '1000000'];
    expect(await run('org', 'set-limits', 'a', ...flags)).toBe(0);
    expect(printed.at(-1)).toMatch(/, sessions at providers 2, minutes a day at providers 60, tokens a day at providers 1000000$/);
    const limits = { max_provider_sessions: 2, max_provider_minutes_per_day: 60, max_provider_tokens_per_day: 1_000_000 };
    expect((await stores.orgs.list())[0]).toMatchObject(limits);
    expect(await run('org', 'provider-usage', 'a')).toBe(0);
    expect(printed.at(-1)).toBe('"a": 0 sessions, 0 minutes and 0 tokens today');
    expect(await run('org', 'set-limits', 'a', '--max-provider-sessions', 'none')).toBe(0);
    expect((await stores.orgs.list())[0]).toMatchObject({ ...limits, max_provider_sessions: null });
  });

  it('lets an organization place calls, and allows nothing that was never set', async () => {
    await run('org', 'create', 'a');
    const dialling = async () => (await stores.orgs.list())[0]?.dialling;
    expect(await dialling()).toBeNull();
    expect(await run('org', 'set-dialling', 'a', '--prices', '+49=0.02, +49900=never', '--callers', '+15551234567,15551234568')).toBe(0);
    expect(await dialling()).toEqual({
      prices: { '+49': 0.02, '+49900': null },
      callers: ['+15551234567', '+15551234568'],
      max_calls_per_second: 0,
      max_concurrent_calls: 0,
      max_calls_per_day: 0,
      max_cost_per_day: 0,
    });
    expect(printed.at(-1)).toMatch(
      /; places no calls until --max-calls-per-second, --max-concurrent-calls, --max-calls-per-day, --max-cost-per-day is set$/,
    );
    const limits = [
      '--max-calls-per-second',
      '2',
      '--max-concurrent-calls',
      '20',
      '--max-calls-per-day',
      '200',
      '--max-cost-per-day',
      '12.5',
    ];
    expect(await run('org', 'set-dialling', 'a', ...limits)).toBe(0);
    expect(printed.at(-1)).toBe(
      '"a": calls from +15551234567, +15551234568 to +49 0.02, +49900 never; 2 calls a second, 20 at once, 200 a day, cost of a day 12.5',
    );
    expect(await run('org', 'set-dialling', 'a', '--callers', 'none')).toBe(0);
    expect(await dialling()).toMatchObject({ callers: [], max_calls_per_second: 2, prices: { '+49': 0.02 } });
    expect(await dialling()).not.toHaveProperty('per_trunk');
    expect(await run('org', 'disable-dialling', 'a')).toBe(0);
    expect([await dialling(), printed.at(-1)]).toEqual([null, '"a": places no calls']);
    const entries = await stores.audit.list((await stores.orgs.list())[0]?.org_id ?? '', { take: 9 });
    expect(entries.filter(({ fields }) => fields.includes('dialling'))).toHaveLength(4);
  });

  it('limits placed calls per trunk: an option left out keeps its limit, and without any limit trunks have none', async () => {
    await run('org', 'create', 'a');
    const perTrunk = async () => (await stores.orgs.list())[0]?.dialling?.per_trunk;
    const set = (...flags: string[]) => run('org', 'set-dialling', 'a', ...flags);
    expect(await set('--max-calls-per-second-per-trunk', '2', '--max-calls-per-day-per-trunk', '0')).toBe(0);
    expect(await perTrunk()).toEqual({ max_calls_per_second: 2, max_calls_per_day: 0 });
    expect(await set('--max-concurrent-calls-per-trunk', '9', '--max-calls-per-day-per-trunk', 'none')).toBe(0);
    expect(printed.at(-1)).toMatch(/, cost of a day 0; on each trunk 2 calls a second, 9 at once; places no calls until /);
    expect(await set('--max-calls-per-second', '5')).toBe(0);
    expect(await perTrunk()).toEqual({ max_calls_per_second: 2, max_concurrent_calls: 9 });
    expect(await set('--max-calls-per-second-per-trunk', 'none', '--max-concurrent-calls-per-trunk', 'none')).toBe(0);
    expect((await stores.orgs.list())[0]?.dialling).not.toHaveProperty('per_trunk');
    const entries = await stores.audit.list((await stores.orgs.list())[0]?.org_id ?? '', { take: 9 });
    expect(entries.filter(({ fields }) => fields.includes('dialling'))).toHaveLength(4);
  });

  it.each([
    [['--prices', '49=0.02'], 'is not a prefix with its price'],
    [['--prices', '+49=free'], 'is not a prefix with its price'],
    [['--prices', '+49'], 'is not a prefix with its price'],
    [['--callers', '112'], 'is not a phone number in E.164 form'],
    [['--max-calls-per-second', '1.5'], 'must be a whole number from 0 to 10000'],
    [['--max-cost-per-day', '-1'], 'must be 0 to 1000000'],
    [['--max-calls-per-second-per-trunk', '10001'], 'must be 0 to 10000, or "none"'],
    [[], 'nothing to change'],
  ])('set-dialling %j ends with code 1 and changes nothing', async (flags, message) => {
    await run('org', 'create', 'a');
    expect(await run('org', 'set-dialling', 'a', ...flags)).toBe(1);
    expect(errors).toContain(message);
    expect((await stores.orgs.list())[0]?.dialling).toBeNull();
  });

  it('sets how long transcripts are kept', async () => {
    await run('org', 'create', 'a');
    for (const [given, days] of [
      ['7', 7],
      ['none', 0],
      ['records', null],
    ] as const) {
      expect(await run('org', 'set-transcripts', 'a', given)).toBe(0);
      expect((await stores.orgs.list())[0]?.transcript_days).toBe(days);
    }
    expect(await run('org', 'set-transcripts', 'a', '0')).toBe(1);
  });

  it.each([
    ['webhook-secret', 'webhook_secret', /^whsec_[A-Za-z0-9+/]{43}=$/, ''],
    ['twilio-token', 'twilio_token', /^[\w-]{43}$/, 'TWILIO_AUTH_TOKEN='],
  ] as const)('shows the %s of an organization on request, and creates another one', async (command, field, form, before) => {
    await run('org', 'create', 'a');
    const stored = async () => (await stores.orgs.list())[0]!;
    const { org_id, [field]: first } = await stored();
    expect(await run('org', command, 'a')).toBe(0);
    expect([printed.at(-1), notes]).toEqual([`${before}${first}`, [`Organization: a (${org_id})`]]);
    expect(await run('org', command, org_id, '--rotate', '--json')).toBe(0);
    const second = (await stored())[field];
    expect(second).toMatch(form);
    expect(second).not.toBe(first);
    const sid = `AC${org_id.replaceAll('-', '')}`;
    if (field === 'twilio_token') expect(printed).toContain(`TWILIO_ACCOUNT_SID=${sid}`);
    expect(json()).toEqual({ org_id, [field]: second, ...(field === 'twilio_token' ? { account_sid: sid } : {}) });
    expect(await run('org', command, 'nobody')).toBe(1);
  });

  it.each([
    [['--max-concurrent-calls', '-1'], 'must be 0 to 100000'],
    [['--max-calls-per-second', '10001'], 'must be 0 to 10000'],
    [['--allowed-sources', '203.0.113.0/24,example.com'], '"example.com" is not an IP address'],
    [[], 'nothing to change'],
  ])('set-limits %j ends with code 1 and changes nothing', async (flags, message) => {
    await run('org', 'create', 'a');
    const before = await stores.orgs.list();
    expect(await run('org', 'set-limits', 'a', ...flags)).toBe(1);
    expect(errors).toContain(message);
    expect(await stores.orgs.list()).toEqual(before);
  });

  it('creates, lists and revokes operator keys', async () => {
    await run('org', 'create', 'a');
    expect(await run('key', 'create', '--operator', '--name', 'ops', '--json')).toBe(0);
    const { key, key_id: keyId, org_id: orgId } = json() as { key: string; key_id: string; org_id: null };
    expect([orgId, (await stores.keys.find(key))?.key_id]).toEqual([null, keyId]);
    expect(await run('key', 'list', '--operator')).toBe(0);
    expect(printed.join('\n')).toContain(keyId);
    expect(printed.join('\n')).not.toContain(`  ${key}`);
    for (const wrong of [['create'], ['list'], ['create', 'a', '--operator']]) expect(await run('key', ...wrong)).toBe(1);
    expect(await run('key', 'revoke', keyId)).toBe(0);
    expect(await stores.keys.find(key)).toBeNull();
  });

  it('revokes a key by its id', async () => {
    await run('org', 'create', 'a');
    await run('key', 'create', 'a', '--json');
    const { key, key_id } = json() as { key: string } & ApiKeyRecord;
    expect(await run('key', 'revoke', key_id)).toBe(0);
    expect(printed.at(-1)).toBe(`Revoked key ${key_id} ("default") of "a".`);
    expect(await stores.keys.find(key)).toBeNull();
  });

  it.each([
    [['org', 'enable-sip', 'nobody'], 'organization "nobody" not found'],
    [['key', 'create', 'nobody'], 'organization "nobody" not found'],
    [['key', 'revoke', 'tl_the-key-itself'], 'no key has this id'],
    [['org', 'create', '  '], 'must be 1 to 100 printable characters'],
    [['org', 'create'], "missing required argument 'name'"],
  ])('ends %j with code 1 and the cause', async (args, message) => {
    expect(await run(...args)).toBe(1);
    expect(errors).toContain(message);
    expect(errors).not.toContain('tl_the-key-itself');
  });

  it('refuses a second organization of the same name, and names the remedy when names are not unique', async () => {
    await run('org', 'create', 'a');
    expect(await run('org', 'create', 'a')).toBe(1);
    await stores.orgs.create({ name: 'a', sip_enabled: false });
    expect(await run('org', 'disable', 'a')).toBe(1);
    expect(errors).toContain('2 organizations are called "a": use the id');
  });

  it('names the command to start with when Redis is away', async () => {
    const command = orgCommand({ connect: () => Promise.reject(new StoreUnavailableError('Redis did not answer')), print }).exitOverride();
    for (const one of command.commands) one.exitOverride().configureOutput({ writeErr: (text) => (errors += text) });
    await expect(command.parseAsync(['list'], { from: 'user' })).rejects.toMatchObject({ exitCode: 1 });
    expect(errors).toContain('trunkline up');
  });
});

describe('ensureDemo', () => {
  let dataDir: string;
  let stores: Stores;
  const number = '+15550100100' as E164;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'trunkline-demo-'));
    stores = createMemoryStores({ clock });
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  const ensure = () => ensureDemo({ stores, dataDir, clock });

  it('creates organization, key, agent and number', async () => {
    const demo = await ensure();
    expect(demo.phone_number).toBe(number);
    expect(await stores.keys.find(demo.api_key)).toMatchObject({ org_id: demo.org_id });
    const { route } = await stores.routes.lookup(number, null);
    expect(route).toMatchObject({ org: { org_id: demo.org_id, sip_enabled: true }, agent: { agent_id: demo.agent_id } });
    expect(route?.agent?.first_sentence?.length).toBeLessThan(200);
    const path = join(dataDir, 'demo.json');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ api_key: demo.api_key, org_id: demo.org_id, agent_id: demo.agent_id });
  });

  it('keeps at a second start what was changed in between', async () => {
    const demo = await ensure();
    await stores.numbers.detach(demo.org_id, number, ['inbound']);
    await stores.orgs.change(demo.org_id, { sip_enabled: false });
    await stores.keys.revoke((await stores.keys.list(demo.org_id))[0]!.key_id);
    expect(await ensure()).toEqual(demo);
    expect(await stores.numbers.get(demo.org_id, number)).toBeNull();
    expect((await stores.orgs.get(demo.org_id))?.sip_enabled).toBe(false);
    expect(await stores.keys.find(demo.api_key)).toBeNull();
  });

  it('gives a store that lost its data the same ids and key', async () => {
    const demo = await ensure();
    stores = createMemoryStores({ clock });
    expect(await ensure()).toEqual(demo);
    expect(await stores.keys.find(demo.api_key)).toMatchObject({ org_id: demo.org_id });
    expect((await stores.routes.lookup(number, null)).route?.agent?.agent_id).toBe(demo.agent_id);
  });

  it('completes a start that was cut short', async () => {
    const failing = { ...stores, numbers: { ...stores.numbers, attach: () => Promise.reject(new Error('cut')) } as never };
    await expect(ensureDemo({ stores: failing, dataDir, clock })).rejects.toThrow('cut');
    const demo = await ensure();
    expect((await stores.routes.lookup(number, null)).route?.org.org_id).toBe(demo.org_id);
  });

  it('leaves the number with another organization that has it', async () => {
    const org = await stores.orgs.create({ name: 'other', sip_enabled: true });
    const setting = { agent_id: null, options: { allowed_sources: [], max_concurrent_calls: null, max_calls_per_second: null } };
    await stores.numbers.attach(org.org_id, number, {
      inbound: { ...setting, options: { ...setting.options, media_encryption: 'required' } },
    });
    await ensure();
    expect((await stores.routes.lookup(number, null)).route?.org.org_id).toBe(org.org_id);
  });

  it('takes over the demo organization without its file, with a new key', async () => {
    const demo = await ensure();
    await rm(join(dataDir, 'demo.json'));
    const again = await ensure();
    expect(again).toEqual({ ...demo, api_key: again.api_key });
    expect(again.api_key).not.toBe(demo.api_key);
    expect(await stores.keys.find(again.api_key)).toMatchObject({ org_id: demo.org_id });
  });

  it('reports a damaged file with an error that does not show it', async () => {
    await writeFile(join(dataDir, 'demo.json'), '{"api_key":"tl_secret');
    await expect(ensure()).rejects.toThrow(/demo\.json is damaged/);
    await expect(ensure()).rejects.not.toThrow(/tl_secret/);
  });
});
