import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { digitPhrase } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { throughG711 } from '../../../src/rtp/codec/g711.js';
import { Baresip } from '../../support/baresip.js';
import { testCertificates } from '../../support/certificates.js';
import { RunningGateway } from '../../support/gateway.js';

let gateway: RunningGateway;
let client: Baresip | undefined;

beforeAll(async () => {
  gateway = await RunningGateway.start();
});

afterAll(() => gateway.destroy());

afterEach(async () => {
  await client?.stop();
  client = undefined;
});

const start = async (codec: 'PCMU' | 'PCMA' = 'PCMU'): Promise<Baresip> => {
  client = await Baresip.start({ caFile: gateway.ready.ca_file, codec });
  return client;
};

const uri = (number: string): string => `sip:${number}@${gateway.ready.sip.tls};transport=tls`;

/** How well the key's phrase is found in what was heard: a wrong key's scores about 0.6. */
async function score(heard: Int16Array, key: number, codec: 'PCMU' | 'PCMA'): Promise<number> {
  const spoken = await new EspeakSpeech().synthesize(digitPhrase(key, 'ENG'), []);
  return findPhrase(heard, throughG711(codec, spoken))?.score ?? 0;
}

describe('baresip, an independent client,', () => {
  it.each(['PCMU', 'PCMA'] as const)(
    'calls over TLS with SRTP (%s), hears its digits read back, and # makes the gateway hang up',
    async (codec) => {
      const phone = await start(codec);
      phone.dial(uri('+15550100100'));
      expect((await phone.event('CALL_MENC')).param).toBe('0,audio,AES_CM_128_HMAC_SHA1_80');
      await phone.event('CALL_ESTABLISHED');
      await phone.event('CALL_RTPESTAB');
      phone.press('7');
      await expect.poll(async () => score(await phone.heard(), 7, codec), { interval: 200 }).toBeGreaterThan(0.85);
      expect(await score(await phone.heard(), 3, codec)).toBeLessThan(0.85);
      phone.press('#');
      // baresip's word for a BYE from the other side.
      expect((await phone.event('CALL_CLOSED')).param).toBe('Connection reset by peer');
      await gateway.logged('gateway', '"reason":"AGENT_HANGUP"');
    },
  );

  it('hangs up itself, and the gateway counts the packets of both sides', async () => {
    const phone = await start();
    phone.dial(uri('+15550100100'));
    await phone.event('CALL_RTPESTAB');
    // Its RTCP reports figures of both sides.
    await phone.event('CALL_RTCP');
    phone.hangUp();
    await expect.poll(() => gateway.log('gateway')).toContain('"reason":"CALLER_HANGUP"');
    const ended = (await gateway.log('gateway')).split('\n').find((line) => line.includes('"reason":"CALLER_HANGUP"'));
    const { quality } = JSON.parse(ended ?? '{}') as Pick<CallRecord, 'quality'>;
    expect(quality.endpoint?.packets_received).toBeGreaterThan(10);
    expect(quality.endpoint?.packets_lost).toBe(0);
  });

  it('gets 404 for a number that nobody has', async () => {
    const phone = await start();
    phone.dial(uri('+15550199999'));
    expect((await phone.event('CALL_CLOSED')).param).toBe('404 Not Found');
  });
});

// baresip 1.0.0 checks no certificate: OpenSSL's own client does.
describe('OpenSSL, as a client that checks the certificate,', () => {
  const handshake = async (caFile: string, name: readonly string[]): Promise<{ code: number; output: string }> => {
    const work = promisify(execFile)('openssl', [
      's_client',
      ...['-connect', gateway.ready.sip.tls, '-CAfile', caFile, '-no-CApath', '-no-CAstore'],
      ...['-verify_return_error', '-showcerts', ...name],
    ]);
    work.child.stdin?.end();
    try {
      const { stdout, stderr } = await work;
      return { code: 0, output: stdout + stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, output: stdout + stderr };
    }
  };

  it('accepts the address and gets the whole chain', async () => {
    const { code, output } = await handshake(gateway.ready.ca_file, ['-verify_ip', '127.0.0.1']);
    expect(output).toContain('Verify return code: 0 (ok)');
    expect(output.match(/-----BEGIN CERTIFICATE-----/g)).toHaveLength(2);
    expect(code).toBe(0);
  });

  it.each([
    [
      'another CA',
      async () => (await testCertificates()).caFile,
      ['-verify_ip', '127.0.0.1'],
      /self-signed certificate in certificate chain|unable to get/,
    ],
    ['another name', () => Promise.resolve(gateway.ready.ca_file), ['-verify_hostname', 'sip.example.org'], /hostname mismatch/i],
  ])('refuses a connection with %s', async (_what, caFile, name, error) => {
    const { code, output } = await handshake(await caFile(), name);
    expect(output).toMatch(error);
    expect(code).not.toBe(0);
  });
});
