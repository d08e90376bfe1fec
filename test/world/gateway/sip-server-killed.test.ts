import { readFile, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { journalName } from '../../../src/config/cells.js';
import { readJournal } from '../../../src/sip-server/dialog-journal.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { testCertificates } from '../../support/certificates.js';
import { SipPeer } from '../../support/sip-peer.js';
import { areKept, recordOf } from '../../support/trunk.js';
import { CONTROL_PORT, World } from '../world.js';

const NUMBER = '+15550100100';

let world: World;
let listener: Server | undefined;
let calls: CarrierCall[] = [];

beforeEach(async () => {
  world = await World.start();
});

afterEach(async () => {
  for (const call of calls) call.close();
  calls = [];
  listener?.close();
  listener = undefined;
  await world.destroy();
});

/** @param contact port that the carrier listens at */
async function talking(contact?: number): Promise<CarrierCall> {
  const call = await CarrierCall.open(world, NUMBER);
  calls.push(call);
  await call.connect(contact);
  return call;
}

/** kill -9, and the next one; resolves when the gateway is connected to it. */
async function killed(): Promise<void> {
  const before = world.events('gateway.sip_server.connected').length;
  world.killSipServer();
  await world.startSipServer();
  await world.until(() => world.events('gateway.sip_server.connected').length > before);
}

async function reconnect(call: CarrierCall): Promise<void> {
  call.over(await world.carrier());
}

/** A carrier that accepts connections: each is the call's from then on. */
async function carrierThatListens(): Promise<{ readonly port: number; accept(call: CarrierCall): Promise<void> }> {
  const { cert, key } = await testCertificates();
  const accepted: SipPeer[] = [];
  const server = createServer({ cert, key }, (socket) => void accepted.push(SipPeer.accepted(socket)));
  listener = server;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    accept: async (call) => {
      await until(() => accepted.length > 0, 'nobody connected');
      call.over(accepted[0]!);
      for (const message of accepted[0]!.received) accepted[0]!.onMessage(message);
    },
  };
}

/** The Call-IDs that the next SIP server would take over. */
const journalFile = (): string => join(world.dataDir, journalName(1));
const journal = async (): Promise<string[]> => readJournal(await readFile(journalFile(), 'latin1')).records.map(({ callId }) => callId);
const leftNothing = (): Promise<void> => world.until(() => world.rtpengine.sessions.size === 0);

async function live(): Promise<readonly { readonly call_id: string }[]> {
  return (await world.api('GET', '/v1/calls?state=live')).json['calls'] as { call_id: string }[];
}

/** By the API. */
async function stop(): Promise<void> {
  for (const { call_id: id } of await live()) expect((await world.api('POST', `/v1/calls/${id}/stop`, {})).status).toBe(200);
}

describe('a kill -9 of the SIP server, with calls up,', () => {
  it('lets a carrier that comes back only with a request send every request in its call', async () => {
    const call = await talking();
    await killed();
    await call.heardAfter(performance.now());
    await reconnect(call);
    expect((await call.request('OPTIONS')).status).toBe(200);
    expect((await call.request('INVITE', call.audio.sdp({ direction: 'sendonly' }))).body).toContain('a=recvonly');
    expect((await call.request('UPDATE', call.audio.sdp())).body).toContain('a=sendrecv');
    await call.echoedAfter(performance.now());
    expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
    await leftNothing();
  });

  it('lets a BYE that comes before the gateway is back wait for it: the record has who hung up', async () => {
    const call = await talking();
    world.killSipServer();
    world.network.setFate(CONTROL_PORT, 'refused');
    await world.startSipServer();
    await reconnect(call);
    const bye = call.request('BYE');
    expect(await journal()).toEqual([call.signalling.callId]);
    world.network.setFate(CONTROL_PORT, 'connects');
    expect((await bye).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    await world.until(async () => (await journal()).length === 0);
    await leftNothing();
  });

  it('makes the gateway query a carrier that accepts its connection within 10 s, and send it the BYE of the API', async () => {
    const carrier = await carrierThatListens();
    const call = await talking(carrier.port);
    await killed();
    await carrier.accept(call);
    await call.theirs('OPTIONS');
    expect((await call.request('INFO')).status).toBe(200);
    await call.echoedAfter(performance.now());
    await stop();
    expect((await call.theirs('BYE')).header('Reason')).toContain('API_STOPPED');
    expect(await recordOf(world, call)).toMatchObject({ reason: 'API_STOPPED' });
    await leftNothing();
  });

  it('makes the gateway send its BYE on the connection that a carrier came back with', async () => {
    const call = await talking();
    await killed();
    await reconnect(call);
    expect((await call.request('OPTIONS')).status).toBe(200);
    await stop();
    await call.theirs('BYE');
    expect(await recordOf(world, call)).toMatchObject({ reason: 'API_STOPPED' });
    await leftNothing();
  });

  it('delays the BYE of a call that the API ends until the SIP server is back', async () => {
    const carrier = await carrierThatListens();
    const call = await talking(carrier.port);
    world.killSipServer();
    await world.until(() => world.events('gateway.sip_server.lost').length === 1);
    await stop();
    await world.until(() => world.events('call.ended').length === 1);
    await world.startSipServer();
    await carrier.accept(call);
    expect((await call.theirs('BYE')).header('Reason')).toContain('API_STOPPED');
    await leftNothing();
  });

  it('ends the call of a carrier that answers 481, and not that of one that cannot be reached', async () => {
    const carrier = await carrierThatListens();
    const [gone, away] = [await talking(carrier.port), await talking()];
    await killed();
    gone.otherAnswer = '481 Call/Transaction Does Not Exist';
    await carrier.accept(gone);
    expect(await recordOf(world, gone)).toMatchObject({ reason: 'INTERNAL_ERROR' });
    await world.logged('gateway', '"is_lost":false');
    await away.echoedAfter(performance.now());
    await reconnect(away);
    expect((await away.request('BYE')).status).toBe(200);
    expect(await recordOf(world, away)).toMatchObject({ reason: 'CALLER_HANGUP' });
    await leftNothing();
  });

  it('makes the gateway send a 200 without ACK again', async () => {
    const carrier = await carrierThatListens();
    const call = await CarrierCall.open(world, NUMBER);
    calls.push(call);
    call.signalling.invite(call.audio.sdp(), [], `Contact: <sip:carrier@127.0.0.1:${String(carrier.port)};transport=tls>`);
    call.answer = await call.signalling.final();
    await killed();
    await reconnect(call);
    // It knows nothing of us until it is told again: here, by its own request.
    call.signalling.ack(call.answer);
    call.audio.follow(call.answer.body);
    await call.heardAfter(performance.now());
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    await leftNothing();
  });

  it('frees an INVITE without an answer, and its Call-ID with a new branch makes a new call', async () => {
    const call = await CarrierCall.open(world, NUMBER);
    calls.push(call);
    world.rtpengine.stall();
    call.signalling.invite(call.audio.sdp());
    await world.until(async () => (await live()).length === 1);
    world.killSipServer();
    world.rtpengine.goOn();
    await world.startSipServer();
    expect((await recordOf(world, call)).reason).toBe('INTERNAL_ERROR');
    await leftNothing();
    await world.until(async () => (await world.api('GET', '/readyz')).status === 200);
    await reconnect(call);
    call.signalling.again();
    await call.connect();
    expect((await call.request('BYE')).status).toBe(200);
    await leftNothing();
  });

  it('and of the gateway lets the calls be resumed', async () => {
    const call = await talking();
    await areKept(world, 1);
    world.killSipServer();
    world.killGateway();
    await Promise.all([world.startSipServer(), world.startGateway()]);
    await call.heardAfter(performance.now());
    await reconnect(call);
    expect((await call.request('INVITE', call.audio.sdp())).status).toBe(200);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 1 });
    await leftNothing();
  });

  it('leaves the call in progress when it happens twice in a row', async () => {
    const call = await talking();
    await killed();
    await killed();
    await reconnect(call);
    expect((await call.request('INVITE', call.audio.sdp())).status).toBe(200);
    await killed();
    await reconnect(call);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    await leftNothing();
  });

  it('gives a stranger no access to a call that was taken over; only its owner may read the journal', async () => {
    const call = await talking();
    await killed();
    call.over(await world.carrier('127.0.0.9'));
    expect((await call.request('BYE')).status).toBe(403);
    await reconnect(call);
    expect((await call.request('BYE')).status).toBe(200);
    expect((await stat(journalFile())).mode & 0o777).toBe(0o600);
    await leftNothing();
  });
});
