import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { areKept, attach, isKept, killAndReturn, killGateway, nothingLeft, recordOf } from '../../support/trunk.js';
import { respond } from '../../support/sip-message.js';

// How long the silence lasts is measured by `npm run faults`.

let gateway: RunningGateway;
let ngPort: number;
let calls: CarrierCall[] = [];

// One for each test: the supervisor waits longer for a process each time that it dies within a minute.
beforeEach(async () => {
  gateway = await RunningGateway.start();
  ngPort = Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);
});

afterEach(async () => {
  for (const call of calls) call.close();
  calls = [];
  await gateway.destroy();
});

async function talking(number = gateway.ready.phone_number): Promise<CarrierCall> {
  const call = await opened(number);
  await call.connect();
  await isKept(gateway, call.signalling.callId);
  return call;
}

async function opened(number = gateway.ready.phone_number): Promise<CarrierCall> {
  const call = await CarrierCall.open(gateway, number);
  calls.push(call);
  return call;
}

/** Where the gateway's media is, without what may change from one description to the next. */
const mediaLines = (sdp: string): string[] => sdp.match(/^(?:c=|m=|a=crypto|a=rtcp:).*$/gm) ?? [];

async function endsWell(call: CarrierCall, resumed: number): Promise<void> {
  expect((await call.request('BYE')).status).toBe(200);
  expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP', sip_status: 200, resumed });
  await nothingLeft(ngPort);
}

describe('a gateway that is killed during a call', () => {
  it('resumes it in the same dialog at the same media address, with audio both ways from a new source', async () => {
    const call = await talking();
    const killedMs = await killGateway(gateway);
    await call.heardAfter(killedMs + 200);
    console.log(`gateway killed: ${String(call.audio.longestGapSince(killedMs))} ms of silence`);
    // At once, and no packet is lost but those that nobody sent.
    expect(gateway.output).toMatch(/"child":"gateway".*"restart_in_ms":0\b/);
    expect([call.audio.ssrcs.length, call.audio.lost, call.audio.isInTurn, call.audio.bad]).toEqual([2, 0, true, 0]);
    // The probe, which the carrier answered.
    await call.theirs('OPTIONS');

    const again = await call.request('INVITE', call.audio.sdp());
    expect([again.status, mediaLines(again.body)]).toEqual([200, mediaLines(call.answer.body)]);
    expect((await call.request('OPTIONS')).status).toBe(200);
    const held = await call.request('UPDATE', call.audio.sdp({ direction: 'sendonly' }));
    expect([held.status, held.body]).toEqual([200, expect.stringContaining('a=recvonly')]);
    expect((await call.request('UPDATE', call.audio.sdp())).body).toContain('a=sendrecv');
    await call.echoedAfter(performance.now());
    await endsWell(call, 1);
    expect(call.has('BYE')).toBe(false);
  });

  it('keeps the slot of the call under the limit of its number', async () => {
    const number = '+15550100881';
    await attach(gateway, number, { max_concurrent_calls: 1 });
    const call = await talking(number);
    await killAndReturn(gateway);
    const second = await opened(number);
    second.signalling.invite(second.audio.sdp());
    expect((await second.signalling.final()).header('Warning')).toContain('NUMBER_CALL_LIMIT');
    await endsWell(call, 1);
    const third = await talking(number);
    await endsWell(third, 0);
  });

  it('leaves a held call held', async () => {
    const call = await talking();
    expect((await call.request('INVITE', call.audio.sdp({ direction: 'inactive' }))).body).toContain('a=inactive');
    await isKept(gateway, '"isHeld":true');
    const killedMs = await killAndReturn(gateway);
    await call.theirs('OPTIONS');
    const retrievedMs = performance.now();
    expect((await call.request('INVITE', call.audio.sdp())).body).toContain('a=sendrecv');
    await call.heardAfter(retrievedMs);
    expect(call.audio.heard.filter(({ atMs }) => atMs > killedMs && atMs < retrievedMs)).toEqual([]);
    await endsWell(call, 1);
  });

  it('answers a re-INVITE in progress with 500, and the next one as usual', async () => {
    const call = await talking();
    const pid = await gateway.pidOf('gateway');
    // It cannot answer any more.
    process.kill(pid, 'SIGSTOP');
    const under = call.request('INVITE', call.audio.sdp({ direction: 'sendonly' }));
    await call.peer.next('100 to the re-INVITE', (message) => message.status === 100 && message.header('CSeq') === '2 INVITE');
    const killedMs = performance.now();
    process.kill(pid, 'SIGKILL');
    expect((await under).status).toBe(500);
    await call.heardAfter(killedMs + 200);
    expect((await call.request('INVITE', call.audio.sdp())).status).toBe(200);
    await endsWell(call, 1);
  });

  it('resumes a call whose ACK had not come', async () => {
    const call = await opened();
    call.signalling.invite(call.audio.sdp());
    call.answer = await call.signalling.final();
    call.audio.follow(call.answer.body);
    await isKept(gateway, call.signalling.callId);
    const killedMs = await killAndReturn(gateway);
    call.signalling.ack(call.answer);
    await call.heardAfter(killedMs);
    await endsWell(call, 1);
  });

  it('resumes a call that it has just answered', async () => {
    const call = await opened();
    const pid = await gateway.pidOf('gateway');
    const { onMessage } = call.peer;
    let killedMs = 0;
    call.peer.onMessage = (message) => {
      if (message.status === 200 && killedMs === 0) {
        process.kill(pid, 'SIGKILL');
        killedMs = performance.now();
      }
      onMessage(message);
    };
    call.signalling.invite(call.audio.sdp());
    call.answer = await call.signalling.final();
    call.audio.follow(call.answer.body);
    call.signalling.ack(call.answer);
    await call.heardAfter(killedMs + 200);
    await endsWell(call, 1);
  });

  it('resumes a call without an offer', async () => {
    const call = await opened();
    await call.connectLate();
    await isKept(gateway, '"name":"Talking"');
    const killedMs = await killGateway(gateway);
    await call.heardAfter(killedMs + 200);
    await call.echoedAfter(performance.now());
    await endsWell(call, 1);
  });

  it('writes the record of a call whose caller hung up in the meantime', async () => {
    const call = await talking();
    await killGateway(gateway);
    expect((await call.request('BYE')).status).toBe(200);
    // The BYE waits 2 s for the next gateway, which takes longer on a busy machine.
    const reason = expect.stringMatching(/^(?:CALLER_HANGUP|GATEWAY_RESTARTED)$/) as string;
    expect(await recordOf(gateway, call)).toMatchObject({ reason, resumed: 1 });
    await nothingLeft(ngPort);
  });

  it('writes the record of a call that it was ending', async () => {
    const call = await talking();
    call.otherAnswer = null;
    const { json } = await gateway.api('GET', '/v1/calls?state=live');
    const [{ call_id: callId } = { call_id: '' }] = json['calls'] as { call_id: string }[];
    expect((await gateway.api('POST', `/v1/calls/${callId}/stop`)).status).toBe(200);
    // Its answer finds nobody.
    const bye = await call.theirs('BYE');
    await killGateway(gateway);
    respond(call.peer, bye, '200 OK');
    expect(await recordOf(gateway, call)).toMatchObject({ call_id: callId, reason: 'GATEWAY_RESTARTED', resumed: 1 });
    await nothingLeft(ngPort);
  });

  it('twice in a row resumes it twice', async () => {
    const call = await talking();
    await call.heardAfter((await killAndReturn(gateway)) + 200);
    await isKept(gateway, '"resumed":1');
    const killedMs = await killGateway(gateway);
    await call.heardAfter(killedMs + 200);
    expect(new Set(call.audio.ssrcs).size).toBe(3);
    await endsWell(call, 2);
  });

  it('resumes twenty at once', async () => {
    const twenty = await Promise.all(Array.from({ length: 20 }, () => opened()));
    await Promise.all(twenty.map((call) => call.connect()));
    await areKept(gateway, 20);
    const killedMs = await killGateway(gateway);
    await Promise.all(twenty.map((call) => call.heardAfter(killedMs + 200)));
    const silences = twenty.map(({ audio }) => audio.longestGapSince(killedMs)).toSorted((a, b) => a - b);
    console.log(`gateway killed with 20 calls: ${String(silences[0])} to ${String(silences.at(-1))} ms of silence`);
    expect(twenty.map(({ audio }) => [audio.ssrcs.length, audio.lost, audio.isInTurn])).toEqual(twenty.map(() => [2, 0, true]));
    expect((await Promise.all(twenty.map((call) => call.request('BYE')))).map(({ status }) => status)).toEqual(Array(20).fill(200));
    const records = await Promise.all(twenty.map((call) => recordOf(gateway, call)));
    expect(new Set(records.map(({ reason, resumed }) => `${reason} ${String(resumed)}`))).toEqual(new Set(['CALLER_HANGUP 1']));
    await nothingLeft(ngPort);
  });
});

describe('a gateway that stays down for too long', () => {
  it('finds its calls ended by the SIP server, and writes their records', async () => {
    const other = await RunningGateway.start({ TRUNKLINE_DRACHTIO_GRACE_MS: '100' });
    try {
      const call = await CarrierCall.talking(other, other.ready.phone_number);
      await killGateway(other);
      expect((await call.theirs('BYE')).header('Reason')).toBe('SIP;cause=503;text="application gone"');
      expect(await recordOf(other, call)).toMatchObject({ reason: 'GATEWAY_RESTARTED', resumed: 1 });
      await nothingLeft(Number(other.environment['TRUNKLINE_RTPENGINE_NG_PORT']));
      await until(() => !call.audio.isHeardAfter(performance.now() - 100), 'no silence');
      call.close();
    } finally {
      await other.destroy();
    }
  });
});
