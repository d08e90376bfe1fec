import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { Baresip } from '../../support/baresip.js';

let site: AgentSite;
let phone: Baresip;

beforeAll(async () => {
  site = await AgentSite.start();
  phone = await Baresip.start({ caFile: site.gateway.ready.ca_file, codec: 'PCMU' });
});
afterAll(async () => {
  await phone.stop();
  await site.stop();
});

/** baresip's microphone: half a second of it, at any phase. */
const tone = Int16Array.from({ length: 4_000 }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * 440 * n) / 8_000)));

describe('baresip, an independent client', () => {
  it('exchanges audio and DTMF digits with a bot, which hangs up', async () => {
    phone.dial(`sip:${site.gateway.ready.phone_number}@${site.gateway.ready.sip.tls};transport=tls`);
    const bot = await site.bot.calls.at(0);
    await bot.message('start');
    const said = await new EspeakSpeech().synthesize({ text: 'Good day, how may I help you?', language: 'ENG' }, []);
    bot.say(Buffer.from(mulaw.encode(said)));
    await expect.poll(() => findPhrase(mulaw.decode(bot.heard), tone)?.score ?? 0).toBeGreaterThan(0.99);
    phone.press('5');
    expect(await bot.message('dtmf')).toMatchObject({ dtmf: { digit: '5' } });
    await expect.poll(async () => findPhrase(await phone.heard(), said)?.score ?? 0, { interval: 200 }).toBeGreaterThan(0.95);
    bot.socket.close(1_000);
    // baresip's word for a BYE from the other side.
    expect((await phone.event('CALL_CLOSED')).param).toBe('Connection reset by peer');
  });
});
