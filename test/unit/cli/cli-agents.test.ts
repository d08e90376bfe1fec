import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { agentCommand } from '../../../src/cli/agent.js';
import { batchCommand } from '../../../src/cli/batch.js';
import { toolCommand } from '../../../src/cli/tool.js';
import { DEFAULT_AGENT_SETTINGS } from '../../../src/gateway/model/agent-record.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../../src/gateway/model/records.js';
import type { PlaceRequest } from '../../../src/gateway/ports/place-call.js';
import type { Stores } from '../../../src/gateway/ports/stores.js';
import { runCommand } from '../../support/run-command.js';
import { openApi, type ApiFixture } from '../gateway/api/api-fixture.js';

let api: ApiFixture;
let stores: Stores;
let orgId: string;
let directory: string;
let printed: string[];
let errors: string;

/** Why nothing may be dialled; `null`: it may. */
let refusal: string | null;

beforeEach(async () => {
  refusal = null;
  const place = ({ callId }: PlaceRequest) => ({ ok: true as const, value: callId });
  api = await openApi({
    placeCall: {
      kept: () => Promise.resolve(),
      fromRefusal: () => refusal,
      priceOf: () => ({ ok: true, value: 0.01 }),
      refusal: () => null,
      place,
    },
  });
  ({ stores, orgId } = api);
  directory = await mkdtemp(join(tmpdir(), 'trunkline-cli-'));
  await writeFile(join(directory, 'ready.json'), JSON.stringify({ http: 'http://127.0.0.1:8080', api_key: api.key }));
  [printed, errors] = [[], ''];
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

const COMMANDS = { agent: agentCommand, tool: toolCommand, batch: batchCommand };

/** Runs one command with the organization's key; resolves with its exit code. */
async function run(name: keyof typeof COMMANDS, ...args: string[]): Promise<number> {
  const print = (line: string) => void printed.push(line);
  const command = COMMANDS[name]({
    config: () => ({ data_dir: directory }),
    environment: {},
    print,
    note: () => undefined,
    fetch: api.fetch,
  });
  return runCommand(command, args, { print, error: (text) => (errors += text) });
}

async function file(name: string, content: unknown): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

describe('trunkline agent', () => {
  it('creates, changes, shows and deletes an agent, and never prints its token', async () => {
    const settings = await file('settings.json', { prompt: 'Be kind.', language: 'ger' });
    const token = await file('token', 'secret-token\n');
    const flags = ['--name', 'bot', '--url', 'wss://bot.example/', '--bearer-token-file', token, '--settings', settings];
    expect(await run('agent', 'create', ...flags)).toBe(0);
    const made = (await stores.agents.list(orgId)).records[0]!;
    expect(made).toMatchObject({
      ...DEFAULT_AGENT_SETTINGS,
      name: 'bot',
      prompt: 'Be kind.',
      language: 'GER',
      stream: { url: 'wss://bot.example/', format: 'twilio', bearer_token: 'secret-token' },
    });
    expect(await run('agent', 'set', made.agent_id, '--format', 'pcm16-16000')).toBe(0);
    expect((await stores.agents.get(orgId, made.agent_id))?.stream).toEqual({
      url: 'wss://bot.example/',
      format: 'pcm16-16000',
      bearer_token: 'secret-token',
    });
    for (const command of ['list', 'show']) await run('agent', command, ...(command === 'show' ? [made.agent_id] : []));
    await run('agent', 'list', '--json');
    expect(printed.join('\n')).toContain('wss://bot.example/');
    expect(printed.join('\n')).not.toContain('secret-token');
    expect(await run('agent', 'set', made.agent_id, '--url', 'wss://elsewhere.example/')).toBe(0);
    expect((await stores.agents.get(orgId, made.agent_id))?.stream).toMatchObject({ bearer_token: null });
    expect(await run('agent', 'set', made.agent_id, '--url', 'test-line')).toBe(0);
    expect((await stores.agents.get(orgId, made.agent_id))?.stream).toBe('test-line');
    const [noted] = (await stores.audit.list(orgId, { take: 3 })).filter(({ fields }) => fields.length > 0);
    expect([noted?.action, noted?.fields]).toEqual(['agent.update', ['stream']]);
    const number = '+15551234567' as E164;
    await stores.numbers.attach(orgId, number, { inbound: { agent_id: made.agent_id, options: DEFAULT_INBOUND_OPTIONS } });
    expect(await run('agent', 'delete', made.agent_id)).toBe(1);
    expect(errors).toContain(number);
    await stores.numbers.detach(orgId, number, ['inbound']);
    expect(await run('agent', 'delete', made.agent_id)).toBe(0);
    expect((await stores.agents.list(orgId)).records).toEqual([]);
  });

  it('names every field that is wrong, and creates nothing', async () => {
    const settings = await file('settings.json', { promt: 'x', max_duration: 0 });
    expect(await run('agent', 'create', '--settings', settings, '--url', 'https://bot.example')).toBe(1);
    for (const part of ['promt', 'max_duration', 'stream']) expect(errors).toContain(part);
    expect(await run('agent', 'create', '--settings', await file('broken.json', '{'))).toBe(1);
    expect(await run('agent', 'create', '--settings', join(directory, 'nothing'))).toBe(1);
    expect(await run('agent', 'set', 'nobody', '--name', 'x')).toBe(1);
    expect((await stores.agents.list(orgId)).records).toEqual([]);
  });
});

describe('trunkline tool', () => {
  it('creates a tool from a file, lists and deletes it', async () => {
    const tool = { name: 'book', description: 'Books a table.', url: 'https://customer.example/book' };
    expect(await run('tool', 'create', await file('tool.json', { label: 'Booking', tool }))).toBe(0);
    const made = (await stores.tools.list(orgId)).records[0]!;
    expect([made.tool_id, made.label, made.tool.url]).toEqual([expect.stringMatching(/^TL-/), 'Booking', tool.url]);
    expect(await run('tool', 'list')).toBe(0);
    expect(printed.join('\n')).toContain(made.tool_id);
    expect(await run('tool', 'delete', made.tool_id)).toBe(0);
    expect(await run('tool', 'delete', made.tool_id)).toBe(1);
    expect(await run('tool', 'create', await file('tool.json', { tool: { ...tool, url: 'file:///x' } }))).toBe(1);
    expect(errors).toContain('tool.url');
  });
});

describe('trunkline batch', () => {
  it('creates a batch, writes its log, and shows both', async () => {
    expect(await run('batch', 'create', 'Reminders')).toBe(0);
    const [batch] = await stores.batches.list(orgId, { take: 1, skip: 0 });
    const id = batch!.batch_id;
    const payload = { message: '100 requested', state_change: 'in_progress' };
    expect(await run('batch', 'append', id, 'lifecycle', '--payload', JSON.stringify(payload))).toBe(0);
    expect(await run('batch', 'append', id, 'lifecycle', '--payload', '{}')).toBe(1);
    expect(await run('batch', 'append', id, 'lifecycle', '--payload', '[]')).not.toBe(0);
    expect(await run('batch', 'append', 'nothing', 'step', '--payload', '{}')).toBe(1);
    expect(errors).toContain('payload.message');
    printed = [];
    expect(await run('batch', 'list')).toBe(0);
    expect(await run('batch', 'logs', id)).toBe(0);
    expect(await run('batch', 'logs', 'nothing')).toBe(1);
    expect(printed.join('\n')).toContain('Reminders');
    expect(printed.at(-1)).toBe(`2026-01-01T00:00:00.000Z  lifecycle  ${JSON.stringify(payload)}`);
  });

  it('dials the numbers of a file with the given settings, pauses, resumes and stops', async () => {
    const number = '+15550100555' as E164;
    await stores.numbers.attach(orgId, number, { outbound: { sip_endpoint: 'trunk.example' } });
    const csv = await file('numbers.csv', 'phone_number,time_zone,name\n+4930123456,Europe/Berlin,Ada\n12,,Bob\n');
    const options = JSON.stringify({ hours: { from: '09:00', to: '17:00', days: ['mon'] }, do_not_call_digit: '9' });
    const pace = ['--calls-per-second', '5', '--max-concurrent-calls', '7'];
    expect(await run('batch', 'dial', 'March', '--from', number, '--csv', csv, ...pace, '--options', options)).toBe(0);
    const [batch] = await stores.batches.list(orgId, { take: 1, skip: 0 });
    const id = batch!.batch_id;
    expect(printed.slice(0, 2)).toEqual([
      `Batch "March": ${id}, ready`,
      '1 of 2 rows are numbers to dial; 0 may be called now, 1 later, the first at 2026-01-05T08:00:00.000Z',
    ]);
    expect(printed.slice(3)).toEqual([
      expect.stringMatching(/^REFUSED ROW +NUMBER +REASON +WHY$/),
      expect.stringMatching(/^3 +12 +INVALID_NUMBER +is not a phone number/),
      `Next: trunkline batch start ${id}`,
    ]);
    const start = ['--csv', await file('fine.csv', 'phone\n+49 30 123456\n'), '--start'];
    expect(await run('batch', 'dial', 'April', '--from', number, ...start)).toBe(0);
    expect(printed.at(-1)).toMatch(/^Next: trunkline batch show /);
    expect(await run('batch', 'dial', 'May', '--from', number, '--csv', csv, '--start')).toBe(1);
    expect(errors).toMatch(/Nothing is dialled: rows are refused[^]*batch start/);
    const shown = async () => (await stores.batchRuns.read(orgId, [id]))[0]!;
    expect(await shown()).toMatchObject({
      state: 'ready',
      plan: { from: number, calls_per_second: 5, max_concurrent_calls: 7, do_not_call_digit: '9' },
      counts: { requested: 2, validated: 1 },
    });
    for (const [action, state] of [
      ['start', 'in_progress'],
      ['pause', 'paused'],
      ['resume', 'in_progress'],
      ['stop', 'stopped'],
    ] as const) {
      printed = [];
      expect(await run('batch', action, id)).toBe(0);
      expect([printed, (await shown()).state]).toEqual([[`Batch ${id}: ${state}`], state]);
    }
    expect(await run('batch', 'resume', id)).toBe(1);
    expect(await run('batch', 'pause', 'nothing')).toBe(1);
    printed = [];
    expect(await run('batch', 'show', id)).toBe(0);
    expect(printed.join('\n')).toMatch(/^March: stopped\n[^]*validated +1/);
  });

  it('dials nothing for a missing file, or from a number that may not call', async () => {
    expect(await run('batch', 'dial', 'March', '--from', '+15550100555', '--csv', join(directory, 'none.csv'))).toBe(1);
    const csv = await file('numbers.csv', 'phone_number\n+4930123456\n');
    await stores.numbers.attach(orgId, '+15550100555' as E164, { outbound: { sip_endpoint: 'trunk.example' } });
    refusal = 'Not dialled: from has to be verified';
    expect(await run('batch', 'dial', 'March', '--from', '+15550100555', '--csv', csv)).toBe(1);
    expect(await run('batch', 'dial', 'March', '--from', '+15550100555', '--csv', csv, '--calls-per-second', '0')).not.toBe(0);
    expect(errors).toMatch(/none\.csv[^]*from[^]*calls-per-second/);
    expect(await stores.batches.list(orgId, { take: 1, skip: 0 })).toEqual([]);
  });
});
