import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
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

async function simulate(...args: readonly string[]): Promise<{ readonly code: number; readonly reports: Record<string, unknown>[] }> {
  const { code, stdout } = await promisify(execFile)(process.execPath, ['dist/cli/main.js', 'simulate', '--json', ...args]).then(
    (done) => ({ code: 0, stdout: done.stdout }),
    (error: unknown) => error as { readonly code: number; readonly stdout: string },
  );
  return { code, reports: JSON.parse(stdout) as Record<string, unknown>[] };
}

describe('trunkline simulate', () => {
  it('calls the example bot: it greets, answers the digit, and its marks come back', async () => {
    const { code, reports } = await simulate('--calls', '2', url);
    const good = { ok: true, connected: true, marks_set: 2, marks_echoed: 2, clears: 2, hung_up_by_bot_ms: null, errors: [] };
    expect(reports).toMatchObject([good, good]);
    for (const { audio_ms: audioMs } of reports) expect(audioMs).toBeGreaterThan(1_500);
    expect(code).toBe(0);
  });

  it('says when the bot hung up: the example does on #', async () => {
    const { code, reports } = await simulate('--digits', '#', url);
    expect(reports).toMatchObject([{ ok: true, errors: [], hung_up_by_bot_ms: expect.any(Number) as number }]);
    expect(code).toBe(0);
  });

  it('fails when the bot says nothing and sends what is no message', async () => {
    const bot = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    bot.on('connection', (socket) => socket.once('message', () => socket.send('{"event":"media"}')));
    await once(bot, 'listening');
    const { code, reports } = await simulate('--seconds', '1', `ws://127.0.0.1:${String((bot.address() as AddressInfo).port)}/`);
    bot.close();
    expect(reports).toMatchObject([
      {
        ok: false,
        connected: true,
        first_audio_ms: null,
        errors: [expect.stringContaining('message ignored: media'), 'the bot said nothing'],
      },
    ]);
    expect(code).toBe(1);
  });

  it('fails when nobody is there', async () => {
    const [port] = await freePorts(1);
    const { code, reports } = await simulate(`ws://127.0.0.1:${String(port)}/`);
    expect(reports).toMatchObject([{ ok: false, connected: false, errors: [expect.stringContaining('ECONNREFUSED')] }]);
    expect(code).toBe(1);
  });
});
