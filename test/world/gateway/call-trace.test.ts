import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { PlayedGateway } from '../../support/played-gateway.js';
import { ROUTE } from '../../support/route.js';
import { KEY, offerSdp, OTHER_KEY } from '../../support/sdp.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';
import { respond } from '../../support/sip-message.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

let gateway: PlayedGateway;
let call: HandMadeCall;

beforeEach(async () => {
  gateway = await PlayedGateway.start();
  call = new HandMadeCall(gateway.peer, '+15550100100');
});

afterEach(async () => {
  await gateway.stop();
});

/** What went over the wire, from the gateway's side. */
const messages = (): string[] =>
  gateway.trace
    .filter(({ source }) => source === 'sip')
    .map(({ direction, summary }) => `${direction === 'in' ? '←' : '→'} ${summary.replace(/ (?:sip:\S+ )?SIP\/2\.0$/, '')}`);

it('the trace has every message of a call, with its text, and the other events', async () => {
  await call.answered(offerSdp());
  await time.until(() => gateway.started === 1);
  const [callId = ''] = gateway.callIds;
  expect(gateway.inbound.trace(callId)?.map(({ source }) => source)).toContain('agent');
  gateway.agentSays({ type: 'tool', requestId: 't', name: 'none', input: {} });
  await time.until(() => gateway.told.length === 1);
  gateway.agentSays({ type: 'transfer', requestId: 'r', to: '+15550100300' });
  respond(gateway.peer, await call.incoming('REFER'), '200 OK');
  await time.until(() => gateway.told.length === 2);
  gateway.inbound.stop(callId, 'API_STOPPED');
  respond(gateway.peer, await call.incoming('BYE'), '200 OK');
  await gateway.inbound.whenIdle();

  expect(messages()).toEqual(['← INVITE', '→ SIP/2.0 200 OK', '← ACK', '→ REFER', '← SIP/2.0 200 OK', '→ BYE', '← SIP/2.0 200 OK']);
  const sip = gateway.trace.filter(({ source }) => source === 'sip');
  for (const { text } of sip) expect(text).toMatch(/\r\nCall-ID: /i);
  const summaries = gateway.trace.filter(({ source }) => source !== 'sip').map(({ source, summary }) => `${source}: ${summary}`);
  // Beside what rtpengine is doing: anywhere between the look-up and the ACK. The last only where the call waited for it.
  const beside = ['agent: connect, test line', "gateway: the agent's media is ready", 'gateway: the agent is connected'];
  for (const line of beside.slice(0, 2)) {
    expect(summaries.indexOf(line)).toBeGreaterThan(0);
    expect(summaries.indexOf(line)).toBeLessThan(summaries.indexOf('gateway: established: ACK received'));
  }
  const others = summaries.filter((line) => !beside.includes(line));
  expect(others.map((summary) => summary.replace(/[\d.]+ ms/, 'n ms'))).toEqual([
    'gateway: looked up: the number is attached, agent of the operator',
    'rtpengine: offer (RTP inside, SRTP outside)',
    'rtpengine: offer (RTP inside, SRTP outside) answered, n ms',
    'gateway: rtpengine accepted the offer',
    'rtpengine: answer (RTP inside, SRTP outside)',
    'rtpengine: answer (RTP inside, SRTP outside) answered, n ms',
    'gateway: rtpengine accepted the answer',
    'gateway: established: ACK received',
    'agent: start',
    'agent: tool none requested',
    'agent: tool refused, TOOL_UNKNOWN',
    'agent: transfer requested, to +15550100300',
    'agent: transfer accepted, 200',
    'gateway: the gateway hangs up: API_STOPPED',
    'rtpengine: delete',
  ]);
  const all = JSON.stringify(gateway.trace);
  expect([all.includes(KEY), all.includes(OTHER_KEY), all.includes('a=crypto')]).toEqual([false, false, true]);
  expect(gateway.inbound.trace(callId)).toBeNull();
});

it('the trace has a refusal as it was sent, and a caller’s BYE with our answer', async () => {
  const refused = new HandMadeCall(gateway.peer, '+15550100100');
  refused.invite(offerSdp({ payloads: '18' }));
  expect((await refused.final()).status).toBe(488);
  await gateway.inbound.whenIdle();
  expect(messages()).toEqual(['← INVITE', '→ SIP/2.0 488 Not Acceptable Here']);
  expect(gateway.trace.find(({ direction }) => direction === 'out')?.text).toContain('NO_COMMON_CODEC');
  const ok = await call.answered(offerSdp());
  await call.hangUp(ok);
  await gateway.inbound.whenIdle();
  expect(messages()).toEqual(['← INVITE', '→ SIP/2.0 200 OK', '← ACK', '← BYE', '→ SIP/2.0 200 OK']);
  // drachtio-srf answers a BYE by itself: its text is that of the SIP server.
  expect(gateway.trace.findLast(({ source }) => source === 'sip')?.text).toMatch(/\r\nCSeq: \d+ BYE\r\n/);
});

it('the trace has what changes a call: re-INVITE, UPDATE, INFO and its digit', async () => {
  const ok = await call.answered(offerSdp());
  await time.until(() => gateway.started === 1);
  const again = await call.request('INVITE', ok, offerSdp());
  expect(again.status).toBe(200);
  call.ack(again);
  expect((await call.request('UPDATE', ok)).status).toBe(200);
  expect((await call.request('INFO', ok, 'Signal=5\r\nDuration=160\r\n', ['Content-Type: application/dtmf-relay'])).status).toBe(200);
  await call.hangUp(ok);
  await gateway.inbound.whenIdle();
  const answered = '→ SIP/2.0 200 OK';
  expect(messages()).toEqual([
    ...['← INVITE', answered, '← ACK', '← INVITE', answered, '← ACK'],
    ...['← UPDATE', answered, '← INFO', answered, '← BYE', answered],
  ]);
  expect(gateway.trace.find(({ summary }) => summary.startsWith('INFO '))?.text).toContain('Signal=5');
});

describe('the trace of a re-INVITE that the gateway sends', () => {
  it('has its answer and the ACK as it was sent', async () => {
    const ok = await call.answered(offerSdp());
    await time.until(() => gateway.started === 1);
    gateway.inbound.relayLost(gateway.callIds);
    respond(gateway.peer, await call.incoming('INVITE'), '200 OK', { body: offerSdp() });
    const ack = await call.incoming('ACK');
    await call.hangUp(ok);
    await gateway.inbound.whenIdle();
    expect(messages().slice(3)).toEqual(['→ INVITE', '← SIP/2.0 200 OK', '→ ACK', '← BYE', '→ SIP/2.0 200 OK']);
    expect(gateway.trace.find(({ summary, direction }) => direction === 'out' && summary.startsWith('ACK '))?.text).toBe(ack.text);
  });

  it('[3261 §17.1.1.3] has the one ACK of its transaction, without a text, when the carrier refuses it', async () => {
    await call.answered(offerSdp());
    await time.until(() => gateway.started === 1);
    gateway.inbound.relayLost(gateway.callIds);
    const invite = await call.incoming('INVITE');
    respond(gateway.peer, invite, '488 Not Acceptable Here');
    respond(gateway.peer, await call.incoming('BYE'), '200 OK');
    await gateway.inbound.whenIdle();
    const acks = gateway.peer.received.filter(({ startLine }) => startLine.startsWith('ACK '));
    expect(acks.map((ack) => ack.header('Via'))).toEqual([invite.header('Via')]);
    expect(messages().slice(3)).toEqual(['→ INVITE', '← SIP/2.0 488 Not Acceptable Here', '→ ACK', '→ BYE', '← SIP/2.0 200 OK']);
    expect(gateway.trace.find(({ summary }) => summary === 'ACK')?.text).toBeNull();
  });
});

it('the trace of a cancelled call has its CANCEL and its 487', async () => {
  const waiting = await PlayedGateway.start(ROUTE, {
    routes: { lookup: () => new Promise(() => undefined), release: () => undefined, disown: () => undefined },
  });
  const cancelled = new HandMadeCall(waiting.peer, '+15550100100');
  cancelled.invite(offerSdp());
  await time.until(() => waiting.inbound.callCount === 1);
  cancelled.cancel();
  expect((await cancelled.final()).status).toBe(487);
  await waiting.inbound.whenIdle();
  expect(waiting.trace.filter(({ source }) => source === 'sip').map(({ summary }) => summary.split(' ', 2).join(' '))).toEqual([
    'INVITE sip:+15550100100@127.0.0.1',
    'CANCEL sip:+15550100100@127.0.0.1',
    'SIP/2.0 200',
    'SIP/2.0 487',
  ]);
  await waiting.stop();
});
