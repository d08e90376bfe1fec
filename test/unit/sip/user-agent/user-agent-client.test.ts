import { beforeEach, describe, expect, it } from 'vitest';
import type { Flow, PeerTls, Target } from '../../../../src/sip/transport/flow.js';
import type { DialogEntry } from '../../../../src/sip/dialog/dialog-table.js';
import { getHeader, type SipResponse } from '../../../../src/sip/message/message.js';
import type { OutgoingRequest } from '../../../../src/sip/user-agent/user-agent-context.js';
import { headersOf, OWN, PeerFlow, UserAgentBench, valueOf } from '../../../support/user-agent-bench.js';

const URI = 'sip:+15550100100@peer.example';
const CONTACT = 'Contact: <sip:peer@10.0.0.9;transport=tls>';
const TLS: PeerTls = { id: 'own', ca: null, names: [], own: null };

let bench: UserAgentBench;
let peer: PeerFlow;
let opened: Target[];
/** How a connection to each target goes; `undefined`: there is no way. */
let open: (target: Target) => Flow | undefined;

beforeEach(() => {
  peer = new PeerFlow('10.0.0.9');
  opened = [];
  open = () => peer;
  bench = new UserAgentBench({
    open: (target) => {
      opened.push(target);
      return open(target);
    },
  });
});

/** An INVITE that was answered and acknowledged. */
async function established(uri = URI, more: Parameters<UserAgentBench['send']>[2] = {}, contact = CONTACT): Promise<DialogEntry> {
  const { dialog } = await answered(uri, more, contact);
  if (dialog === null) throw new Error('there is no dialog');
  bench.agent.sendInDialog(dialog, { method: 'ACK', headers: [], body: '' });
  peer.sent.length = 0;
  return dialog;
}

async function answered(uri = URI, more: Parameters<UserAgentBench['send']>[2] = {}, contact = CONTACT): Promise<OutgoingRequest> {
  const request = await bench.send('INVITE', uri, more);
  await bench.answer(peer, '200 OK', [contact]);
  return request;
}

const inDialog = (dialog: DialogEntry, method: string, headers: Readonly<Record<string, string>> = {}) =>
  bench.agent.sendInDialog(dialog, { method, headers: headersOf(headers), body: '' });

describe('a request outside dialogs', () => {
  it('requires a URI and a connection', () => {
    const send = (uri: string): unknown => bench.agent.send(uri, { method: 'OPTIONS', headers: [], body: '' }, null);
    expect([send('tel:+15550100100'), send('nonsense')]).toEqual(['bad-uri', 'bad-uri']);
    open = () => undefined;
    expect(send(URI)).toBe('no-transport');
  });

  it('opens a connection that is kept, with the settings that it has', async () => {
    await bench.send('OPTIONS', URI);
    await bench.send('OPTIONS', URI, { tls: TLS, isPublicOnly: true });
    const target = { host: 'peer.example', port: null, transport: 'UDP', isKept: true };
    expect(opened).toEqual([target, { ...target, tls: TLS, isPublicOnly: true }]);
  });

  it.each([
    ['INVITE', URI, `<sip:${OWN.address}:5061;transport=tls>`],
    ['SUBSCRIBE', URI, `<sip:${OWN.address}:5061;transport=tls>`],
    ['INVITE', 'sips:a@peer.example', `<sips:${OWN.address}:5061;transport=tls>`],
    ['OPTIONS', URI, undefined],
  ])('by %s to %s has the Contact %s', async (method, uri, contact) => {
    await bench.send(method, uri);
    expect(valueOf(peer.sent[0], 'Contact')).toBe(contact);
  });

  it('has To, From and Call-ID of the user, and a tag of its own', async () => {
    await bench.send('OPTIONS', URI, { headers: headersOf({ To: '"B" <sip:b@x>', From: '"A" <sip:a@x>', 'Call-ID': 'mine' }) });
    const [text] = peer.sent;
    expect([valueOf(text, 'To'), valueOf(text, 'Call-ID')]).toEqual(['"B" <sip:b@x>', 'mine']);
    expect(valueOf(text, 'From')).toMatch(/^"A" <sip:a@x>;tag=\w{13}$/);
  });

  it('[3261 §8.1.3.5] that is sent again, as after a challenge, keeps Call-ID, tag and number that the user sets', async () => {
    const of = async (headers: Readonly<Record<string, string>>): Promise<(string | undefined)[]> => {
      await bench.send('REGISTER', URI, { headers: headersOf(headers) });
      const text = peer.sent.at(-1);
      return [/;tag=(.*)/.exec(valueOf(text, 'From') ?? '')?.[1], valueOf(text, 'CSeq')];
    };
    const same = { From: '<sip:a@x>;tag=first', CSeq: '7 REGISTER', 'Call-ID': 'mine' };
    expect(await of(same)).toEqual(['first', '7 REGISTER']);
    for (const other of [
      { From: same.From, CSeq: same.CSeq },
      { ...same, From: '<sip:a@x>' },
      { ...same, CSeq: '7 OPTIONS' },
      { ...same, CSeq: 'seven' },
    ]) {
      const [tag, cseq] = await of(other);
      expect(tag).toMatch(/^\w{13}$/);
      expect(cseq).not.toBe(same.CSeq);
    }
  });

  it.each([
    ['INVITE', true, 408],
    ['INVITE', false, 503],
    ['OPTIONS', true, 503],
    ['OPTIONS', false, 503],
  ])('by %s whose connection is lost (established: %s) gets our own %i', async (method, wasConnected, status) => {
    await bench.send(method, URI);
    await bench.breaks(peer, { wasConnected });
    expect(bench.heard).toEqual([{ status, isOurs: true }]);
  });

  it('[3261 §20.43] says in the Warning of our own response why nobody answered, whatever a peer wrote into its certificate', async () => {
    const responses: SipResponse[] = [];
    bench = new UserAgentBench({ open: (target) => open(target) }, { onResponse: (_request, response) => responses.push(response) });
    await bench.send('INVITE', URI);
    await bench.breaks(peer, { wasConnected: false, failure: 'its subject is "Ä\r\nVia: x' });
    peer.isOpen = true;
    await bench.send('OPTIONS', URI);
    bench.clock.advance(32_000);
    expect(responses.map((response) => getHeader(response, 'warning'))).toEqual([
      `399 sip-server "its subject is '???Via: x"`,
      '399 sip-server "no response within 32 s"',
    ]);
  });

  it('without an answer gets our own 408', async () => {
    await bench.send('OPTIONS', URI);
    bench.clock.advance(32_000);
    expect(bench.heard).toEqual([{ status: 408, isOurs: true }]);
  });
});

describe('[3261 §18.1.1] a request that is too long for UDP', () => {
  const LONG = { body: 'x'.repeat(1_400) };
  let tcp: PeerFlow;

  beforeEach(() => {
    peer = new PeerFlow('10.0.0.9', 'UDP');
    tcp = new PeerFlow('10.0.0.9', 'TCP');
    open = ({ transport }) => (transport === 'TCP' ? tcp : peer);
  });

  it('goes by TCP, with a matching Via', async () => {
    await bench.send('OPTIONS', URI, LONG);
    expect([peer.sent, tcp.methods]).toEqual([[], ['OPTIONS']]);
    expect(valueOf(tcp.sent[0], 'Via')).toMatch(/^SIP\/2\.0\/TCP 10\.0\.0\.1:5061;rport;branch=z9hG4bK\w+$/);
    expect(tcp.sent[0]?.match(/^Via:/gm)).toHaveLength(1);
    expect(opened.at(-1)).toMatchObject({ transport: 'TCP', isAttempt: true });
  });

  it('goes by UDP after all where TCP is unavailable', async () => {
    await bench.send('OPTIONS', URI, LONG);
    await bench.breaks(tcp, { wasConnected: false });
    expect(peer.methods).toEqual(['OPTIONS']);
    expect(valueOf(peer.sent[0], 'Via')).toMatch(/^SIP\/2\.0\/UDP /);
    expect(bench.heard).toEqual([]);
    open = ({ transport }) => (transport === 'TCP' ? undefined : peer);
    await bench.send('OPTIONS', URI, LONG);
    expect(peer.methods).toEqual(['OPTIONS', 'OPTIONS']);
  });

  it('does not go by UDP when the connection broke later, or the user cancelled', async () => {
    await bench.send('OPTIONS', URI, LONG);
    await bench.breaks(tcp, { wasConnected: true });
    tcp = new PeerFlow('10.0.0.9', 'TCP');
    const request = await bench.send('INVITE', URI, LONG);
    bench.agent.cancel(request);
    await bench.breaks(tcp, { wasConnected: false });
    expect(peer.sent).toEqual([]);
    expect(bench.heard).toEqual([
      { status: 503, isOurs: true },
      { status: 503, isOurs: true },
    ]);
  });

  it('keeps its transport when it names another one, or when it is short', async () => {
    await bench.send('OPTIONS', URI);
    peer = new PeerFlow('10.0.0.9');
    await bench.send('OPTIONS', URI, LONG);
    expect(opened.map(({ transport }) => transport)).toEqual(['UDP', 'UDP']);
    expect(tcp.sent).toEqual([]);
  });
});

describe('a request in a dialog', () => {
  it('uses the dialog’s connection, and the next numbers', async () => {
    const dialog = await established();
    inDialog(dialog, 'INFO');
    inDialog(dialog, 'UPDATE');
    await bench.send('OPTIONS', URI);
    expect(peer.methods).toEqual(['INFO', 'UPDATE', 'OPTIONS']);
    const [info, update] = peer.sent.map((text) => Number(/^\d+/.exec(valueOf(text, 'CSeq') ?? '')?.[0]));
    expect((update ?? 0) - (info ?? 0)).toBe(1);
    expect([valueOf(peer.sent[0], 'Contact'), valueOf(peer.sent[1], 'Contact')]).toEqual([
      undefined,
      `<sip:${OWN.address}:5061;transport=tls>`,
    ]);
  });

  it('has a secure Contact where the peer’s is secure', async () => {
    const dialog = await established(URI, {}, 'Contact: <sips:peer@10.0.0.9>');
    inDialog(dialog, 'UPDATE');
    await bench.send('OPTIONS', URI);
    expect(valueOf(peer.sent[0], 'Contact')).toBe(`<sips:${OWN.address}:5061;transport=tls>`);
  });

  it('opens another connection when that one is closed, with the settings of the first', async () => {
    const dialog = await established(URI, { isPublicOnly: true });
    peer.isOpen = false;
    const next = new PeerFlow('10.0.0.9');
    open = () => next;
    inDialog(dialog, 'INFO');
    bench.agent.sendInDialog(dialog, { method: 'INFO', headers: [], body: '', tls: TLS });
    await bench.send('OPTIONS', URI);
    expect(next.methods).toEqual(['INFO', 'INFO', 'OPTIONS']);
    expect(opened[1]).toEqual({ transport: 'TLS', host: '10.0.0.9', port: null, isPublicOnly: true });
    next.isOpen = false;
    bench.agent.sendInDialog(dialog, { method: 'INFO', headers: [], body: '', tls: TLS });
    expect(opened.at(-1)).toMatchObject({ tls: TLS, isPublicOnly: true });
  });

  it.each([
    ['in clear', 'Contact: <sip:peer@10.0.0.9;transport=tcp>', 'no-transport'],
    ['to an unreachable URI', 'Contact: <tel:+15550100100>', 'bad-uri'],
  ])('never goes %s when its TLS connection is gone', async (_what, contact, problem) => {
    const dialog = await established(URI, {}, contact);
    peer.isOpen = false;
    expect(inDialog(dialog, 'INFO')).toBe(problem);
  });

  it.each([
    ['BYE', '200 OK', 0],
    ['BYE', '500 Server Internal Error', 0],
    ['BYE', '401 Unauthorized', 1],
    ['BYE', '407 Proxy Authentication Required', 1],
    ['UPDATE', '481 Call/Transaction Does Not Exist', 0],
    ['UPDATE', '500 Server Internal Error', 1],
    ['INFO', '481 Call/Transaction Does Not Exist', 1],
  ])('by %s that gets %s leaves %i dialogs', async (method, status, left) => {
    const dialog = await established();
    inDialog(dialog, method);
    await bench.send('OPTIONS', URI);
    await bench.answer(peer, status);
    expect(bench.agent.dialogCount).toBe(left);
    // Whoever has no credentials sends no other BYE.
    bench.clock.advance(32_000);
    expect(bench.agent.dialogCount).toBe(method === 'BYE' ? 0 : left);
  });

  it('[3261 §13.2.2.4] makes the ACK of its 2xx have the number of its INVITE', async () => {
    const request = await answered();
    const { dialog } = request;
    if (dialog === null) throw new Error('there is no dialog');
    bench.agent.sendInDialog(dialog, { method: 'ACK', headers: [], body: '' });
    const [invite, ack] = peer.sent.map((text) => valueOf(text, 'CSeq')?.split(' '));
    expect(ack).toEqual([invite?.[0], 'ACK']);
  });
});

describe('[3261 §13.2.2.4] a 2xx without a transaction', () => {
  const stray = (more: readonly string[] = [CONTACT], via = `SIP/2.0/TLS ${OWN.address}:5061;branch=z9hG4bKlost`): readonly string[] => [
    'SIP/2.0 200 OK',
    `Via: ${via}`,
    'From: <sip:us@gw.example>;tag=ours',
    'To: <sip:them@peer.example>;tag=theirs',
    'Call-ID: lost',
    'CSeq: 5 INVITE',
    ...more,
  ];

  it('gets ACK and BYE over the connection that it came by', async () => {
    await bench.receive(peer, stray());
    expect(peer.methods).toEqual(['ACK', 'BYE']);
    const [ack, bye] = peer.sent;
    expect([valueOf(ack, 'CSeq'), valueOf(bye, 'CSeq')]).toEqual(['5 ACK', '6 BYE']);
    expect(valueOf(bye, 'From')).toBe('<sip:us@gw.example>;tag=ours');
    expect(valueOf(bye, 'Reason')).toBe('SIP;cause=503;text="Nobody waits for this answer"');
    expect([opened, bench.agent.dialogCount]).toEqual([[], 0]);
  });

  it.each([
    ['has no Contact', () => stray([])],
    ['went through another host', () => stray([CONTACT], `SIP/2.0/TLS 10.0.0.77:5061;branch=z9hG4bKlost`)],
    ['went through another port', () => stray([CONTACT], `SIP/2.0/TLS ${OWN.address}:5062;branch=z9hG4bKlost`)],
    ['is meant for a host behind us', () => stray(['Via: SIP/2.0/TLS 10.0.0.8:5061;branch=z9hG4bKnext', CONTACT])],
    ['has no tag', () => stray().map((line) => line.replace(';tag=theirs', ''))],
  ])('is ignored when it %s', async (_what, lines) => {
    await bench.receive(peer, lines());
    expect(peer.sent).toEqual([]);
  });

  it('is ignored over UDP, and while dialogs of an earlier process may be unknown', async () => {
    const udp = new PeerFlow('10.0.0.9', 'UDP');
    await bench.receive(udp, stray());
    bench.agent.isComplete = false;
    await bench.receive(peer, stray());
    expect([udp.sent, peer.sent]).toEqual([[], []]);
  });
});
