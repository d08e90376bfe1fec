import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

const NUMBER = '+15550100100';

let gateway: World;
let peer: SipPeer;
let serial = 0;

withWorld((site) => ({ gateway, peer } = site), { TRUNKLINE_SIP_REFER_STATUS: '405' });

/** A request written out, for what HandMadeCall spells in one way only. */
function requestLines(
  method: string,
  callId: string,
  changes: { via?: string; from?: string; to?: string; extra?: readonly string[] } = {},
): string[] {
  serial += 1;
  const { via = `SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=z9hG4bKedge${String(serial)};rport`, extra = [] } = changes;
  return [
    `${method} sip:${NUMBER}@127.0.0.1 SIP/2.0`,
    `Via: ${via}`,
    'Max-Forwards: 70',
    `From: ${changes.from ?? '<sip:+15550100999@carrier>'};tag=edge`,
    `To: ${changes.to ?? `<sip:${NUMBER}@127.0.0.1>`}`,
    `Call-ID: ${callId}`,
    `CSeq: ${method === 'BYE' ? '2 BYE' : `1 ${method}`}`,
    `Contact: <sip:carrier@127.0.0.1:${String(peer.localPort)};transport=tls>`,
    ...(method === 'INVITE' ? ['Content-Type: application/sdp'] : []),
    ...extra,
  ];
}

const finalOf = (callId: string, cseq = '1 INVITE'): Promise<WireMessage> =>
  peer.next(
    `final answer of ${callId}`,
    (message) => message.status >= 200 && message.header('Call-ID') === callId && message.header('CSeq') === cseq,
  );

async function hangUp(callId: string, ok: WireMessage, from?: string): Promise<void> {
  const to = ok.header('To') ?? '';
  const changes = from === undefined ? { to } : { to, from };
  peer.send(requestLines('ACK', callId, changes));
  peer.send(requestLines('BYE', callId, changes));
  expect((await finalOf(callId, '2 BYE')).status).toBe(200);
}

describe('the gateway, for a first call of an unusual peer,', () => {
  it.each(['203.0.113.9:5061', 'sbc.carrier.invalid', '[2001:db8::9]:5061'])(
    '[3261 §18.2.2] answers on the connection when Via names another place (%s)',
    async (sentBy) => {
      const callId = `via-${sentBy}`;
      const via = `SIP/2.0/TLS ${sentBy};branch=z9hG4bKvia${sentBy.length.toString()}`;
      peer.send(requestLines('INVITE', callId, { via }), offerSdp());
      const ok = await finalOf(callId);
      expect([ok.status, ok.header('Via')]).toEqual([200, expect.stringContaining('received=127.0.0.1')]);
      await hangUp(callId, ok);
    },
  );

  it.each<[string, { readonly callId?: string; readonly tag?: string; readonly branch?: string }]>([
    ['Call-ID', { callId: 'outgoing:wacid.HBgLMTU1NTAxMDA5OTkVAgASGCA5=AAA==' }],
    ['Call-ID', { callId: 'a,b;c=d&e#f$g^h' }],
    ['tag', { tag: 'YWJj+ZGVm/Z2hp==' }],
    ['tag', { tag: 'a@b:c,d(e)[f]{g}?&$#^' }],
    ['branch', { branch: 'z9hG4bKYWJj/ZGVm==' }],
  ])('takes a %s that is no word or token of the grammar: %j', async (_what, { callId, tag, branch }) => {
    const id = callId ?? `opaque-${String((serial += 1))}`;
    const spelt = (lines: readonly string[]): string[] =>
      lines.map((line) => (tag === undefined ? line : line.replace(';tag=edge', `;tag=${tag}`)));
    const via = `SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=${branch ?? `z9hG4bK${id}`};rport`;
    peer.send(spelt(requestLines('INVITE', id, { via })), offerSdp());
    const ok = await finalOf(id);
    expect(ok.status).toBe(200);
    const to = ok.header('To') ?? '';
    peer.send(spelt(requestLines('ACK', id, { to })));
    const path = `/v1/calls?state=in_progress&sip_call_id=${encodeURIComponent(id)}`;
    const calls = async (): Promise<readonly { readonly call_id: string }[]> => (await gateway.api('GET', path)).json['calls'] as [];
    await gateway.until(async () => (await calls()).length === 1);
    const stopped = gateway.api('POST', `/v1/calls/${(await calls())[0]?.call_id ?? ''}/stop`, {});
    const bye = await peer.next('BYE', (message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === id);
    expect(bye.header('To')).toContain(`;tag=${tag ?? 'edge'}`);
    respond(peer, bye, '200 OK');
    expect((await stopped).status).toBe(200);
    expect(await gateway.record(id)).toMatchObject({ reason: 'API_STOPPED' });
  });

  it('answers and ends a call with a Call-ID of 1,000 characters and a header of 11,000 bytes', async () => {
    const callId = 'c'.repeat(1_000);
    peer.send([...requestLines('INVITE', callId), `X-Long: ${'x'.repeat(11_000)}`], offerSdp());
    const ok = await finalOf(callId);
    expect(ok.status).toBe(200);
    await hangUp(callId, ok);
  });

  it('[3261 §8.2.2.2] answers the same INVITE by another way with 482, and the first one as usual', async () => {
    const callId = 'merged@carrier';
    peer.send(requestLines('INVITE', callId), offerSdp());
    peer.send(requestLines('INVITE', callId), offerSdp());
    const answers = [await finalOf(callId), await finalOf(callId)];
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 482]);
    await hangUp(
      callId,
      answers.find(({ status }) => status === 200)!,
    );
  });

  it('[3261 §7.3.3] [3261 §7.3.1] takes compact names, folded lines, UTF-8 and a header of 8 kB', async () => {
    const callId = 'spelling@carrier';
    const from = '"Zoë 李" <sip:+15550100999@carrier>';
    const lines = requestLines('INVITE', callId, { from, extra: [`X-Long: ${'x'.repeat(8_000)}`, 'Subject: one', '\ttwo'] }).map((line) =>
      line
        .replace(/^Via:/, 'v:')
        .replace(/^Call-ID:/, 'i:')
        .replace(/^Content-Type:/, 'c:')
        .replace(/^To: /, 't:\r\n  ')
        .replace(/^Contact:/, 'm:'),
    );
    peer.send(lines, offerSdp());
    const ok = await finalOf(callId);
    expect(ok.status).toBe(200);
    await hangUp(callId, ok, from);
    expect(await gateway.record(callId)).toMatchObject({ from: '+15550100999' });
  });

  it('[3261 §12.1.1] [3261 §16.12] returns Record-Route in order in the 200, and routes its BYE by it', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const routes = ['<sip:one.carrier.invalid;lr>', '<sip:two.carrier.invalid;lr;x=1>'];
    const ok = await call.answered(
      offerSdp(),
      routes.map((route) => `Record-Route: ${route}`),
    );
    expect(
      ok.text
        .match(/^Record-Route: .*(?=\r$)/gm)
        ?.join(', ')
        .replaceAll('Record-Route: ', ''),
    ).toBe(routes.join(', '));
    expect((await call.request('INFO', ok, 'Signal=#', ['Content-Type: application/dtmf-relay'])).status).toBe(200);
    const bye = await call.incoming('BYE');
    expect(
      bye.text
        .match(/^Route: .*(?=\r$)/gm)
        ?.join(', ')
        .replaceAll('Route: ', ''),
    ).toBe(routes.join(', '));
    respond(peer, bye, '200 OK');
    await gateway.record(call.callId);
  });
});

describe('a request that is malformed', () => {
  it.each([
    ['From', 'quotes', '"bro"ken" <sip:+15550100999@carrier>', 'Bad From Header'],
    ['To', 'brackets', '<sip:x@127.0.0.1', 'Bad To Header'],
    ['CSeq', 'numbers', 'one INVITE', 'Bad CSeq Header'],
    ['Max-Forwards', 'numbers', '-1', 'Bad Max-Forwards Header'],
    ['Via', 'parameters', 'SIP/2.0/TLS carrier;;branch=z9hG4bK1', 'Bad Via Header'],
  ])('[3261 §21.4.1] by its %s, for its %s, gets 400 with a Warning, and is logged and counted', async (name, _what, value, problem) => {
    const before = gateway.sipServer.totals.malformed;
    const callId = `malformed-${name}`;
    const broken = (line: string): string =>
      line.startsWith(`${name}: `) ? `${name}: ${value}${name === 'From' ? ';tag=edge' : ''}` : line;
    peer.send(requestLines('INVITE', callId).map(broken), offerSdp());
    const answer = await peer.next('400', (message) => message.status === 400 && message.header('Call-ID') === callId);
    expect(answer.header('Warning')).toBe(`399 sip-server "MALFORMED_REQUEST: ${problem}"`);
    expect(gateway.lines).toContainEqual({
      process: 'sip-server',
      level: 'info',
      event: 'sip.message.malformed',
      fields: { peer: '127.0.0.1', error: problem, sip_call_id: callId },
    });
    expect(gateway.sipServer.totals.malformed).toBe(before + 1);
  });
});

describe('refer_status: 405', () => {
  it('[3261 §21.4.6] a REFER within a call gets 405 with an Allow that does not name it', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(offerSdp());
    const refer = await call.request('REFER', ok, '', ['Refer-To: <sip:+15550100777@127.0.0.1>']);
    expect([refer.status, refer.header('Allow')]).toEqual([405, 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY']);
    await call.hangUp(ok);
  });
});
