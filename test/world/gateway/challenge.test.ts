import { describe, expect, it } from 'vitest';
import { chooseChallenges, digestAnswer, type DigestChallenge } from '../../../src/lib/digest-access.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

// A number that challenges the calls that come in.

const CREDENTIALS = { username: 'carrier', password: 's3 cret' };

let gateway: World;
let peer: SipPeer;
let serial = 0;
withWorld((site) => ({ gateway, peer } = site));

/** A call to a number of its own, with these options. */
async function callTo(options: object = { challenge: CREDENTIALS }): Promise<{ readonly call: HandMadeCall; readonly number: string }> {
  serial += 1;
  const number = `+1555010${String(4_000 + serial)}`;
  const { status } = await gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip', options });
  expect(status).toBe(200);
  return { call: new HandMadeCall(peer, number), number };
}

async function invited(call: HandMadeCall, extra: readonly string[] = []): Promise<WireMessage> {
  call.invite(offerSdp(), extra);
  return call.final();
}

function challengeOf(answer: WireMessage, algorithm: 'SHA-256' | 'MD5' = 'SHA-256'): DigestChallenge {
  const values = answer.headers('WWW-Authenticate');
  const challenge = values.flatMap((value) => chooseChallenges([value])).find((one) => one.algorithm === algorithm);
  if (challenge === undefined) throw new Error(`no challenge for ${algorithm}: ${answer.text}`);
  return challenge;
}

function authorization(challenge: DigestChallenge, number: string, { password = CREDENTIALS.password, uri = '' } = {}): string {
  const request = { method: 'INVITE', uri: uri === '' ? `sip:${number}@127.0.0.1` : uri, count: 1, cnonce: 'c0ffee' };
  return `Authorization: ${digestAnswer(challenge, { ...CREDENTIALS, password }, request)}`;
}

async function ended(call: HandMadeCall, ok: WireMessage): Promise<Readonly<Record<string, unknown>>> {
  call.ack(ok);
  await call.hangUp(ok);
  return gateway.record(call.callId);
}

async function counted(credentials: string): Promise<number> {
  const metrics = parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text());
  return metrics.sum('trunkline_calls_challenged_total', { credentials }) ?? 0;
}

describe('a call to a number with a challenge', () => {
  it('[8760 §2.3] is challenged for SHA-256 first, then MD5, each in a header field of its own', async () => {
    const { call } = await callTo();
    const answer = await invited(call);
    expect(answer.status).toBe(401);
    const challenges = answer.headers('WWW-Authenticate').flatMap((value) => chooseChallenges([value]));
    expect(challenges.map(({ algorithm, hasQop, isStale }) => [algorithm, hasQop, isStale])).toEqual([
      ['SHA-256', true, false],
      ['MD5', true, false],
    ]);
    expect(answer.header('Warning')).toContain('CREDENTIALS_REQUIRED');
  });

  it.each(['SHA-256', 'MD5'] as const)('[3261 §22.2] is answered when its next INVITE has the right answer by %s', async (algorithm) => {
    const { call, number } = await callTo({ challenge: CREDENTIALS, max_calls_per_second: 1, max_concurrent_calls: 1 });
    const challenged = await invited(call);
    call.next();
    const ok = await invited(call, [authorization(challengeOf(challenged, algorithm), number)]);
    expect(ok.status).toBe(200);
    // The challenge left neither a record nor a call that counts.
    expect(await ended(call, ok)).toMatchObject({ sip_status: 200 });
    const records = await gateway.records();
    expect(records.filter(({ sip_call_id: id }) => id === call.callId)).toHaveLength(1);
  });

  it('finds its answer among those to other realms', async () => {
    const { call, number } = await callTo();
    const challenge = challengeOf(await invited(call));
    call.next();
    const ok = await invited(call, [authorization({ ...challenge, realm: 'elsewhere' }, number), authorization(challenge, number)]);
    expect(ok.status).toBe(200);
    await ended(call, ok);
  });

  it.each([
    ['another password', {}, { password: 'other' }],
    ['another user’s URI', {}, { uri: 'sip:+15550100000@127.0.0.1' }],
    ['another username', { username: 'other' }, {}],
  ])('is challenged again where it has %s, leaves no record, and is counted and logged', async (_what, credentials, change) => {
    const { call, number } = await callTo({ challenge: { ...CREDENTIALS, ...credentials } });
    const challenge = challengeOf(await invited(call));
    const before = await counted('wrong');
    call.next();
    const again = await invited(call, [authorization(challenge, number, change)]);
    expect([again.status, challengeOf(again).isStale]).toEqual([401, false]);
    expect(await counted('wrong')).toBe(before + 1);
    expect(gateway.events('call.credentials.wrong').length).toBeGreaterThan(0);
    await gateway.pass(10_000);
    expect((await gateway.records()).filter(({ sip_call_id: id }) => id === call.callId)).toEqual([]);
  });

  it.each([[';transport=tls'], [';user=phone;transport=tls'], ['?X-A=b']])(
    'is answered where the URI of the digest differs in %s alone',
    async (parameters) => {
      const { call, number } = await callTo();
      const challenge = challengeOf(await invited(call));
      call.next();
      const ok = await invited(call, [authorization(challenge, number, { uri: `sip:${number}@127.0.0.1${parameters}` })]);
      expect(ok.status).toBe(200);
      await ended(call, ok);
    },
  );

  it('[7616 §3.3] gets stale=true for a nonce of six minutes ago, and is answered with the new one', async () => {
    const { call, number } = await callTo();
    const old = authorization(challengeOf(await invited(call)), number);
    await gateway.pass(6 * 60_000);
    call.next();
    const stale = await invited(call, [old]);
    expect([stale.status, challengeOf(stale).isStale]).toEqual([401, true]);
    call.next();
    const ok = await invited(call, [authorization(challengeOf(stale), number)]);
    expect(ok.status).toBe(200);
    await ended(call, ok);
  });

  it('gets stale=true for a nonce that nobody made', async () => {
    const { call, number } = await callTo();
    const challenge = challengeOf(await invited(call));
    call.next();
    const forged = await invited(call, [authorization({ ...challenge, nonce: challenge.nonce.replace(/.$/, 'x') }, number)]);
    expect([forged.status, challengeOf(forged).isStale]).toEqual([401, true]);
  });

  it('is not asked for credentials where its source is not allowed', async () => {
    const { call } = await callTo({ challenge: CREDENTIALS, allowed_sources: ['203.0.113.1'] });
    expect((await invited(call)).status).toBe(403);
  });
});

describe('a number without a challenge', () => {
  it.each([[{}], [{ challenge: null }]])('with the options %j answers an INVITE without credentials', async (options) => {
    const { call } = await callTo(options);
    const ok = await invited(call);
    expect(ok.status).toBe(200);
    await ended(call, ok);
  });
});

describe('the control API', () => {
  const challengeShown = async (number: string): Promise<unknown> => {
    const { json } = await gateway.api('GET', `/sip?inbound_id=${encodeURIComponent(number)}`);
    const { inbound } = json['data'] as { readonly inbound: { readonly options: Readonly<Record<string, unknown>> } };
    return inbound.options['challenge'];
  };

  it('never shows the password, and keeps it for a challenge without one', async () => {
    const { call, number } = await callTo();
    expect(await challengeShown(number)).toEqual({ username: 'carrier' });
    const updates = { type: 'inbound', options: { challenge: { username: 'carrier' }, refer: false } };
    expect((await gateway.api('POST', '/sip/update', { phone_number: number, updates })).status).toBe(200);
    const challenge = challengeOf(await invited(call));
    call.next();
    const ok = await invited(call, [authorization(challenge, number)]);
    expect(ok.status).toBe(200);
    await ended(call, ok);
  });

  it('says of a dry run that nobody has checked the credentials', async () => {
    const { number } = await callTo();
    const { json } = await gateway.api('POST', '/sip/check', { phone_number: number, source_ip: '127.0.0.1', sdp: offerSdp() });
    expect(json['data']).toMatchObject({
      outcome: 'accept',
      explanation: expect.stringContaining('Not checked, because unknown: credentials') as unknown,
    });
  });

  it('refuses a challenge without a password where the number has none', async () => {
    const { number } = await callTo({});
    const updates = { type: 'inbound', options: { challenge: { username: 'carrier' } } };
    const { status, json } = await gateway.api('POST', '/sip/update', { phone_number: number, updates });
    expect([status, JSON.stringify(json)]).toEqual([expect.any(Number), expect.stringContaining('updates.options.challenge.password')]);
    expect(status).toBeGreaterThanOrEqual(400);
  });
});
