import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { World } from '../world.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';

let gateway: World;
let peer: SipPeer;
let elsewhere: SipPeer;
let serial = 0;
withWorld((site) => ({ gateway, peer } = site));

beforeAll(async () => {
  elsewhere = await SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress: '127.0.0.2' });
});

afterAll(() => {
  elsewhere.close();
});

/** A number of its own for each test: what is counted of one does not count for another. */
async function attached(options: object = {}): Promise<string> {
  serial += 1;
  const number = `+1555010${String(2_000 + serial)}`;
  const { status } = await gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip', options });
  expect(status).toBe(200);
  return number;
}

async function limited(...flags: readonly string[]): Promise<void> {
  const { code, stderr } = await gateway.cli('org', 'set-limits', gateway.ready.org_id, ...flags);
  expect(code, stderr).toBe(0);
}

/** Status and code of the answer; a call that is answered is hung up, and gone when this resolves. */
async function outcome(number: string, from = peer, extra: readonly string[] = []): Promise<[number, string]> {
  const call = new HandMadeCall(from, number);
  call.invite(offerSdp(), extra);
  const answer = await call.final();
  if (answer.status === 200) {
    call.ack(answer);
    await call.hangUp(answer);
    await gateway.record(call.callId);
  }
  return [answer.status, codeOf(answer)];
}

function codeOf(answer: WireMessage): string {
  const code = /^399 \S+ "(\w+): .+"$/.exec(answer.header('Warning') ?? '')?.[1] ?? '';
  if (answer.status >= 300) expect(answer.header('Reason')).toMatch(new RegExp(`^Q\\.850;cause=\\d+;text="${code}"$`));
  return code;
}

/** A call in progress. */
async function talking(number: string): Promise<{ end(): Promise<void> }> {
  const call = new HandMadeCall(peer, number);
  const ok = await call.answered(offerSdp());
  return {
    end: async () => {
      await call.hangUp(ok);
      await gateway.record(call.callId);
    },
  };
}

const NOT_HERE = [403, 'SOURCE_NOT_ALLOWED'];
const ANSWERED = [200, ''];

describe('the list of allowed sources', () => {
  it.each([
    ['an address', ['127.0.0.2']],
    ['a block', ['198.51.100.0/24', '127.0.0.2/31']],
  ])('of a number admits calls from its sources alone, listed as %s', async (_what, sources) => {
    const number = await attached({ allowed_sources: sources });
    expect(await outcome(number)).toEqual(NOT_HERE);
    expect(await outcome(number, elsewhere)).toEqual(ANSWERED);
  });

  it('of a number ignores every header that claims another source', async () => {
    const number = await attached({ allowed_sources: ['127.0.0.2'] });
    const claims = [
      'X-Forwarded-For: 127.0.0.2',
      'X-Real-IP: 127.0.0.2',
      'Forwarded: for=127.0.0.2',
      'Via: SIP/2.0/TLS 127.0.0.2;branch=z9hG4bKx',
    ];
    expect(await outcome(number, peer, claims)).toEqual(NOT_HERE);
  });

  it('of an organization holds for all its numbers, beside the list of the number', async () => {
    const [open, narrow] = [await attached(), await attached({ allowed_sources: ['127.0.0.1'] })];
    await limited('--allowed-sources', '127.0.0.2');
    expect(await outcome(open)).toEqual(NOT_HERE);
    expect(await outcome(open, elsewhere)).toEqual(ANSWERED);
    expect(await outcome(narrow, elsewhere)).toEqual(NOT_HERE);
    await limited('--allowed-sources', 'any');
    expect(await outcome(open)).toEqual(ANSWERED);
  });
});

describe('the limits on calls', () => {
  const busy = (answer: WireMessage): unknown[] => [
    answer.status,
    codeOf(answer),
    /^(?:[1-9]|10)$/.test(answer.header('Retry-After') ?? ''),
  ];

  async function refused(number: string): Promise<unknown[]> {
    const call = new HandMadeCall(peer, number);
    call.invite(offerSdp());
    return busy(await call.final());
  }

  it('[3261 §21.4.24] of a number refuse a call with 486 and Retry-After, and free the slot when a call ends', async () => {
    const number = await attached({ max_concurrent_calls: 2 });
    const calls = [await talking(number), await talking(number)];
    expect(await refused(number)).toEqual([486, 'NUMBER_CALL_LIMIT', true]);
    await calls[0]!.end();
    expect(await outcome(number)).toEqual(ANSWERED);
    await calls[1]!.end();
  });

  it('[3261 §21.4.24] of an organization count the calls to all its numbers', async () => {
    const [one, other] = [await attached(), await attached()];
    await limited('--max-concurrent-calls', '1');
    const call = await talking(one);
    expect(await refused(other)).toEqual([486, 'ORG_CALL_LIMIT', true]);
    await call.end();
    expect(await outcome(other)).toEqual(ANSWERED);
    await limited('--max-concurrent-calls', 'none');
  });

  it('[3261 §21.4.24] a second of a number refuse the calls of one read above them with 486', async () => {
    const number = await attached({ max_calls_per_second: 2 });
    const calls = Array.from({ length: 5 }, () => new HandMadeCall(peer, number));
    for (const call of calls) call.invite(offerSdp());
    const answers = await Promise.all(calls.map((call) => call.final()));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 486, 486, 486]);
    const refusals = answers.filter(({ status }) => status === 486);
    expect(refusals.map(busy)).toEqual(Array(3).fill([486, 'NUMBER_RATE_LIMIT', true]));
    for (const [index, answer] of answers.entries()) {
      if (answer.status !== 200) continue;
      calls[index]!.ack(answer);
      await calls[index]!.hangUp(answer);
    }
  });

  it('[3261 §21.4.24] a second of an organization count the calls to all its numbers', async () => {
    const [one, other] = [await attached(), await attached()];
    await limited('--max-calls-per-second', '1');
    const calls = [one, other].map((number) => new HandMadeCall(peer, number));
    for (const call of calls) call.invite(offerSdp());
    const answers = await Promise.all(calls.map((call) => call.final()));
    expect(answers.map(codeOf).sort()).toEqual(['', 'ORG_RATE_LIMIT']);
    const index = answers.findIndex(({ status }) => status === 200);
    calls[index]!.ack(answers[index]!);
    await calls[index]!.hangUp(answers[index]!);
    await limited('--max-calls-per-second', 'none');
  });

  it('count no refused call', async () => {
    const number = await attached({ max_concurrent_calls: 1 });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const call = new HandMadeCall(peer, number);
      call.invite(offerSdp({ profile: 'RTP/AVP', crypto: [] }));
      expect(codeOf(await call.final())).toBe('SRTP_REQUIRED');
    }
    expect(await outcome(number)).toEqual(ANSWERED);
  });
});
