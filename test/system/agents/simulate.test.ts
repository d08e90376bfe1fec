import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { RunningGateway } from '../../support/gateway.js';
import { freePorts } from '../../support/ports.js';

// trunkline simulate, against the example bot and against bots that do something wrong.

let example: ChildProcess;
let url: string;

beforeAll(async () => {
  const [port] = await freePorts(1);
  example = spawn(process.execPath, ['--import', 'tsx', 'docs/examples/bot.ts', '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(example.stdout!), 'line')) as [string];
  url = /^The bot listens on (\S+)$/.exec(line)?.[1] ?? '';
});

afterAll(() => example.kill());

interface Simulation {
  readonly summary: Record<string, unknown>;
  readonly calls: Record<string, unknown>[];
}

async function simulate(...args: readonly string[]): Promise<Simulation & { readonly code: number }> {
  const { code, stdout } = await promisify(execFile)(process.execPath, ['dist/cli/main.js', 'simulate', '--json', ...args]).then(
    (done) => ({ code: 0, stdout: done.stdout }),
    (error: unknown) => error as { readonly code: number; readonly stdout: string },
  );
  return { code, ...(JSON.parse(stdout) as Simulation) };
}

/** The loudest sample of base64 µ-law: a smaller byte is a larger sample. */
const isLoud = (payload: string): boolean => [...Buffer.from(payload, 'base64')].some((byte) => (byte & 0x7f) < 0x30);
/** µ-law of a square wave. */
const sound = (milliseconds: number): string =>
  Buffer.from(Array.from({ length: 8 * milliseconds }, (_, n) => (n % 16 < 8 ? 0x90 : 0x10))).toString('base64');

/** Speaks for ten seconds; who interrupts it is answered, and what it understood stands in the transcript. */
async function talkativeBot(): Promise<{ readonly url: string; close(): void }> {
  const bot = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  bot.on('connection', (socket) => {
    let streamSid = '';
    let isInterrupted = false;
    const send = (message: object): void => socket.send(JSON.stringify({ ...message, streamSid }));
    const say = (milliseconds: number): void => send({ event: 'media', media: { payload: sound(milliseconds) } });
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { event: string; start?: object; streamSid: string; media?: { payload: string } };
      if (message.event === 'start') {
        ({ streamSid } = message);
        say(10_000);
      }
      if (message.media === undefined || isInterrupted || !isLoud(message.media.payload)) return;
      isInterrupted = true;
      send({ event: 'clear' });
      send({ event: 'transcript', transcript: { entries: [{ speaker: 'caller', text: 'Stop.' }] } });
      setTimeout(() => say(500), 2_000);
    });
  });
  await once(bot, 'listening');
  return { url: `ws://127.0.0.1:${String((bot.address() as AddressInfo).port)}/`, close: () => bot.close() };
}

async function scriptFile(text: string): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'simulate-')), 'script.yaml');
  await writeFile(file, text);
  return file;
}

describe('trunkline simulate', () => {
  it('calls the example bot, which greets and answers the digit, and whose marks come back', async () => {
    const { code, calls, summary } = await simulate('--calls', '2', url);
    const good = { ok: true, connected: true, bot: { marks_set: 2, marks_echoed: 2, clears: 2 }, hung_up_by_agent_ms: null, errors: [] };
    expect(calls).toMatchObject([good, good]);
    expect(summary).toMatchObject({ calls: 2, ok: 2 });
    for (const { audio_ms: audioMs } of calls) expect(audioMs).toBeGreaterThan(1_500);
    expect(code).toBe(0);
  });

  it('reports when the bot hung up, as the example does on #', async () => {
    const { code, calls } = await simulate('--digits', '#', url);
    expect(calls).toMatchObject([{ ok: true, errors: [], hung_up_by_agent_ms: expect.any(Number) as number }]);
    expect(code).toBe(0);
  });

  it('fails when the bot sends no audio, and a message that cannot be read', async () => {
    const bot = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    bot.on('connection', (socket) => socket.once('message', () => socket.send('{"event":"media"}')));
    await once(bot, 'listening');
    const { code, calls } = await simulate('--seconds', '1', `ws://127.0.0.1:${String((bot.address() as AddressInfo).port)}/`);
    bot.close();
    expect(calls).toMatchObject([
      {
        ok: false,
        connected: true,
        first_audio_ms: null,
        errors: [expect.stringContaining('message ignored: media'), 'the agent said nothing'],
      },
    ]);
    expect(code).toBe(1);
  });

  it('fails when nothing listens at the URL', async () => {
    const [port] = await freePorts(1);
    const { code, calls } = await simulate(`ws://127.0.0.1:${String(port)}/`);
    expect(calls).toMatchObject([{ ok: false, connected: false, errors: [expect.stringContaining('ECONNREFUSED')] }]);
    expect(code).toBe(1);
  });

  it('interrupts a bot by a script: both callers stop hearing it, and read what it understood', async () => {
    const bot = await talkativeBot();
    const file = await scriptFile('- interrupt: Stop, please.\n  after: 1\n');
    const { code, calls, summary } = await simulate('--calls', '2', '--script', file, bot.url);
    bot.close();
    const call = {
      ok: true,
      interruptions: [{ silent_after_ms: expect.any(Number) as number }],
      transcript: [{ speaker: 'caller', text: 'Stop.' }],
      errors: [],
    };
    expect(calls).toMatchObject([call, call]);
    expect(summary).toMatchObject({ turns: { count: 2 }, interruptions: { made: 2, taken: 2 } });
    expect(code).toBe(0);
  });

  it('calls a number of the running gateway as carriers do, and reports the transcripts of the records', async () => {
    const bot = await talkativeBot();
    const gateway = await RunningGateway.start({ TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' });
    try {
      const file = await scriptFile('- interrupt: Stop, please.\n  after: 1\n- silent: 1\n');
      const ran = await gateway.cli('simulate', '--json', '--calls', '3', '--script', file, gateway.ready.phone_number);
      const { calls, summary } = JSON.parse(ran.stdout) as Simulation;
      const call = { ok: true, bot: null, transcript: [{ speaker: 'caller', text: 'Stop.' }], silences: [{ ms: 1_000 }], errors: [] };
      expect(calls).toMatchObject([call, call, call]);
      expect(summary).toMatchObject({ calls: 3, ok: 3, interruptions: { made: 3, taken: 3 } });
      expect(ran.code).toBe(0);
    } finally {
      await gateway.destroy();
      bot.close();
    }
  });

  it('reports a number that is refused', async () => {
    const gateway = await RunningGateway.start({});
    try {
      const ran = await gateway.cli('simulate', '--json', '+15550100777');
      expect((JSON.parse(ran.stdout) as Simulation).calls).toMatchObject([
        { ok: false, connected: false, errors: [expect.stringContaining('404')] },
      ]);
      expect(ran.code).toBe(1);
    } finally {
      await gateway.destroy();
    }
  });
});
