import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CarrierMediaLeg } from '../../../src/loadtest/test-caller/media-leg.js';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { generateSrtpKey } from '../../../src/srtp/srtp.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { until, untilWhole } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { answerOk, HandMadeCall } from '../../support/invite.js';
import { freePorts } from '../../support/ports.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';

// docs/examples/bot.ts as its reader starts it, and the whole product with its address.

let bot: ChildProcess;
let gateway: RunningGateway;

beforeAll(async () => {
  const [port] = await freePorts(1);
  bot = spawn(process.execPath, ['--import', 'tsx', 'docs/examples/bot.ts', '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(bot.stdout!), 'line')) as [string];
  const url = /^The bot listens on (\S+)$/.exec(line)?.[1] ?? '';
  gateway = await RunningGateway.start({ TRUNKLINE_AGENTS_URL: url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' });
});

afterAll(async () => {
  await gateway.destroy();
  bot.kill();
});

const tone = (hertz: number, milliseconds: number): Int16Array =>
  Int16Array.from({ length: 8 * milliseconds }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * hertz * n) / 8_000)));

describe('the bot of docs/agents.md', () => {
  it('is all that a test call looks for: heard, echoes, hangs up on #', async () => {
    const called = await gateway.cli('call', '--digits', '#', '--json');
    expect(JSON.parse(called.stdout)).toMatchObject({
      ok: true,
      checks: { agent_audio_heard: true, echo_heard: true, hung_up_as_expected: true },
      hung_up_by: 'gateway',
    });
    expect(called.code).toBe(0);
    expect(gateway.output).toContain('+15550100100  (answered by the bot at agents.url)');
  });

  it('is noticed by a test call that was not told what answers', async () => {
    const called = await gateway.cli('call', '--seconds', '10', '--json');
    const report = JSON.parse(called.stdout) as { readonly checks: Readonly<Record<string, boolean>> };
    expect(report).toMatchObject({ ok: true, answered_by: 'bot', digits: [], echo_heard: null, checks: { agent_audio_heard: true } });
    expect(report.checks).not.toHaveProperty('digits_read_back');
    expect(called.code).toBe(0);
  });

  it('greets, answers each key with its tone, and the record says that the agent hung up', async () => {
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
    const leg = await CarrierMediaLeg.open('127.0.0.1', systemClock);
    try {
      const call = new HandMadeCall(peer, gateway.ready.phone_number);
      const key = generateSrtpKey();
      const ok = await call.answered(
        offerSdp({
          payloads: '0 101',
          rtpmap: ['0 PCMU/8000', '101 telephone-event/8000'],
          crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.from(key).toString('base64')}`],
          port: leg.port,
        }),
      );
      const rtpPort = Number(/^m=audio (\d+)/m.exec(ok.body)?.[1]);
      const theirKey = Buffer.from(/^a=crypto:1 \S+ inline:(\S+)/m.exec(ok.body)?.[1] ?? '', 'base64');
      leg.start({
        remote: { address: '127.0.0.1', rtpPort, rtcpPort: rtpPort + 1 },
        codec: 'PCMU',
        telephoneEventPayloadType: 101,
        keys: { send: key, receive: theirKey },
      });
      const isHeard = (hertz: number): boolean => (findPhrase(leg.recording(), tone(hertz, 400))?.score ?? 0) > 0.85;
      await until(() => isHeard(440), 'the greeting is not heard', { everyMs: 100 });
      for (const [event, hertz] of [
        [5, 1_000],
        [2, 700],
      ] as const) {
        expect(isHeard(hertz)).toBe(false);
        await untilWhole(() => {
          leg.press(event);
          return until(() => isHeard(hertz), `key ${String(event)} is not answered`, { everyMs: 100 });
        });
      }
      leg.press(11);
      const bye = await call.incoming('BYE');
      answerOk(peer, bye);
      expect(isHeard(350)).toBe(true);
      expect(await gateway.record(call.callId)).toMatchObject({ reason: 'AGENT_HANGUP', sip_status: 200 });
    } finally {
      leg.close();
      peer.close();
    }
  });
});
