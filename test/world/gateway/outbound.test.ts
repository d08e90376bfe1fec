import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { orgDialDayKey } from '../../../src/gateway/store/redis/keys.js';
import { send } from '../../support/redis.js';
import { offerSdp } from '../../support/sdp.js';
import type { WireMessage } from '../../support/sip-peer.js';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { World } from '../world.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import { CallEnd } from '../../support/media/call-end.js';
import { type OutboundTrunk, TakenCall } from '../../support/outbound-trunk.js';
import { respond } from '../../support/sip-message.js';

let site: OutboundSite<World>;
let gateway: World;
let trunk: OutboundTrunk;

beforeAll(async () => {
  site = await OutboundSite.startOn((settings) => World.start(settings), false);
  ({ gateway, trunk } = site);
  return () => site.destroy();
});

const place: OutboundSite<World>['place'] = (...given) => site.place(...given);
const placed: OutboundSite<World>['placed'] = (...given) => site.placed(...given);
const callOf: OutboundSite<World>['callOf'] = (...given) => site.callOf(...given);
const ended: OutboundSite<World>['ended'] = (...given) => site.ended(...given);

describe('an organization that no operator has enabled', () => {
  it('may place no call, and must name a number that is attached for outbound calls', async () => {
    expect(await place()).toMatchObject({ status: 400, json: { errors: [{ path: 'from' }] } });
    await site.attach();
    expect(await place()).toMatchObject({ status: 403, json: { errors: [{ error: 'DIAL_NOT_ALLOWED' }] } });
    expect(trunk.peers).toEqual([]);
  });
});

describe('a call that is placed', () => {
  beforeAll(async () => {
    await site.allow();
  });

  it('[3261 §13.2.1] [4568 §5.1] offers SRTP, and whoever answers hears the agent', async () => {
    const { callId, call } = await placed({ metadata: { order: 7 } });
    expect(call.invite.startLine).toBe(`INVITE sip:${TO}@${trunk.endpoint};transport=tls SIP/2.0`);
    expect(call.invite.header('From')).toMatch(new RegExp(`^<sip:\\${FROM}@127.0.0.1>;tag=`));
    expect(call.invite.body).toMatch(/m=audio \d+ RTP\/SAVP 0 8 101\r\n/);
    expect(await callOf(callId)).toMatchObject({ state: 'ringing', direction: 'outbound', from: FROM, to: TO, sip_call_id: call.callId });
    call.respond('180 Ringing');
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await end.hearsEcho(5_000);
    expect(await callOf(callId)).toMatchObject({ state: 'in_progress', codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' });
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    const record = await ended(callId);
    expect(record).toMatchObject({
      reason: 'CALLEE_HANGUP',
      sip_status: 200,
      direction: 'outbound',
      quality: { relay: { from_carrier: { errors: 0 } } },
    });
    expect(record.timings.ring_ms).not.toBeNull();
    await end.close();
  });

  it.each([
    ['486 Busy Here', 'BUSY'],
    ['600 Busy Everywhere', 'BUSY'],
    ['480 Temporarily Unavailable', 'NO_ANSWER'],
    ['603 Decline', 'CALLEE_DECLINED'],
    ['404 Not Found', 'TRUNK_REFUSED'],
    ['503 Service Unavailable', 'TRUNK_REFUSED'],
    ['408 Request Timeout', 'DIAL_AMBIGUOUS'],
    ['500 Server Internal Error', 'DIAL_AMBIGUOUS'],
    ['504 Server Time-out', 'DIAL_AMBIGUOUS'],
    ['302 Moved Temporarily', 'TRUNK_REFUSED'],
    ['401 Unauthorized', 'TRUNK_REFUSED'],
  ])('[3261 §21] gets %s and ends as %s, and the gateway tries no other trunk', async (status, reason) => {
    const { callId, call } = await placed();
    call.respond(status, { extra: ['Contact: <sip:+4930999999@127.0.0.1>', 'WWW-Authenticate: Digest realm="t", nonce="n"'] });
    await call.request('ACK');
    expect(await ended(callId)).toMatchObject({ reason, sip_status: Number(status.slice(0, 3)), answered_at: null });
    expect(call.peer.received.filter(({ startLine }) => startLine.startsWith('INVITE ')).at(-1)).toBe(call.invite);
  });

  it('[3261 §9.1] is cancelled after the ring timeout when nobody answers', async () => {
    const { callId, call } = await placed({ ring_timeout: 5 });
    call.respond('180 Ringing');
    const cancel = await call.cancelled();
    expect(cancel.header('Reason')).toBe('Q.850;cause=19;text="NO_ANSWER"');
    expect(await ended(callId)).toMatchObject({ reason: 'NO_ANSWER', sip_status: 487 });
  });

  it('[3261 §9.1] is stopped while it rings; without a provisional response the CANCEL waits for one', async () => {
    const { callId, call } = await placed();
    expect((await gateway.api('POST', `/v1/calls/${callId}/stop`, {})).status).toBe(200);
    // In the order of the connection: a CANCEL would have come before the 100 is answered by it.
    const isCancel = (message: WireMessage): boolean =>
      message.startLine.startsWith('CANCEL ') && message.header('Call-ID') === call.callId;
    expect(call.peer.received.some(isCancel)).toBe(false);
    call.respond('100 Trying');
    await call.cancelled();
    expect(await ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 487, answered_at: null });
  });

  it('[3261 §9.1] [3261 §13.2.2.4] gets ACK and BYE when its 200 crosses the CANCEL', async () => {
    const { callId, call } = await placed();
    call.respond('180 Ringing');
    const end = await CallEnd.open();
    await gateway.api('POST', `/v1/calls/${callId}/stop`, {});
    await call.request('CANCEL');
    await call.answer(end.sdp());
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect(await ended(callId)).toMatchObject({ reason: 'API_STOPPED', answered_at: null });
    await end.close();
  });

  it('[3261 §13.2.2.4] sends ACK and BYE to the 200 of another fork', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    call.respond('200 OK', { body: end.sdp(), tag: 'fork' });
    const isOfFork = (message: WireMessage): boolean => (message.header('To') ?? '').endsWith(';tag=fork');
    await call.peer.next('ACK of the fork', (message) => message.startLine.startsWith('ACK ') && isOfFork(message));
    respond(
      call.peer,
      await call.peer.next('BYE of the fork', (message) => message.startLine.startsWith('BYE ') && isOfFork(message)),
      '200 OK',
    );
    await end.hearsAgent();
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect(await ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP' });
    await end.close();
  });

  it('[3261 §13.2.2.4] sends its ACK also when the callee hangs up before it', async () => {
    const { callId, call } = await placed();
    const end = await CallEnd.open();
    const acknowledged = call.answer(end.sdp());
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    await acknowledged;
    expect(await ended(callId)).toMatchObject({ sip_status: 200, timings: { talk_ms: 0 } });
    await end.close();
  });

  it('[3261 §13.2.1] may have its answer in a 183, and none in the 200', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    call.respond('183 Session Progress', { body: end.sdp() });
    await call.answer('');
    await end.hearsAgent();
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect(await ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP', codec: 'PCMU' });
    await end.close();
  });

  it('has early media in no figure of its quality: its key comes with the answer', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    call.respond('183 Session Progress', { body: end.sdp() });
    await end.peer.speak(new Int16Array(25 * 160).fill(4_000));
    await gateway.pass(1_000);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await end.peer.speak(new Int16Array(25 * 160).fill(4_000));
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect((await ended(callId)).quality.relay?.from_carrier).toMatchObject({ packets: 25, errors: 0 });
    await end.close();
  });

  it('[3264 §6] [4568 §6] ends with BAD_ANSWER when the answer lacks the key that was offered', async () => {
    const { callId, call } = await placed();
    await call.answer(offerSdp({ profile: 'RTP/AVP', crypto: [] }));
    const bye = await call.request('BYE');
    expect(bye.header('Reason')).toBe('Q.850;cause=58;text="BAD_ANSWER"');
    respond(call.peer, bye, '200 OK');
    expect(await ended(callId)).toMatchObject({ reason: 'BAD_ANSWER', sip_status: 200 });
  });

  it('[3264 §8] [4733] is held, resumed and ended like an inbound call: the agent hangs up on #', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    const { dialog } = call;
    expect((await dialog.ask('INVITE', { body: end.sdp({ direction: 'sendonly' }) })).body).toContain('a=recvonly');
    expect((await dialog.ask('INVITE', { body: end.sdp() })).body).toContain('a=sendrecv');
    await end.hearsEcho(4_000);
    await end.peer.press(11);
    const bye = await call.request('BYE');
    expect(bye.header('Reason')).toBe('Q.850;cause=16;text="AGENT_HANGUP"');
    respond(call.peer, bye, '200 OK');
    expect(await ended(callId)).toMatchObject({ reason: 'AGENT_HANGUP' });
    await end.close();
  });

  it('[3264 §6.1] takes digits of the type that it offered and of that in the answer, and offers its own type again', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open({ telephoneEventPayloadType: 96 })).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await end.peer.press(1);
    await end.peer.press(2, 101);
    const { dialog } = call;
    expect((await dialog.ask('INVITE')).body).toMatch(/^m=audio \d+ RTP\/SAVP 0 .*101\r$/m);
    await end.peer.press(3);
    expect((await dialog.ask('BYE')).status).toBe(200);
    expect(await ended(callId)).toMatchObject({ quality: { endpoint: { digits_received: 3 } } });
    await end.close();
  });

  it('has a trace that no telephone-event was agreed', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp({ payloads: '0', rtpmap: ['0 PCMU/8000'] }));
    await end.hearsAgent();
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    await ended(callId);
    const { json } = await gateway.api('GET', `/v1/calls/${callId}/trace`);
    expect((json['trace'] as { summary: string }[]).map(({ summary }) => summary)).toContainEqual(
      expect.stringContaining('no telephone-event was agreed'),
    );
    await end.close();
  });

  it('[5923] shares one connection with all calls to its trunk', () => {
    expect(trunk.peers).toHaveLength(1);
  });
});

describe('a trunk that cannot be used', () => {
  const attach = (sip_endpoint: string): Promise<unknown> =>
    gateway.api('POST', '/sip/update', { phone_number: FROM, updates: { type: 'outbound', sip_endpoint } });

  afterAll(() => attach(trunk.endpoint));

  it('fails a call with TRUNK_UNREACHABLE when its port is closed', async () => {
    await attach('127.0.0.1:9');
    const { json } = await place();
    const callId = String(json['call_id']);
    const failure = 'INVITE: 127.0.0.1:9 refused the connection (ECONNREFUSED)';
    expect(await ended(callId)).toMatchObject({ reason: 'TRUNK_UNREACHABLE', sip_status: null, signalling_error: failure });
    const { json: answer } = await gateway.api('GET', `/v1/calls/${callId}/trace`);
    const trace = answer['trace'] as readonly { direction: string | null; summary: string }[];
    expect(trace.filter(({ summary }) => /503|no response/.test(summary))).toMatchObject([
      { source: 'gateway', direction: null, summary: `no response to ${failure}` },
    ]);
  });

  it('since its name is not known has the name in signalling_error', async () => {
    await attach('nowhere.invalid:5061');
    const { json } = await place();
    expect(await ended(String(json['call_id']))).toMatchObject({
      reason: 'TRUNK_UNREACHABLE',
      signalling_error: expect.stringMatching(/^INVITE: no server of nowhere\.invalid was found: /) as unknown,
    });
  });

  it('fails a call with DIAL_AMBIGUOUS when its connection is lost after the INVITE', async () => {
    await attach(trunk.endpoint);
    const { json } = await place();
    const { peer } = await trunk.call();
    peer.close();
    expect(await ended(String(json['call_id']))).toMatchObject({ reason: 'DIAL_AMBIGUOUS' });
  });
});

describe('a challenge of the trunk', () => {
  const [username, password] = ['acme', 'p"4ss'];

  beforeAll(async () => {
    const updates = { type: 'outbound', sip_endpoint: trunk.endpoint, username, password };
    expect((await gateway.api('POST', '/sip/update', { phone_number: FROM, updates })).json['data']).toMatchObject({
      outbound: { sip_endpoint: trunk.endpoint, username },
    });
  });

  /** As a carrier checks it: RFC 7616 §3.4.1, with the password that it has. */
  function isAuthorized(invite: WireMessage, secret: string, hash: 'md5' | 'sha256', method = 'INVITE'): boolean {
    const header = invite.header('Proxy-Authorization') ?? '';
    const value = (name: string): string =>
      new RegExp(`\\b${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^,\\s]+))`).exec(header)?.slice(1).find(Boolean) ?? '';
    const digest = (text: string): string => createHash(hash).update(text).digest('hex');
    const uri = invite.startLine.split(' ')[1] ?? '';
    const expected = digest(
      [digest(`${username}:carrier:${secret}`), value('nonce'), value('nc'), value('cnonce'), 'auth', digest(`${method}:${uri}`)].join(':'),
    );
    return value('uri') === uri && value('response') === expected;
  }

  const challenge = (call: TakenCall, nonce: string, more = ''): void =>
    call.respond('407 Proxy Authentication Required', {
      extra: ['SHA-512', 'SHA-256', 'MD5'].map(
        (name) => `Proxy-Authenticate: Digest realm="carrier", qop="auth", algorithm=${name}, nonce="${nonce}"${more}`,
      ),
    });

  it('[3261 §22.2] [8760 §2.4] gets an answer with SHA-256, in the same call with the next CSeq, and in the ACK', async () => {
    const { callId, call } = await placed();
    challenge(call, 'n1');
    await call.request('ACK');
    const again = new TakenCall(call.peer, await call.request('INVITE'));
    expect(isAuthorized(again.invite, password, 'sha256')).toBe(true);
    expect(Number.parseInt(again.invite.header('CSeq') ?? '')).toBe(Number.parseInt(call.invite.header('CSeq') ?? '') + 1);
    expect([again.callId, again.invite.header('From')]).toEqual([call.callId, call.invite.header('From')]);
    const end = (await CallEnd.open()).connect(again.invite.body);
    const ack = await again.answer(end.sdp());
    expect(ack.header('Proxy-Authorization')).toBe(again.invite.header('Proxy-Authorization'));
    await end.hearsAgent();
    expect((await again.dialog.ask('BYE')).status).toBe(200);
    expect(await ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP', sip_status: 200 });
    await end.close();
  });

  it('[3261 §22.3] of two realms gets answers for both, in two header fields', async () => {
    const { callId, call } = await placed();
    const extra = ['proxy', 'carrier'].map((realm) => `Proxy-Authenticate: Digest realm="${realm}", qop="auth", nonce="m1"`);
    call.respond('407 Proxy Authentication Required', { extra });
    await call.request('ACK');
    const again = new TakenCall(call.peer, await call.request('INVITE'));
    const realms = [...again.invite.text.matchAll(/^Proxy-Authorization: Digest [^\r]*?realm="(\w+)"[^\r]*\r$/gim)].map(
      ([, realm]) => realm,
    );
    expect(realms).toEqual(['proxy', 'carrier']);
    again.respond('486 Busy Here');
    await again.request('ACK');
    expect(await ended(callId)).toMatchObject({ reason: 'BUSY' });
  });

  it('[3261 §22.2] gets an answer in the call too: the gateway sends BYE again with credentials', async () => {
    const { callId, call } = await placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await gateway.api('POST', `/v1/calls/${callId}/stop`, {});
    const bye = await call.request('BYE');
    const extra = [`Proxy-Authenticate: Digest realm="carrier", qop="auth", algorithm=SHA-256, nonce="b1"`];
    respond(call.peer, bye, '407 Proxy Authentication Required', { extra });
    const again = await call.request('BYE');
    expect(isAuthorized(again, password, 'sha256', 'BYE')).toBe(true);
    expect(Number.parseInt(again.header('CSeq') ?? '')).toBe(Number.parseInt(bye.header('CSeq') ?? '') + 1);
    respond(call.peer, again, '200 OK');
    expect(await ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 200 });
    await end.close();
  });

  it('[7616 §3.3] gets another answer when only the nonce was stale, and no third one', async () => {
    const { callId, call } = await placed();
    let last = call;
    for (const nonce of ['n1', 'n2', 'n3']) {
      challenge(last, nonce, last === call ? '' : ', stale=true');
      await last.request('ACK');
      if (nonce === 'n3') break;
      last = new TakenCall(call.peer, await last.request('INVITE'));
      expect(isAuthorized(last.invite, password, 'sha256')).toBe(true);
    }
    expect(await ended(callId)).toMatchObject({ reason: 'TRUNK_REFUSED', sip_status: 407 });
  });

  it('[3261 §22.1] gets one answer with a wrong password', async () => {
    await gateway.api('POST', '/sip/update', {
      phone_number: FROM,
      updates: { type: 'outbound', sip_endpoint: trunk.endpoint, password: 'other' },
    });
    const { callId, call } = await placed();
    challenge(call, 'n1');
    await call.request('ACK');
    const again = new TakenCall(call.peer, await call.request('INVITE'));
    expect([isAuthorized(again.invite, password, 'sha256'), isAuthorized(again.invite, 'other', 'sha256')]).toEqual([false, true]);
    challenge(again, 'n2');
    await again.request('ACK');
    expect(await ended(callId)).toMatchObject({ reason: 'TRUNK_REFUSED', sip_status: 407 });
  });

  it('makes the password appear nowhere', async () => {
    const { json } = await gateway.api('GET', `/sip?inbound_id=${FROM.slice(1)}`);
    expect(json['data']).toMatchObject({ outbound: { username } });
    const { json: calls } = await gateway.api('GET', '/v1/calls?limit=100');
    const [first] = calls['calls'] as CallRecord[];
    const { json: trace } = await gateway.api('GET', `/v1/calls/${first?.call_id ?? ''}/trace`);
    expect(JSON.stringify(trace)).toContain('Proxy-Authorization: ***');
    const logs = await Promise.all(['gateway', 'sip-server'].map((name) => gateway.log(name)));
    for (const text of [JSON.stringify(json), JSON.stringify(calls), JSON.stringify(trace), ...logs])
      expect(text).not.toMatch(/p\\?"4ss|"other"|response=/);
  });
});

describe('a call that the operator did not allow', () => {
  it.each([
    ['a prefix without a price', '+33123456789', /no prefix that the operator has allowed/],
    ['a prefix that is forbidden', '+49900123456', /has forbidden numbers that begin with \+49900/],
    ['an emergency number', '+4911222', /emergency, service or short number/],
    ['a service code', '+19115550100', /emergency, service or short number/],
  ])('gets 403 to %s', async (_what, phone_number, message) => {
    await site.allow('--prices', '+49=0.02,+49900=never,+1=0.01');
    const { status, json } = await place({ phone_number });
    expect([status, json['message']]).toEqual([403, expect.stringMatching(message)]);
  });

  it('gets 403 from a number that the operator has not verified, and 400 from that of another organization', async () => {
    await gateway.api('POST', '/sip/attach', {
      phone_number: '+15550100556',
      directions: [{ type: 'outbound', sip_endpoint: trunk.endpoint }],
      service: 'sip',
    });
    expect(await place({ from: '+15550100556' })).toMatchObject({ status: 403 });
    const other = JSON.parse((await gateway.cli('org', 'create', 'Other', '--sip', '--json')).stdout) as { org_id: string };
    const { key } = JSON.parse((await gateway.cli('key', 'create', other.org_id, '--json')).stdout) as { key: string };
    await gateway.cli('org', 'set-dialling', other.org_id, '--prices', '+49=0.02', '--callers', FROM, '--max-calls-per-second', '9');
    expect(await site.placeBy(key, { phone_number: TO, from: FROM })).toMatchObject({ status: 400, json: { errors: [{ path: 'from' }] } });
  });

  it('gets a record with the reason over the limits of a day; an unanswered call gives its cost back', async () => {
    const before = await microsReserved();
    const { callId, call } = await placed({ max_duration: 5 });
    expect(await microsReserved()).toBe(before + 5 * 20_000);
    call.respond('486 Busy Here');
    await ended(callId);
    await gateway.until(async () => (await microsReserved()) === before);
    // Limits below one call, so that a day (UTC) that begins meanwhile changes nothing.
    await site.allow('--max-cost-per-day', '0.09');
    const { json } = await place({ max_duration: 5 });
    expect(await ended(String(json['call_id']))).toMatchObject({ reason: 'DIAL_NOT_ALLOWED', sip_status: null, answered_at: null });
    await site.allow('--max-cost-per-day', '1000', '--max-calls-per-day', '0');
    // No call at all, as before the limits are set: the answer says it.
    const { status, json: next } = await place();
    expect([status, next['message']]).toEqual([403, expect.stringContaining('max_calls_per_day is 0 (org set-dialling)')]);
    await site.allow('--max-calls-per-day', '1000');
  });

  it('gets a record and a trace with the limit of its trunk; the end of a call frees its slot', async () => {
    await site.allow('--max-concurrent-calls-per-trunk', '1');
    const { callId, call } = await placed();
    const { json } = await place();
    const refused = String(json['call_id']);
    expect(await ended(refused)).toMatchObject({ reason: 'DIAL_NOT_ALLOWED', sip_status: null });
    const trace = await gateway.api('GET', `/v1/calls/${refused}/trace`);
    expect(JSON.stringify(trace.json)).toContain('the trunk has as many placed calls in progress as the operator allows for each trunk');
    call.respond('486 Busy Here');
    await ended(callId);
    const next = await placed();
    next.call.respond('486 Busy Here');
    await ended(next.callId);
    await site.allow('--max-concurrent-calls-per-trunk', 'none');
  });

  it('appears in the audit log, as does the change by the operator', async () => {
    const { json } = await gateway.api('GET', '/v1/audit?take=100');
    const entries = JSON.stringify(json);
    expect(entries).toContain('"fields":["dialling"]');
    expect(entries).toContain('call.place');
  });
});

describe('an idempotency key', () => {
  it('places one call for one body, and gets 409 for another body', async () => {
    const headers = { 'idempotency-key': 'order-1047' };
    const first = await place({}, headers);
    const call = await trunk.call();
    expect(await place({}, headers)).toMatchObject({ status: 200, json: { call_id: first.json['call_id'] } });
    expect(await place({ ring_timeout: 10 }, headers)).toMatchObject({
      status: 409,
      json: { errors: [{ error: 'IDEMPOTENCY_KEY_REUSED' }] },
    });
    call.respond('486 Busy Here');
    await ended(String(first.json['call_id']));
    expect(await place({}, headers)).toMatchObject({ status: 200, json: { call_id: first.json['call_id'] } });
    expect(call.peer.received.filter(({ startLine }) => startLine.startsWith('INVITE ')).at(-1)).toBe(call.invite);
  });
});

/** What the organization's calls cost or reserve, in millionths, over all its days: the test may run at midnight. */
async function microsReserved(): Promise<number> {
  const port = Number(gateway.environment['TRUNKLINE_REDIS_PORT']);
  const days = await send(port, `KEYS ${orgDialDayKey(gateway.ready.org_id, '????-??-??')}`);
  let sum = 0;
  for (const key of days.split('\r\n').filter((line) => /^[^*$]/.test(line))) {
    const answer = await send(port, `HGET ${key} micros`);
    sum += Number(/^\$\d+\r\n(.*)\r\n/.exec(answer)?.[1] ?? 0);
  }
  return sum;
}
