import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findPhrase } from '../../src/loadtest/test-caller/correlation.js';
import { AgentSite, type AgentCall } from '../support/agent/agent-site.js';
import { tone } from '../support/media/audio.js';

// One call through the whole product, for `npm test` on a machine of any speed: it asserts what arrives, and never when.

const DELAY_LIMITS = [
  'START_TIMEOUT_MS',
  'ADMISSION_MAX_EVENT_LOOP_DELAY_MS',
  'ADMISSION_MAX_MEDIA_DELAY_MS',
  'ADMISSION_MAX_RELAY_DELAY_MS',
  'SIP_MAX_APPLICATION_DELAY_MS',
  'SIP_SILENCE_TIMEOUT_MS',
  'SIP_HANDSHAKE_TIMEOUT_MS',
  'SIP_MESSAGE_TIMEOUT_MS',
  'DRACHTIO_GRACE_MS',
  'DRACHTIO_AUTHENTICATE_TIMEOUT_MS',
  'RTPENGINE_TIMEOUT_MS',
  'MEDIA_TIMEOUT_MS',
  'AGENTS_CONNECT_TIMEOUT_MS',
  'AGENTS_RECONNECT_GRACE_MS',
  'AGENTS_PING_INTERVAL_MS',
  'AGENTS_MAX_UNSENT_AUDIO_MS',
];
const PATIENT = {
  ...Object.fromEntries(DELAY_LIMITS.map((name) => [`TRUNKLINE_${name}`, '600000'])),
  // The gateway waits for an ACK 64 times as long.
  TRUNKLINE_SIP_T1_MS: '4000',
};

// Each packet has whole periods, so a missing one is no break in the tone.
const CALLER_HZ = 400;
const BOT_HZ = 1_000;

const hears = (heard: Int16Array, hertz: number): boolean => (findPhrase(heard, tone(hertz, 200))?.score ?? 0) > 0.9;

let site: AgentSite;
beforeAll(async () => {
  site = await AgentSite.start(PATIENT);
});
afterAll(() => site.stop());

/** How long Redis may take is no setting: the gateway refuses a call for which it waited half a second, and the carrier calls again. */
async function talking(): Promise<AgentCall> {
  for (;;) {
    try {
      return await site.talking();
    } catch (error) {
      if (!(error as Error).message.includes('STORE_UNAVAILABLE')) throw error;
    }
  }
}

async function recordsOf({ signalling }: AgentCall): Promise<unknown[]> {
  // The API, too, answers 503 when it has waited for Redis.
  const { calls = [] } = (await site.gateway.api('GET', '/v1/calls')).json as { calls?: { sip_call_id: string }[] };
  return calls.filter(({ sip_call_id: id }) => id === signalling.callId);
}

it('a caller over TLS and SRTP and a bot hear each other, the bot gets the caller’s digit, and the call leaves one record', async () => {
  const call = await talking();
  const { bot, end } = call;

  bot.say(mulaw.encode(tone(BOT_HZ, 1_000)));
  await end.peer.until(() => hears(end.peer.said, BOT_HZ));
  expect(hears(end.peer.said, CALLER_HZ)).toBe(false);

  const heardByBot = (): Int16Array => mulaw.decode(bot.heard);
  while (!hears(heardByBot(), CALLER_HZ)) await end.peer.speakAhead(tone(CALLER_HZ, 1_000));
  expect(hears(heardByBot(), BOT_HZ)).toBe(false);

  await end.peer.press(5);
  expect(await bot.message('dtmf')).toMatchObject({ dtmf: { digit: '5' } });

  await call.hangUp();
  await expect
    .poll(() => recordsOf(call))
    .toMatchObject([{ state: 'ended', reason: 'CALLER_HANGUP', source: { transport: 'tls' }, crypto_suite: 'AES_CM_128_HMAC_SHA1_80' }]);
});
