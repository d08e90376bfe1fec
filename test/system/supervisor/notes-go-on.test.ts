import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { CarrierCall } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { isKept, killGateway, recordOf } from '../../support/trunk.js';

// What a bot wrote down of a call, and what it waits for, outlive the gateway.

let bot: WebSocketServer;
let gateway: RunningGateway;
let streams = 0;
/** Marks that came, by stream. */
const marks: string[][] = [];
const missedMs: (string | undefined)[] = [];
/** Five seconds, which nobody will hear to their end. */
const SPEECH = Buffer.alloc(5 * 8_000, 0x9f).toString('base64');

beforeAll(async () => {
  bot = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  bot.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => {
      const { start, mark } = JSON.parse(data.toString()) as {
        readonly start?: { readonly customParameters: Record<string, string> };
        readonly mark?: { readonly name: string };
      };
      if (mark !== undefined) marks.at(-1)?.push(mark.name);
      if (start === undefined) return;
      streams += 1;
      marks.push([]);
      missedMs.push(start.customParameters['missed_ms']);
      if (streams === 1) socket.send(JSON.stringify({ event: 'media', media: { payload: SPEECH } }));
      if (streams === 1) socket.send(JSON.stringify({ event: 'mark', mark: { name: 'end of the speech' } }));
      const text = `Stream ${String(streams)}, reconnects: ${start.customParameters['reconnects'] ?? 'none'}.`;
      socket.send(JSON.stringify({ event: 'transcript', transcript: { entries: [{ speaker: 'agent', text, at_ms: 10 }] } }));
      socket.send(JSON.stringify({ event: 'analysis', analysis: { data: { [`stream_${String(streams)}`]: 'seen' } } }));
    }),
  );
  await once(bot, 'listening');
  const url = `ws://127.0.0.1:${String((bot.address() as AddressInfo).port)}/`;
  gateway = await RunningGateway.start({ TRUNKLINE_AGENTS_URL: url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' });
});

afterAll(async () => {
  await gateway.destroy();
  bot.close();
});

it('transcript, analysis and marks continue after a kill; the bot and the record learn that something is missing', async () => {
  const call = await CarrierCall.open(gateway, gateway.ready.phone_number);
  await call.connect();
  await isKept(gateway, 'Stream 1, reconnects: none.');
  const keptMs = performance.now();
  await isKept(gateway, 'stream_1');
  await isKept(gateway, 'end of the speech');
  const killedMs = await killGateway(gateway);
  await expect.poll(() => streams).toBe(2);
  await isKept(gateway, 'stream_2');
  await expect.poll(() => marks).toEqual([[], ['end of the speech']]);
  const restartedMs = performance.now() - killedMs;
  expect(missedMs).toEqual([undefined, expect.stringMatching(/^\d+$/)]);
  expect(Number(missedMs[1])).toBeLessThan(restartedMs);
  expect(Number(missedMs[1])).toBeGreaterThan(50);
  expect((await call.request('BYE')).status).toBe(200);
  const record = await recordOf(gateway, call);
  const { call: shown } = (await gateway.api('GET', `/v1/calls/${record.call_id}`)).json as unknown as { readonly call: typeof record };
  expect(shown.transcript.map(({ text }) => text)).toEqual(['Stream 1, reconnects: none.', 'Stream 2, reconnects: 1.']);
  // Both count from the answer on, although each bot counts from its own beginning.
  expect(shown.transcript[0]?.at_ms).toBe(10);
  expect(shown.transcript[1]?.at_ms).toBeGreaterThan(10 + Math.floor(killedMs - keptMs));
  expect(shown).toMatchObject({
    resumed: 1,
    transcript_state: 'partial',
    transcript_error: 'the gateway was restarted during the call',
    analysis: { stream_1: 'seen', stream_2: 'seen' },
  });
  call.close();
});
