import { beforeEach, describe, expect, it } from 'vitest';
import { TrunkRegistrar, type RegistrarServices } from '../../../../src/gateway/drachtio/trunk-registrar.js';
import { parseE164 } from '../../../../src/gateway/model/e164.js';
import type { NumberRecord, OutboundTrunk, TrunkRegistration } from '../../../../src/gateway/model/records.js';
import type { SrfAnswer, SrfHeaders } from '../../../../src/gateway/ports/signalling.js';
import { silentLog } from '../../../../src/lib/log.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const MINUTE_MS = 60_000;
const OWN = '<sip:+15550100555@a.test;transport=tls>';

/** The store that all gateways share. */
let numbers: NumberRecord[];
let owners: Map<string, string>;
let states: TrunkRegistration[];
let clock: VirtualClock;
let sent: { by: string; uri: string; headers: SrfHeaders }[];
let answer: (count: number) => Partial<SrfAnswer> | Error;

function numberOf(trunk: Partial<OutboundTrunk>, phone = '+15550100555'): NumberRecord {
  return {
    inbound_id: 'IN-1',
    phone_number: parseE164(phone)!,
    org_id: 'org',
    inbound: null,
    outbound: { sip_endpoint: 'trunk.test', username: 'acme', password: 'secret', registrar: 'reg.test', ...trunk },
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  };
}

function registrarOf(gateway: string, more: Partial<RegistrarServices> = {}): TrunkRegistrar {
  return new TrunkRegistrar({
    registrations: {
      registering: () => Promise.resolve(numbers),
      claim: (account) => Promise.resolve((owners.get(account) ?? owners.set(account, gateway).get(account)) === gateway),
      release: (account) => {
        if (owners.get(account) === gateway) owners.delete(account);
        return Promise.resolve();
      },
      note: (_account, state) => {
        states.push(state);
        return Promise.resolve();
      },
      states: () => Promise.resolve([]),
      watching: () => Promise.resolve([]),
      noteTrunk: () => Promise.resolve(),
      trunkStates: () => Promise.resolve([]),
    },
    srf: {
      register: ({ uri, headers }, onAnswer) => {
        sent.push({ by: gateway, uri, headers });
        const given = answer(sent.length);
        if (given instanceof Error) return onAnswer(given);
        const status = given.status ?? 200;
        onAnswer(null, { status, body: '', unanswered: null, raw: `SIP/2.0 ${String(status)} X\r\n\r\n`, ...given });
      },
    },
    refusal: () => Promise.resolve(null),
    contact: (user) => `<sip:${user}@${gateway}.test;transport=tls>`,
    trunksArePublic: true,
    clock,
    log: silentLog,
    ...more,
  });
}

/** In steps, as what is awaited goes on between two timers. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    clock.advance(Math.min(left, 1_000));
    for (let turn = 0; turn < 12; turn += 1) await Promise.resolve();
  }
}

const expiries = (): (string | undefined)[] => sent.map(({ headers }) => headers['Expires']);

beforeEach(() => {
  clock = new VirtualClock();
  numbers = [numberOf({})];
  owners = new Map();
  states = [];
  sent = [];
  answer = () => ({});
});

describe('a trunk with a registrar', () => {
  it('[3261 §10.2] is registered, and again every 2 minutes, since its connection may have broken, with one Call-ID and rising CSeq', async () => {
    registrarOf('a').start();
    await pass(3_000);
    expect(sent).toHaveLength(1);
    const [{ uri, headers }] = sent as [(typeof sent)[0]];
    expect(uri).toBe('sip:reg.test;transport=tls');
    expect([headers['To'], headers['Contact']]).toEqual(['<sip:acme@reg.test>', '<sip:+15550100555@a.test;transport=tls>']);
    expect(headers['From']).toMatch(/^<sip:acme@reg\.test>;tag=\w+$/);
    expect(states).toEqual([
      { state: 'registered', status: 200, expires_at: '2026-01-01T00:10:02.000Z', changed_at: '2026-01-01T00:00:02.000Z' },
    ]);
    await pass(2 * MINUTE_MS - 2_000);
    expect(sent).toHaveLength(1);
    await pass(4_000);
    expect(sent).toHaveLength(2);
    const cseqs = sent.map(({ headers: { CSeq = '' } }) => Number.parseInt(CSeq, 10));
    expect(cseqs[1]).toBe(cseqs[0]! + 1);
    expect(new Set(sent.map(({ headers: { 'Call-ID': id, From: from } }) => `${id!} ${from!}`)).size).toBe(1);
  });

  it('[3261 §10.2.4] is registered for as long as the registrar grants', async () => {
    answer = () => ({ raw: `SIP/2.0 200 OK\r\nExpires: 400\r\nContact: <sip:x@y>;expires=50, ${OWN};q=1;expires=100\r\n\r\n` });
    registrarOf('a').start();
    await pass(3_000);
    expect(states[0]).toMatchObject({ expires_at: '2026-01-01T00:01:42.000Z' });
    await pass(79_000);
    expect(sent).toHaveLength(2);
    answer = () => ({ raw: 'SIP/2.0 200 OK\r\nExpires: 40\r\nContact: <sip:x@y>;expires=500\r\n\r\n' });
    await pass(79_000);
    expect(sent.length).toBeGreaterThan(2);
    expect(Date.parse(states[2]!.expires_at!) - Date.parse(states[2]!.changed_at)).toBe(40_000);
  });

  it('[3261 §22] gets an answer to its challenge', async () => {
    answer = (count) =>
      count === 1
        ? { status: 401, raw: 'SIP/2.0 401 U\r\nWWW-Authenticate: Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256\r\n\r\n' }
        : {};
    registrarOf('a').start();
    await pass(3_000);
    expect(sent).toHaveLength(2);
    expect(sent[1]!.headers['Authorization']).toMatch(/^Digest username="acme", realm="r", nonce="n", uri="sip:reg\.test;transport=tls"/);
    expect(states).toMatchObject([{ state: 'registered' }]);
  });

  it('[3261 §10.2.8] gets a longer expiry when it finds the first too brief', async () => {
    answer = (count) => (count === 1 ? { status: 423, raw: 'SIP/2.0 423 Interval Too Brief\r\nMin-Expires: 1800\r\n\r\n' } : {});
    registrarOf('a').start();
    await pass(5_000);
    expect(expiries()).toEqual(['600', '1800']);
  });

  it.each([
    ['refused', { status: 403 }, { state: 'refused', status: 403, expires_at: null }],
    ['not reached', { status: 503, unanswered: 'no route' }, { state: 'unreachable', status: null, expires_at: null }],
    ['not sent', new Error('no connection'), { state: 'unreachable', status: null, expires_at: null }],
  ] as const)('[5626 §4.5] is tried again with backoff when it is %s', async (_what, given, state) => {
    answer = () => given;
    registrarOf('a').start();
    await pass(3_000);
    expect(states).toMatchObject([state]);
    await pass(34_000);
    expect(sent).toHaveLength(2);
    await pass(60 * MINUTE_MS);
    expect(sent.length).toBeGreaterThan(5);
    expect(sent.length).toBeLessThan(14);
  });

  it.each([0, 1, 9])(
    '[3261 §10.2.4] is not registered when the registrar grants %i s, and is tried again with backoff',
    async (seconds) => {
      answer = () => ({ raw: `SIP/2.0 200 OK\r\nContact: ${OWN};expires=${String(seconds)}\r\n\r\n` });
      registrarOf('a').start();
      await pass(3_000);
      expect(states).toMatchObject([{ state: 'refused', status: 200, expires_at: null }]);
      await pass(60 * MINUTE_MS);
      expect(sent.length).toBeLessThan(14);
      expect(states.every(({ state }) => state === 'refused')).toBe(true);
    },
  );

  it('[3261 §10.2.4] stays registered with the shortest possible lifetime: each refresh comes before its end', async () => {
    answer = () => ({ raw: `SIP/2.0 200 OK\r\nContact: ${OWN};expires=10\r\n\r\n` });
    registrarOf('a').start();
    await pass(MINUTE_MS);
    const times = states.map(({ changed_at: at }) => Date.parse(at));
    expect(times.length).toBeGreaterThan(5);
    times.slice(1).forEach((at, index) => expect(at - times[index]!).toBeLessThan(10_000));
  });

  it.each([
    ['120', 120],
    ['120 (maintenance);duration=3600', 120],
    ['999999999', 86_400],
  ])('[3261 §20.33] gets no REGISTER for as long as Retry-After: %s requires', async (value, seconds) => {
    answer = () => ({ status: 503, raw: `SIP/2.0 503 Service Unavailable\r\nRetry-After: ${value}\r\n\r\n` });
    registrarOf('a').start();
    await pass(3_000);
    expect(states).toMatchObject([{ state: 'refused', status: 503 }]);
    await pass((seconds - 4) * 1_000);
    expect(sent).toHaveLength(1);
    await pass(6_000);
    expect(sent).toHaveLength(2);
  });

  it('is registered by one gateway of all, and by another once that one is gone', async () => {
    const first = registrarOf('a');
    first.start();
    registrarOf('b').start();
    await pass(20 * MINUTE_MS);
    expect(new Set(sent.map(({ by }) => by))).toEqual(new Set(['a']));
    await first.stop(true);
    expect(sent.at(-1)).toMatchObject({ by: 'a', headers: { Expires: '0' } });
    await pass(3_000);
    expect(sent.at(-1)).toMatchObject({ by: 'b', headers: { Contact: '<sip:+15550100555@b.test;transport=tls>', Expires: '600' } });
  });

  it('keeps its registration when its gateway has a successor', async () => {
    const first = registrarOf('a');
    first.start();
    await pass(3_000);
    await first.stop(false);
    expect(expiries()).toEqual(['600']);
    expect([...owners.values()]).toEqual(['a']);
    // At a reload it ends later than its successor begins, which has the binding then.
    await first.stop(true);
    expect(expiries()).toEqual(['600']);
  });

  it('is registered at once after a refusal when somebody saves the number again, though nothing changed', async () => {
    answer = () => ({ status: 403 });
    registrarOf('a').start();
    await pass(3_000);
    await pass(40_000);
    const before = sent.length;
    await pass(4_000);
    expect(sent).toHaveLength(before);
    answer = () => ({});
    numbers = numbers.map((number) => ({ ...number, updated_at: '2026-01-02T00:00:00.000Z' }));
    await pass(4_000);
    expect(sent).toHaveLength(before + 1);
    expect(states.at(-1)).toMatchObject({ state: 'registered' });
  });

  it('is registered again when its settings change or the SIP server is new, and no more when they are removed', async () => {
    const registrar = registrarOf('a');
    registrar.start();
    await pass(3_000);
    numbers = [numberOf({ password: 'other' })];
    await pass(3_000);
    expect(sent).toHaveLength(2);
    registrar.refresh();
    await pass(3_000);
    expect(sent).toHaveLength(3);
    numbers = [];
    await pass(3_000);
    expect(expiries()).toEqual(['600', '600', '600', '0']);
    await pass(20 * MINUTE_MS);
    expect(sent).toHaveLength(4);
    expect(owners.size).toBe(0);
  });

  it('of several numbers with one user is registered once, and without a user or permission never', async () => {
    numbers = [numberOf({}), numberOf({}, '+15550100556'), numberOf({ registrar: 'REG.test' }, '+15550100557')];
    registrarOf('a').start();
    await pass(3_000);
    expect(sent).toHaveLength(1);
    const { username: _none, ...nobody } = numberOf({}).outbound!;
    numbers = [{ ...numberOf({}), outbound: { ...nobody, registrar: 'other.test' } }];
    registrarOf('b').start();
    registrarOf('c', { refusal: () => Promise.resolve('no') }).start();
    await pass(3_000);
    expect(sent.filter(({ by }) => by !== 'a')).toEqual([]);
  });
});
