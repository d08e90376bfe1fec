import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { digitPhrase } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { throughG711 } from '../../../src/rtp/codec/g711.js';
import { Baresip } from '../../support/baresip.js';
import { testCertificates } from '../../support/certificates.js';
import { OutboundSite, TO } from '../../support/outbound-site.js';

let site: OutboundSite;
let phone: Baresip;

beforeAll(async () => {
  site = await OutboundSite.start();
});
afterAll(() => site.destroy());
afterEach(() => phone.stop());

async function ringing(codec: 'PCMU' | 'PCMA'): Promise<string> {
  const { caFile, cert, key } = await testCertificates();
  phone = await Baresip.start({ caFile, codec, called: { user: TO, certificate: `${cert}\n${key}` } });
  await site.attach(`127.0.0.1:${String(phone.tlsPort)}`);
  const { json } = await site.place();
  await phone.event('CALL_INCOMING');
  return String(json['call_id']);
}

/** -1: it has not recorded so long yet; 0: silence. */
async function score(key: number, codec: 'PCMU' | 'PCMA'): Promise<number> {
  const spoken = await new EspeakSpeech().synthesize(digitPhrase(key, 'ENG'), []);
  return findPhrase(await phone.heard(), throughG711(codec, spoken))?.score ?? -1;
}

describe('baresip, an independent callee,', () => {
  it.each(['PCMU', 'PCMA'] as const)(
    'answers over TLS with SRTP (%s), hears its digits read back, and ends the call with #',
    async (codec) => {
      const callId = await ringing(codec);
      phone.accept();
      expect((await phone.event('CALL_MENC')).param).toBe('0,audio,AES_CM_128_HMAC_SHA1_80');
      await phone.event('CALL_ESTABLISHED');
      await phone.event('CALL_RTPESTAB');
      phone.press('7');
      await expect.poll(() => score(7, codec), { interval: 200 }).toBeGreaterThan(0.85);
      expect(await score(3, codec)).toBeLessThan(0.85);
      phone.press('#');
      await phone.event('CALL_CLOSED');
      expect(await site.ended(callId)).toMatchObject({ reason: 'AGENT_HANGUP', codec, sip_status: 200 });
    },
  );

  it('rejects a call, which ends as BUSY', async () => {
    const callId = await ringing('PCMU');
    phone.hangUp();
    expect(await site.ended(callId)).toMatchObject({ reason: 'BUSY', sip_status: 486 });
  });

  it('rings until the API stops the call', async () => {
    const callId = await ringing('PCMU');
    await site.gateway.api('POST', `/v1/calls/${callId}/stop`, {});
    expect((await phone.event('CALL_CLOSED')).param).toBe('Connection reset by peer');
    expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 487 });
  });
});
