import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventLog } from '../../support/event-log.js';
import { answered, invite, PeerDialog, sdpOf, SentRequest } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import type { SrfApplication } from '../../support/srf.js';
import type { UdpPeer } from '../../support/udp-peer.js';
import type { WireMessage } from '../../support/wire-peer.js';
import { respond } from '../../support/sip-message.js';

let site: SipSite;
let log: EventLog;
let peer: UdpPeer;

beforeEach(async () => {
  log = new EventLog();
  site = await SipSite.start({ log, graceMs: 30_000 });
  peer = await site.udp();
});
afterEach(async () => {
  await site.settled();
  await site.close();
});

const SDP = sdpOf(40_000);

/** Refuses each INVITE, and accepts each MESSAGE, in its name. */
const named =
  (name: string) =>
  (srf: SrfApplication): void => {
    srf.invite((_req, res) => res.send(486, { headers: { 'X-By': name } }));
    srf.message((_req, res) => res.send(200, { headers: { 'X-By': name } }));
  };

/** Who took it. */
async function taken(method: 'INVITE' | 'MESSAGE'): Promise<string | undefined> {
  const sent = method === 'INVITE' ? invite(peer, 'x') : new SentRequest(peer, 'MESSAGE', 'sip:x@127.0.0.1');
  const answer = await sent.status(method === 'INVITE' ? 486 : 200);
  if (method === 'INVITE') sent.acknowledgeRefusal(answer);
  return answer.header('X-By');
}

async function takers(method: 'INVITE' | 'MESSAGE', times: number): Promise<string[]> {
  const all: string[] = [];
  for (let count = 0; count < times; count += 1) all.push((await taken(method)) ?? 'nobody');
  return all;
}

describe('the SIP server with several applications', () => {
  it('gives each a turn, by method', async () => {
    for (const name of ['A', 'B', 'C']) await site.application(named(name));
    expect(await takers('INVITE', 6)).toEqual(['A', 'B', 'C', 'A', 'B', 'C']);
    expect(await takers('MESSAGE', 4)).toEqual(['A', 'B', 'C', 'A']);
  });

  it('takes a method from the application that sends remove_route, and nothing else', async () => {
    const [a] = [await site.application(named('A')), await site.application(named('B'))];
    a.unregisterForMessages('invite');
    await expect.poll(() => takers('INVITE', 2)).toEqual(['B', 'B']);
    expect((await takers('MESSAGE', 4)).sort()).toEqual(['A', 'A', 'B', 'B']);
  });

  it('gives no turn to one that has left', async () => {
    const [a] = [await site.application(named('A')), await site.application(named('B')), await site.application(named('C'))];
    const gone = log.next('sip_server.application.gone');
    site.leave(a);
    await gone;
    expect((await takers('INVITE', 4)).sort()).toEqual(['B', 'B', 'C', 'C']);
  });

  it('leaves a dialog with the one that answered it', async () => {
    const infos: string[] = [];
    const answering =
      (name: string) =>
      (srf: SrfApplication): void => {
        srf.invite((req, res) => {
          srf.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => {
            dialog.on('info', (_request, response) => {
              infos.push(name);
              response.send(200);
            });
          });
        });
      };
    await site.application(answering('A'));
    await site.application(answering('B'));
    const calls = [await answered(peer, 'x'), await answered(peer, 'x')];
    for (const call of [...calls, ...calls]) expect((await call.ask('INFO')).status).toBe(200);
    expect(infos).toEqual(['A', 'B', 'A', 'B']);
    for (const call of calls) expect((await call.ask('BYE')).status).toBe(200);
  });

  it('logs their tags', async () => {
    const connected = log.next('sip_server.application.connected');
    const { version } = await site.application(named('A'), ['gw:one', 'blue']);
    expect((await connected).fields['tags']).toEqual(['gw:one', 'blue']);
    expect(version).toMatch(/^v\d+\.\d+\.\d+.*-resume$/);
  });
});

describe('the SIP server with call detail events', () => {
  it('sends attempt, start and stop of calls both ways, with source, role and reason', async () => {
    const events: string[] = [];
    const srf = await site.application((application) => {
      application.on('cdr:attempt', (source, _time, message) => events.push(`attempt ${source} ${message.method}`));
      application.on('cdr:start', (source, _time, role, message) => events.push(`start ${source} ${role} ${String(message.status)}`));
      application.on('cdr:stop', (source, _time, reason) => events.push(`stop ${source} ${reason}`));
      application.invite((req, res) => {
        if (req.uri.includes('busy')) res.send(486);
        else application.createUAS(req, res, { localSdp: SDP }, () => undefined);
      });
    });
    expect((await (await answered(peer, 'x')).ask('BYE')).status).toBe(200);
    const busy = invite(peer, 'busy');
    busy.acknowledgeRefusal(await busy.status(486));
    const call = srf.createUAC(`sip:bob@127.0.0.1:${String(peer.localPort)}`, { localSdp: SDP });
    const offered = await peer.request('INVITE');
    respond(peer, offered, '200 OK', { tag: 'c', body: sdpOf(41_000) });
    const ended = (await call).destroy();
    respond(peer, await peer.request('BYE'), '200 OK');
    await ended;
    const expected = [
      ...['attempt network INVITE', 'start application uas 200', 'stop network normal-release'],
      ...['attempt network INVITE', 'stop application call-rejected'],
      ...['attempt application INVITE', 'start network uac 200', 'stop application normal-release'],
    ];
    await expect.poll(() => events).toEqual(expected);
  });
});

describe('the SIP server, for calls of zero length,', () => {
  it('gives all 200 a destroy event, in the callback form', async () => {
    let destroyed = 0;
    await site.application((srf) => {
      srf.invite((req, res) => {
        srf.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => dialog.on('destroy', () => (destroyed += 1)));
      });
    });
    for (let batch = 0; batch < 10; batch += 1) {
      const calls = await Promise.all(Array.from({ length: 20 }, () => answered(peer, 'x')));
      const answers = await Promise.all(calls.map((call) => call.ask('BYE')));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    }
    await expect.poll(() => destroyed).toBe(200);
  });
});

describe('the SIP server, when an application is killed,', () => {
  const PROGRAM = `
    const Srf = require('drachtio-srf');
    const [port, sdp, ...tags] = process.argv.slice(1);
    const srf = new Srf(tags);
    srf.on('error', () => undefined);
    srf.invite((req, res) => {
      if (req.uri.includes('ring')) res.send(180);
      else srf.createUAS(req, res, { localSdp: sdp }, () => undefined);
    });
    srf.on('connect', () => console.log('connected'));
    srf.connect({ host: '127.0.0.1', port: Number(port), secret: 'test-secret' });`;

  /** A process of its own; resolves with the way to kill it. */
  async function program(...tags: string[]): Promise<() => Promise<void>> {
    const child = spawn(process.execPath, ['-e', PROGRAM, String(site.server.controlPort), SDP, ...tags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const connected = log.next('sip_server.application.connected');
    await once(child.stdout, 'data');
    await connected;
    return async () => {
      const gone = log.next('sip_server.application.gone');
      child.kill('SIGKILL');
      await gone;
    };
  }

  it('sends BYE to its calls, and 503 with Retry-After to its unanswered INVITEs', async () => {
    const kill = await program();
    const call = await answered(peer, 'x');
    const ringing = invite(peer, 'ring');
    await ringing.status(180);
    await kill();
    const bye = await call.request('BYE');
    expect(bye.header('Reason')).toBe('SIP;cause=503;text="application gone"');
    respond(peer, bye, '200 OK');
    const refusal = await ringing.status(503);
    expect(refusal.header('Retry-After')).toBe('1');
    ringing.acknowledgeRefusal(refusal);
  });

  it('keeps the calls of one with a tag gw:… and hands them back to it', async () => {
    const kill = await program('gw:one');
    const call = await answered(peer, 'x');
    await kill();
    const timers = site.server.counts['timers'];
    const info = call.ask('INFO');
    await expect.poll(() => site.server.counts['timers']).toBe(timers! + 1);
    await site.pass(2_000);
    expect((await info).status).toBe(500);
    const resumed = log.next('sip_server.application.resumed');
    const shown: string[] = [];
    await site.application(
      (srf) => {
        srf.info((req, res) => {
          shown.push(req.get('Call-ID'));
          res.send(200);
        });
      },
      ['gw:one'],
    );
    expect((await resumed).fields).toMatchObject({ instance: 'gw:one', calls: 1 });
    expect((await call.ask('INFO')).status).toBe(200);
    expect(shown).toEqual([call.callId]);
    expect((await call.ask('BYE')).status).toBe(404);
  });

  /** Calls `peer`, and never acknowledges. */
  const CALLER = `
    const Srf = require('drachtio-srf');
    const [port, sdp, uri, ...tags] = process.argv.slice(1);
    const srf = new Srf(tags);
    srf.on('error', () => undefined);
    srf.on('connect', () => {
      console.log('connected');
      srf.request(uri, { method: 'INVITE', body: sdp }, (error, req) => req.on('response', (res) => console.log(res.status)));
    });
    srf.connect({ host: '127.0.0.1', port: Number(port), secret: 'test-secret' });`;

  async function caller(): Promise<{
    readonly callee: UdpPeer;
    readonly invite: WireMessage;
    readonly kill: () => Promise<void>;
    readonly saw: (text: string) => Promise<void>;
  }> {
    const callee = await site.udp();
    const uri = `sip:x@127.0.0.1:${String(callee.localPort)}`;
    const child = spawn(process.execPath, ['-e', CALLER, String(site.server.controlPort), SDP, uri, 'gw:caller'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const kill = async (): Promise<void> => {
      const gone = log.next('sip_server.application.gone');
      child.kill('SIGKILL');
      await gone;
    };
    return { callee, invite: await callee.request('INVITE'), kill, saw: (text) => expect.poll(() => output).toContain(text) };
  }

  it('[3261 §9.1] [3261 §13.2.2.4] cancels its INVITE, and sends ACK and BYE at once to a 200 that still comes', async () => {
    const { callee, invite: ours, kill, saw } = await caller();
    respond(callee, ours, '180 Ringing', { tag: 'c1' });
    await saw('180');
    await kill();
    respond(callee, await callee.request('CANCEL'), '200 OK', { tag: 'c1' });
    respond(callee, ours, '200 OK', { tag: 'c1', body: SDP });
    const theirs = PeerDialog.callee(callee, ours, 'c1');
    await theirs.request('ACK');
    const bye = await theirs.request('BYE');
    expect(bye.header('Reason')).toBe('SIP;cause=503;text="application gone"');
    respond(callee, bye, '200 OK');
  });

  it('[3261 §13.2.2.4] sends ACK and BYE at once to its call that it had not acknowledged, whatever its tag', async () => {
    const { callee, invite: ours, kill, saw } = await caller();
    respond(callee, ours, '200 OK', { tag: 'c2', body: SDP });
    await saw('200');
    await kill();
    const theirs = PeerDialog.callee(callee, ours, 'c2');
    await theirs.request('ACK');
    respond(callee, await theirs.request('BYE'), '200 OK');
    expect(site.server.counts['calls']).toBe(0);
  });

  it('sends BYE after the grace period to the calls of one with a tag gw:… that does not come back', async () => {
    const kill = await program('gw:one');
    const call = await answered(peer, 'x');
    await kill();
    await site.pass(29_999);
    expect(site.server.counts['calls']).toBe(1);
    await site.pass(1);
    const bye = await call.request('BYE');
    expect(bye.header('Reason')).toContain('application gone');
    respond(peer, bye, '200 OK');
    expect(PeerDialog.caller(peer, bye).callId).toBe(call.callId);
  });
});
