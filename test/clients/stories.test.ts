import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OutboundSite, FROM, TO } from '../support/outbound-site.js';
import { offerSdp } from '../support/sdp.js';
import { respond } from '../support/sip-message.js';
import type { TakenCall } from '../support/outbound-trunk.js';
import { HANG_GUARD_MS } from '../support/hang-guard.js';

// Each client that is generated from /openapi.json plays one story against the product: it attaches a number, reads and updates it, creates an
// agent and a tool, places a call, creates a batch, and detaches the number. scripts/test-clients generates and compiles them.

/** Below the guard of tests, so that one that hangs shows what it printed. */
const TIMEOUT_MS = HANG_GUARD_MS - 10_000;

let site: OutboundSite;
const failures: unknown[] = [];

beforeAll(async () => {
  site = await OutboundSite.start();
  site.trunk.takeAll((call) => void talk(call).catch((error: unknown) => failures.push(error)));
});
afterAll(() => site.destroy());

/** The callee answers, and the API ends the call. */
async function talk(call: TakenCall): Promise<void> {
  await call.answer(offerSdp());
  respond(call.peer, await call.request('BYE'), '200 OK');
}

interface Client {
  readonly name: string;
  readonly number: string;
  /** The command, in the directory where the client was made. */
  readonly command: (directory: string) => readonly [string, ...string[]];
  readonly environment?: (directory: string) => Readonly<Record<string, string>>;
}

const CLIENTS: readonly Client[] = [
  {
    name: 'python',
    number: '+15550100301',
    command: () => [process.env['CLIENTS_PYTHON'] ?? 'python3', 'test/clients/python/story.py'],
    environment: (directory) => ({ PYTHONPATH: directory }),
  },
  { name: 'typescript', number: '+15550100302', command: (directory) => [process.execPath, join(directory, 'story.js')] },
  { name: 'go', number: '+15550100303', command: (directory) => [join(directory, 'story')] },
  {
    name: 'java',
    number: '+15550100304',
    command: (directory) => [
      'java',
      '-cp',
      `${join(directory, 'target/classes')}:${join(directory, 'target/dependency/*')}`,
      'story.Story',
    ],
  },
];

/** Where scripts/test-clients made a client. */
function directoryOf(name: string): string {
  const directory = process.env[`CLIENT_${name.toUpperCase()}`];
  if (directory === undefined) throw new Error(`CLIENT_${name.toUpperCase()} is not set: run npm run test:clients, which makes the client`);
  return directory;
}

/** Runs the program of a client to its end. Resolves with the words of each line that it printed. */
async function play({ name, number, command, environment }: Client): Promise<readonly (readonly string[])[]> {
  const directory = directoryOf(name);
  const [program, ...args] = command(directory);
  const { http, api_key: key } = site.gateway.ready;
  const story = { API_URL: http, API_KEY: key, NUMBER: number, CALLER: FROM, CALLEE: TO };
  const env = { ...process.env, ...story, ...environment?.(directory) };
  const { stdout } = await promisify(execFile)(program, args, { env, timeout: TIMEOUT_MS });
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
}

const read = async (path: string): Promise<Readonly<Record<string, unknown>>> => (await site.gateway.api('GET', path)).json;

it.each(CLIENTS)('the client for $name plays the story, and the API shows what it did', async (client) => {
  const { name, number } = client;
  const steps = await play(client);
  expect(failures).toEqual([]);
  const ids = Object.fromEntries(steps.map(([step = '', id = '']) => [step, id]));
  expect(steps.map(([step, ...values]) => [step, values.at(-1)])).toEqual([
    ['attach', number],
    ['read', 'required'],
    ['update', '7'],
    ['agent', '5'],
    ['tool', ids['tool']],
    ['call', 'API_STOPPED'],
    ['batch', 'stopped'],
    ['detach', 'none'],
  ]);
  expect(await read(`/v1/agents/${ids['agent'] ?? ''}`)).toMatchObject({
    agent: { name: `Desk of ${name}`, prompt: 'Be brief.', max_duration: 5, language: 'DEU' },
  });
  const { tools } = await read('/v1/tools');
  expect(tools).toContainEqual(expect.objectContaining({ tool_id: ids['tool'], label: name }));
  expect(await read(`/v1/calls/${ids['call'] ?? ''}`)).toMatchObject({
    call: { state: 'ended', agent_id: ids['agent'], from: FROM, to: TO, sip_status: 200 },
  });
  expect(await read(`/v2/batches/${ids['batch'] ?? ''}`)).toMatchObject({
    data: { name, state: 'stopped', counts: { requested: 1, dispatched: 0 } },
  });
  expect(await read(`/sip?inbound_id=${encodeURIComponent(number)}`)).toMatchObject({ data: null });
});
