import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { cellDialogsKey } from '../../../src/gateway/store/redis/keys.js';
import { TcpLine } from '../../faults/lines.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { CarrierListener } from '../../support/carrier-listener.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { NUMBER, ORG, signalHost, TwoHosts, type Host } from '../../support/two-hosts.js';
import { sessionsOf } from '../../support/trunk.js';

// The goal is 5 s of silence for 99 of 100 calls. What this prints is a figure; what is asserted holds on any machine.

let hosts: TwoHosts;
let lineOfA: TcpLine;
let carrier: CarrierListener;
let calls: CarrierCall[] = [];

beforeAll(async () => {
  carrier = await CarrierListener.open();
});

afterAll(() => carrier.close());

async function start(ofBoth: Readonly<Record<string, string>> = {}): Promise<void> {
  const ofA = async ({ port }: { readonly port: number }): Promise<Record<string, string>> => {
    lineOfA = await TcpLine.open(port);
    return { TRUNKLINE_REDIS_URL: `redis://127.0.0.1:${String(lineOfA.port)}` };
  };
  hosts = await TwoHosts.start(ofA, null, ofBoth);
}

afterEach(async () => {
  for (const call of calls) call.close();
  calls = [];
  await hosts.close();
  await lineOfA.close();
});

/** @param isReachable the carrier accepts our connections */
async function talking(isReachable = true): Promise<CarrierCall> {
  const call = await CarrierCall.open(hosts.a.trunk, NUMBER);
  calls.push(call);
  await call.connect(isReachable ? carrier.port : null);
  if (isReachable) carrier.add(call);
  return call;
}

/** Redis has so many dialogs of a host. */
async function areStored(count: number, { gateway }: Host = hosts.a): Promise<void> {
  const instance = (await readFile(join(gateway.dataDir, 'gateway-instance'), 'utf8')).trim();
  const command = `HLEN ${cellDialogsKey(instance)}`;
  await until(async () => (await hosts.redis.command(command)) === `:${String(count)}\r\n`, `${String(count)} are not stored`);
}

async function recordsOf({ signalling }: CarrierCall): Promise<readonly CallRecord[]> {
  const { calls: records } = await hosts.stores.calls.list(ORG, { limit: 100 });
  return records.filter(({ sip_call_id: id }) => id === signalling.callId);
}

async function recordOf(call: CarrierCall): Promise<CallRecord | undefined> {
  await until(async () => (await recordsOf(call)).length > 0, 'no record');
  return (await recordsOf(call))[0];
}

const ngPort = ({ gateway }: Host): number => Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);
const version = ({ body }: Pick<WireMessage, 'body'>): number => Number(/^o=\S+ \S+ (\d+)/m.exec(body)?.[1]);
const cseq = (message: WireMessage): number => Number(message.header('CSeq')?.split(' ')[0]);

/** The new owner's re-INVITE. @param contact of which it has this part */
async function movedTo({ trunk }: Host, call: CarrierCall, contact = `${trunk.sipHost}:${String(trunk.sipPort)}`): Promise<WireMessage> {
  await until(() => call.has('INVITE'), 'no re-INVITE');
  const [invite] = call.peer.received.filter(
    (message) => message.startLine.startsWith('INVITE ') && message.header('Call-ID') === call.signalling.callId,
  );
  expect(invite?.header('Contact')).toContain(contact);
  return invite!;
}

async function endsWell(call: CarrierCall): Promise<void> {
  expect((await call.request('BYE')).status).toBe(200);
  expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP', sip_status: 200, resumed: 1 });
}

describe('a host that is lost', () => {
  beforeEach(() => start());

  it('leaves its calls to another one, which reaches the carriers over a connection of its own', async () => {
    const held = [await talking(), await talking(), await talking()];
    await areStored(held.length);
    const answered = (await held[0]!.request('OPTIONS')).status;
    expect(answered).toBe(200);
    const atMs = signalHost(hosts.a, 'SIGKILL');
    for (const call of held) {
      const invite = await movedTo(hosts.b, call);
      expect(version(invite)).toBeGreaterThan(version(call.answer));
      expect(cseq(invite)).toBeGreaterThan(10_000);
      await call.heardAfter(atMs + 1_000);
    }
    const silences = held.map(({ audio }) => audio.longestGapSince(atMs));
    console.log(`host lost: ${silences.join(', ')} ms of silence`);
    expect(held.map(({ audio }) => [audio.ssrcs.length, audio.lost, audio.isInTurn])).toEqual(held.map(() => [2, 0, true]));

    const [call] = held;
    expect((await call!.request('INVITE', call!.audio.sdp({ direction: 'sendonly' }))).body).toContain('a=recvonly');
    expect((await call!.request('UPDATE', call!.audio.sdp())).body).toContain('a=sendrecv');
    await call!.echoedAfter(performance.now());
    await areStored(held.length, hosts.b);
    // Its own crash is one as any other.
    process.kill(await hosts.b.gateway.pidOf('gateway'), 'SIGKILL');
    await until(async () => (await hosts.b.gateway.log('gateway')).split('call.resumed').length > 2 * held.length, 'not resumed');
    expect((await call!.request('BYE')).status).toBe(200);
    expect(await recordOf(call!)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 2 });
    for (const other of held.slice(1)) expect((await other.request('BYE')).status).toBe(200);
    await areStored(0, hosts.b);
    await until(async () => (await sessionsOf(ngPort(hosts.b))) === 0, 'sessions are left');
  });

  it('lets a carrier that comes back first wait for the takeover, and gives it no 481', async () => {
    const call = await talking(false);
    await areStored(1);
    signalHost(hosts.a, 'SIGKILL');
    call.over(await SipPeer.connect(hosts.b.trunk.sipPort, hosts.b.trunk.ca, { host: hosts.b.address }));
    const answers: number[] = [];
    await until(
      async () => {
        answers.push((await call.request('OPTIONS')).status);
        return answers.at(-1) === 200;
      },
      'no takeover',
      { everyMs: 200 },
    );
    expect(new Set(answers)).toEqual(new Set([500, 200]));
    await call.heardAfter(performance.now());
    await endsWell(call);
  });

  it('that was only suspended drops its calls silently when it runs again, and takes new ones', async () => {
    const call = await talking();
    await areStored(1);
    const atMs = signalHost(hosts.a, 'SIGSTOP');
    await movedTo(hosts.b, call);
    await call.heardAfter(atMs + 1_000);
    signalHost(hosts.a, 'SIGCONT');
    await hosts.a.gateway.logged('gateway', 'call.taken_over');
    await until(async () => (await sessionsOf(ngPort(hosts.a))) === 0, 'sessions are left');
    await call.echoedAfter(performance.now());
    expect([call.has('BYE'), (await recordsOf(call)).length]).toEqual([false, 0]);
    await endsWell(call);
    expect(await recordsOf(call)).toHaveLength(1);
    const next = await talking();
    expect((await next.request('BYE')).status).toBe(200);
    expect(await recordOf(next)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
  });

  it(
    'that was suspended for longer than media.timeout_ms ends nothing: it sends no BYE, and each call has one record',
    { timeout: 120_000 },
    async () => {
      const [timed, held] = [await talking(), await talking()];
      const timer = ['Session-Expires: 90;refresher=uac', 'Supported: timer'];
      expect((await timed.signalling.request('UPDATE', timed.answer, '', timer)).header('Session-Expires')).toContain('90');
      expect((await held.request('INVITE', held.audio.sdp({ direction: 'sendonly' }))).body).toContain('a=recvonly');
      await areStored(2);
      const atMs = signalHost(hosts.a, 'SIGSTOP');
      for (const call of [timed, held]) await movedTo(hosts.b, call);
      await timed.heardAfter(atMs + 1_000);
      // Longer than media.timeout_ms (30 s).
      await until(() => performance.now() > atMs + 31_000, 'never');
      const beforeMs = performance.now();
      signalHost(hosts.a, 'SIGCONT');
      await until(async () => (await hosts.a.gateway.log('gateway')).split('call.taken_over').length === 3, 'not both are dropped');
      await until(async () => (await sessionsOf(ngPort(hosts.a))) === 0, 'sessions are left');
      // Whatever the old owner had to say, it would say within these two seconds.
      await until(() => performance.now() > beforeMs + 3_000, 'never');
      await timed.echoedAfter(performance.now());
      for (const call of [timed, held]) {
        // Whole, so that a failure shows why it ended.
        expect([call.has('BYE'), await recordsOf(call)]).toEqual([false, []]);
        await endsWell(call);
        expect(await recordsOf(call)).toHaveLength(1);
      }
    },
  );

  it('that lost Redis sends nothing in its calls, and drops them when it learns who has them', async () => {
    const call = await talking();
    await areStored(1);
    const atMs = performance.now();
    lineOfA.spoil('black hole');
    await movedTo(hosts.b, call);
    await call.heardAfter(atMs + 3_000);
    const onA = await talking();
    lineOfA.spoil(null);
    await hosts.a.gateway.logged('gateway', 'call.taken_over');
    await call.echoedAfter(performance.now());
    // A call that came meanwhile is not the other host's.
    await onA.echoedAfter(performance.now());
    expect([call.has('BYE'), onA.has('BYE')]).toEqual([false, false]);
    await endsWell(call);
    expect((await onA.request('BYE')).status).toBe(200);
    expect(await recordOf(onA)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
  });

  it('is none while its gateways are alive, and while Redis is down', async () => {
    const call = await talking();
    await areStored(1);
    const sipServer = await hosts.a.gateway.pidOf('sip-server');
    process.kill(sipServer, 'SIGSTOP');
    await call.heardAfter(performance.now() + 3_500);
    process.kill(sipServer, 'SIGCONT');
    expect((await call.request('OPTIONS')).status).toBe(200);
    hosts.redis.freeze();
    const atMs = signalHost(hosts.a, 'SIGKILL');
    await hosts.b.gateway.logged('sip-server', 'sip_server.cell.away');
    await until(() => performance.now() > atMs + 4_000, 'never');
    expect(await hosts.b.gateway.log('sip-server')).not.toContain('sip_server.cell.took_over');
    hosts.redis.thaw();
    await movedTo(hosts.b, call);
    await call.heardAfter(performance.now());
    await endsWell(call);
  });
});

describe('a host that shares its name with another one', () => {
  /** Without a port: carriers look up SRV records (RFC 3263 §4.2). */
  const CONTACT = /<sips?:localhost(?:;[^>]*)?>/;
  beforeEach(() => start({ TRUNKLINE_SIP_HOST: 'localhost', TRUNKLINE_SIP_CONTACT_PORT: 'false' }));

  it(
    'keeps the calls of carriers that resolve it again or accept a connection; those of any other end as MEDIA_LOST',
    { timeout: 120_000 },
    async () => {
      const [returning, reached, unreachable] = [await talking(false), await talking(), await talking(false)];
      for (const { answer } of [returning, reached, unreachable]) expect(answer.header('Contact')).toMatch(CONTACT);
      await areStored(3);
      const atMs = signalHost(hosts.a, 'SIGKILL');
      returning.over(await SipPeer.connect(hosts.b.trunk.sipPort, hosts.b.trunk.ca, { host: hosts.b.address }));
      await until(async () => (await returning.request('OPTIONS')).status === 200, 'no takeover', { everyMs: 200 });
      const silences: number[] = [];
      for (const call of [returning, reached]) {
        expect((await movedTo(hosts.b, call, '')).header('Contact')).toMatch(CONTACT);
        await call.heardAfter(atMs + 1_000);
        silences.push(call.audio.longestGapSince(atMs));
      }
      console.log(`host lost, shared name: ${silences.join(', ')} ms of silence`);
      for (const { audio } of [returning, reached]) expect([audio.ssrcs.length, audio.lost, audio.isInTurn]).toEqual([2, 0, true]);

      await until(async () => (await recordsOf(unreachable)).length > 0, 'no record', { everyMs: 500 });
      expect(await recordOf(unreachable)).toMatchObject({
        reason: 'MEDIA_LOST',
        sip_status: 200,
        resumed: 1,
        // Its re-INVITE failed before.
        signalling_error: expect.stringMatching(/^BYE: /) as unknown,
      });
      expect(unreachable.has('INVITE')).toBe(false);
      for (const call of [returning, reached]) {
        await call.echoedAfter(performance.now());
        await endsWell(call);
      }
    },
  );
});
