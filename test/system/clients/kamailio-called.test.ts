import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TraceEntry } from '../../../src/gateway/model/call-trace.js';
import { DnsServer } from '../../support/dns-server.js';
import { Kamailio } from '../../support/kamailio.js';
import { CallEnd } from '../../support/media/call-end.js';
import { TestCa } from '../../support/openssl.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import { OutboundTrunk, type TakenCall } from '../../support/outbound-trunk.js';
import { freePorts } from '../../support/ports.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { nothingLeft, sessionsOf } from '../../support/trunk.js';
import { respond } from '../../support/sip-message.js';

// carrier.test has two servers, both of one Kamailio: its proxy, which challenges each INVITE and BYE. Behind it is a switch that the test
// plays, in clear.

const USERNAME = 'acme';
const PASSWORD = 'p4ss';

let ca: TestCa;
let dns: DnsServer;
let relays: RunningRtpengine[];
let site: OutboundSite;
let behind: OutboundTrunk;
let kamailio: Kamailio;
let first: number;
let second: number;

beforeAll(async () => {
  const [one = 0, two = 0, inside = 0] = await freePorts(3);
  [first, second] = [one, two];
  dns = await DnsServer.start({
    'SRV _sips._tcp.carrier.test': [first, second].map((port, index) => `${String(10 + index)} 0 ${String(port)} sip.carrier.test`),
    'A sip.carrier.test': ['127.0.0.1'],
  });
  relays = [await RunningRtpengine.start(200), await RunningRtpengine.start(200)];
  site = await OutboundSite.start(false, {
    TRUNKLINE_RTPENGINE: relays.map(({ name }) => name).join(','),
    NODE_OPTIONS: `--import ${resolve('test/support/ask-test-dns.mjs')}`,
    TEST_DNS_SERVER: dns.address,
  });
  [ca, behind] = [await TestCa.create(), await OutboundTrunk.openTcp()];
  const { certFile, keyFile } = await ca.issue('carrier', 'DNS:carrier.test');
  kamailio = await Kamailio.start(resolve('test/kamailio/carrier.cfg'), first, {
    FIRST_PORT: String(first),
    SECOND_PORT: String(second),
    INSIDE_PORT: String(inside),
    SWITCH_PORT: String(behind.port),
    CERTIFICATE: certFile,
    KEY: keyFile,
    PEER_CA: site.gateway.ready.ca_file,
    USERNAME,
    PASSWORD,
  });
  const directions = [{ type: 'outbound', sip_endpoint: 'carrier.test', username: USERNAME, password: PASSWORD, ca: ca.ca }];
  const attached = await site.gateway.api('POST', '/sip/attach', { phone_number: FROM, directions, service: 'sip' });
  expect(attached.status, JSON.stringify(attached.json)).toBe(200);
  await site.allow();
});

afterAll(async () => {
  await site.destroy();
  await kamailio.stop();
  await behind.close();
  for (const relay of relays) await relay.stop();
  dns.close();
  await ca.remove();
});

interface Placed {
  readonly callId: string;
  readonly call: TakenCall;
}

async function placed(): Promise<Placed> {
  const { status, json } = await site.place();
  expect(status, JSON.stringify(json)).toBe(200);
  return { callId: String(json['call_id']), call: await behind.call() };
}

async function answered(): Promise<Placed & { readonly end: CallEnd }> {
  const { callId, call } = await placed();
  call.respond('180 Ringing');
  const end = (await CallEnd.open()).connect(call.invite.body);
  const ack = await call.answer(end.sdp());
  // Both routes were its own, and it has followed them.
  expect([ack.header('Route'), ack.headers('Via').length]).toEqual([undefined, 2]);
  return { callId, call, end };
}

const stop = (callId: string): Promise<unknown> => site.gateway.api('POST', `/v1/calls/${callId}/stop`, {});

/** Methods and statuses of a call on our side of Kamailio, in order. */
async function traced(callId: string): Promise<string[]> {
  const { json } = await site.gateway.api('GET', `/v1/calls/${callId}/trace`);
  const sip = (json['trace'] as TraceEntry[]).filter(({ source }) => source === 'sip');
  return sip.map(({ summary }) => /^SIP\/2\.0 (\d+)/.exec(summary)?.[1] ?? summary.split(' ', 1)[0]!);
}

/** Which of its servers the INVITE came through. */
const serverOf = ({ invite }: TakenCall): number =>
  Number(/^<sip:127\.0\.0\.1:(\d+);transport=tls;/.exec(invite.headers('Record-Route').at(-1) ?? '')?.[1]);

const nothingIsLeft = (): Promise<unknown> => Promise.all(relays.map(({ port }) => nothingLeft(port)));

describe('Kamailio, as the proxy of the carrier of outbound calls,', () => {
  it('[3261 §22.3] [3261 §16.12] accepts our credentials; both sides hear each other, and the callee holds, resumes and hangs up', async () => {
    const { callId, call, end } = await answered();
    expect(call.invite.startLine).toBe(`INVITE sip:${TO}@carrier.test;transport=tls SIP/2.0`);
    expect([serverOf(call), call.invite.headers('Record-Route').length]).toEqual([first, 2]);
    expect(call.invite.header('Proxy-Authorization')).toBeUndefined();
    await end.hearsAgent();
    const { dialog } = call;
    expect((await dialog.ask('INVITE', { body: end.sdp({ direction: 'sendonly' }) })).body).toContain('a=recvonly');
    expect((await dialog.ask('INVITE', { body: end.sdp() })).body).toContain('a=sendrecv');
    await end.hearsEcho(4_000);
    expect((await dialog.ask('BYE')).status).toBe(200);
    expect(await site.ended(callId)).toMatchObject({
      reason: 'CALLEE_HANGUP',
      sip_status: 200,
      codec: 'PCMU',
      quality: { relay: { from_carrier: { errors: 0 } } },
    });
    expect((await traced(callId)).slice(0, 3)).toEqual(['INVITE', '407', 'INVITE']);
    await end.close();
    await nothingIsLeft();
  });

  it('[3261 §12.2.1.1] [3261 §22.3] challenges our BYE and passes it on', async () => {
    const { callId, call, end } = await answered();
    await end.hearsAgent();
    await stop(callId);
    const bye = await call.request('BYE');
    expect([bye.header('Route'), bye.header('Proxy-Authorization')]).toEqual([undefined, undefined]);
    expect(bye.header('Reason')).toContain('API_STOPPED');
    respond(call.peer, bye, '200 OK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 200 });
    expect((await traced(callId)).slice(-4)).toEqual(['BYE', '407', 'BYE', '200']);
    await end.close();
    await nothingIsLeft();
  });

  it('[3261 §16.10] passes on our CANCEL', async () => {
    const { callId, call } = await placed();
    call.respond('180 Ringing');
    await stop(callId);
    await call.cancelled();
    expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 487, answered_at: null });
    await nothingIsLeft();
  });

  it('passes on 486 of the callee', async () => {
    const { callId, call } = await placed();
    call.respond('486 Busy Here');
    await call.request('ACK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'BUSY', sip_status: 486 });
  });

  it('[3261 §22.3] refuses a wrong password', async () => {
    const setPassword = (password: string): Promise<unknown> =>
      site.gateway.api('POST', '/sip/update', {
        phone_number: FROM,
        updates: { type: 'outbound', sip_endpoint: 'carrier.test', password },
      });
    await setPassword('other');
    const before = behind.invited.length;
    const { json } = await site.place();
    expect(await site.ended(String(json['call_id']))).toMatchObject({ reason: 'TRUNK_REFUSED', sip_status: 407 });
    expect(behind.invited).toHaveLength(before);
    await setPassword(PASSWORD);
  });

  it('[3264 §8] [3261 §22.3] challenges our re-INVITE and passes it on: audio flows both ways over another rtpengine', async () => {
    const { callId, call, end } = await answered();
    await end.hearsAgent();
    const [one, other] = relays as [RunningRtpengine, RunningRtpengine];
    const busy = (await sessionsOf(one.port)) === 0 ? other : one;
    await busy.kill();
    const invite = await call.request('INVITE');
    expect([invite.header('Route'), invite.header('Proxy-Authorization')]).toEqual([undefined, undefined]);
    end.connect(invite.body);
    respond(call.peer, invite, '200 OK', { body: end.sdp() });
    expect(Number.parseInt((await call.request('ACK')).header('CSeq') ?? '')).toBe(Number.parseInt(invite.header('CSeq') ?? ''));
    await end.hearsEcho(4_000);
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect(await site.ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP' });
    expect((await traced(callId)).filter((one) => one === '407')).toHaveLength(2);
    await end.close();
    await busy.startAgain();
    await nothingIsLeft();
  });

  it('[3261 §21.5.4] [3263 §4.3] moves us by 503 to the other server of its domain, and by Retry-After the next call too', async () => {
    const { callId, call } = await placed();
    expect(serverOf(call)).toBe(first);
    call.respond('503 Service Unavailable');
    await call.request('ACK');
    const again = await behind.call();
    expect([serverOf(again), again.callId]).toEqual([second, call.callId]);
    again.respond('486 Busy Here');
    await again.request('ACK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'BUSY', sip_status: 486 });
    const next = await answered();
    expect(serverOf(next.call)).toBe(second);
    await next.end.hearsAgent();
    await stop(next.callId);
    respond(next.call.peer, await next.call.request('BYE'), '200 OK');
    expect(await site.ended(next.callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 200 });
    await next.end.close();
    await nothingIsLeft();
  });
});
