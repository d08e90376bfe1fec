import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { tone } from '../../support/media/audio.js';
import { CallEnd } from '../../support/media/call-end.js';
import { freePorts } from '../../support/ports.js';
import { SipPeer } from '../../support/sip-peer.js';
import { respond } from '../../support/sip-message.js';

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

describe('the bot of docs/agents.md', () => {
  it('passes a test call that presses # as a bot: it greets, and hangs up', async () => {
    const called = await gateway.cli('call', '--digits', '#', '--json');
    expect(JSON.parse(called.stdout)).toMatchObject({
      ok: true,
      answered_by: 'bot',
      checks: { agent_audio_heard: true },
      hung_up_by: 'gateway',
    });
    expect(called.code).toBe(0);
    expect(gateway.output).toContain('+15550100100  (answered by the bot at agents.url)');
  });

  it('is recognized by a test call without options', async () => {
    const called = await gateway.cli('call', '--seconds', '10', '--json');
    const report = JSON.parse(called.stdout) as { readonly checks: Readonly<Record<string, boolean>> };
    expect(report).toMatchObject({ ok: true, answered_by: 'bot', digits: [], echo_heard: null, checks: { agent_audio_heard: true } });
    expect(report.checks).not.toHaveProperty('digits_read_back');
    expect(called.code).toBe(0);
  });

  it('greets, answers each digit with its tone, and the record has AGENT_HANGUP', async () => {
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
    const end = await CallEnd.open();
    try {
      const call = new HandMadeCall(peer, gateway.ready.phone_number);
      end.connect((await call.answered(end.sdp())).body);
      // In what it said, packet by packet: a gateway that stands still for a moment leaves out time, and none of its tones.
      const isHeard = (hertz: number): boolean => (findPhrase(end.peer.said, tone(hertz, 400))?.score ?? 0) > 0.85;
      await until(() => isHeard(440), 'the greeting is not heard', { everyMs: 100 });
      for (const [event, hertz] of [
        [5, 1_000],
        [2, 700],
      ] as const) {
        expect(isHeard(hertz)).toBe(false);
        await end.peer.press(event);
        await until(() => isHeard(hertz), `key ${String(event)} is not answered`, { everyMs: 100 });
      }
      await end.peer.press(11);
      const bye = await call.incoming('BYE');
      respond(peer, bye, '200 OK');
      await until(() => isHeard(350), 'no goodbye', { everyMs: 100 });
      expect(await gateway.record(call.callId)).toMatchObject({ reason: 'AGENT_HANGUP', sip_status: 200 });
    } finally {
      await end.close();
      peer.close();
    }
  });
});
