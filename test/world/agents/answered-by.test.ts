import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { CallEnd } from '../../support/media/call-end.js';
import { OutboundSite } from '../../support/outbound-site.js';
import { World } from '../world.js';

// Who answered a call that was placed: what the bot is told, and the record.

interface AnsweredBy {
  readonly answerer: string;
  readonly isFinal: boolean;
  readonly greetingEnded: string | null;
}

let site: OutboundSite<World>;
let told: AnsweredBy[] = [];

beforeAll(async () => {
  const bot = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  bot.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { readonly event: string; readonly answeredBy: AnsweredBy };
      if (message.event === 'answered_by') told.push(message.answeredBy);
    }),
  );
  await once(bot, 'listening');
  const url = `ws://127.0.0.1:${String((bot.address() as AddressInfo).port)}/`;
  site = await OutboundSite.startOn((all) => World.start(all), true, { TRUNKLINE_AGENTS_URL: url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' });
  return async () => {
    await site.destroy();
    bot.close();
  };
});

const BEEP = Int16Array.from({ length: 4_000 }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * 1_000 * n) / 8_000)));
const final = (answerer: string, greetingEnded: string | null = null): AnsweredBy => ({ answerer, isFinal: true, greetingEnded });

describe('a call that is placed with detect_answerer', () => {
  it.each([
    ['person', [voiceLikeNoise(4_800, 3)], [final('person')]],
    [
      'machine',
      [voiceLikeNoise(28_000, 4), new Int16Array(4_000), BEEP],
      [{ answerer: 'machine', isFinal: false, greetingEnded: null }, final('machine'), final('machine', 'beep')],
    ],
  ])('tells the bot that a %s answered', async (answerer, greeting, expected) => {
    told = [];
    const { callId, call } = await site.placed({ detect_answerer: true });
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    for (const part of greeting) await end.peer.speakAhead(part);
    await site.gateway.until(() => told.length >= expected.length);
    expect(told).toEqual(expected);
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    await end.close();
    expect(await site.ended(callId)).toMatchObject({ answered_by: answerer });
  });

  it('tells the bot nothing and records no answerer when detect_answerer is not set', async () => {
    told = [];
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.peer.speak(voiceLikeNoise(16_000, 3));
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect(await site.ended(callId)).toMatchObject({ answered_by: null });
    expect(told).toEqual([]);
    await end.close();
  });
});
