import { beforeEach, describe, expect, it } from 'vitest';
import { headerOf, NOTHING_LEFT, type Parts, Scenario, SDP } from '../support/scenario.js';

let call: Scenario;
const CONTACT = { extra: ['Contact: <sip:peer@10.0.0.1>'] };

interface Order {
  readonly remainInDialog?: boolean;
  readonly fullResponse?: boolean;
  readonly followRedirects?: boolean;
  readonly mode?: 'serial' | 'simultaneous';
  readonly provisional?: string;
  readonly final?: string;
  readonly targets?: readonly string[];
  readonly headers?: string;
}

const ONE = 'sip:one@10.0.0.1';
const TWO = 'sip:two@10.0.0.2';

function order(transactionId: string, options: Order = {}): string {
  const { remainInDialog = false, fullResponse = true, followRedirects = false, mode = 'serial', targets = [ONE], headers = '' } = options;
  const fields = [
    remainInDialog ? 'remainInDialog' : '',
    fullResponse ? 'fullResponse' : '',
    followRedirects ? 'followRedirects' : '',
    mode,
    options.provisional ?? '',
    options.final ?? '',
    ...targets,
  ];
  return `p|proxy|${transactionId}|${fields.join('|')}\r\nINVITE ${targets[0] ?? ''} SIP/2.0\r\n${headers}Content-Length: 0\r\n\r\n`;
}

async function proxied(options: Order = {}, parts: Parts = {}): Promise<string> {
  return call.command(order(await call.offered(parts), options));
}

const invitesTo = (target: string): string => call.lastSent(`INVITE ${target} `);
const answersToApp = (): string[] =>
  call.bench.toApp.filter((frame) => frame.split('|')[2] === 'p').map((frame) => frame.split('|').slice(3).join('|'));

beforeEach(async () => {
  call = await Scenario.start(['invite', 'message']);
});

describe('a proxied INVITE', () => {
  it('[3261 §16.6] goes to the target with our Via, one hop less, and what the application adds; the rest is as it came', async () => {
    await proxied({ headers: 'X-Added: yes\r\nFrom: <sip:forged@x>\r\n' }, { extra: ['X-Caller: hello', 'Max-Forwards: 70'] });
    const forwarded = invitesTo(ONE);
    expect(forwarded.split('\r\n').filter((line) => line.startsWith('Via: '))).toEqual([
      expect.stringMatching(/^Via: SIP\/2\.0\/TLS 127\.0\.0\.1:25061;branch=z9hG4bK\w+$/),
      'Via: SIP/2.0/TLS caller:6000;branch=z9hG4bKinvite;received=127.0.0.1',
    ]);
    expect(headerOf(forwarded, 'Max-Forwards')).toBe('69');
    expect(headerOf(forwarded, 'X-Caller')).toBe('hello');
    expect(headerOf(forwarded, 'X-Added')).toBe('yes');
    expect(headerOf(forwarded, 'From')).toBe('<sip:a@caller>;tag=from1');
    expect(headerOf(forwarded, 'Record-Route')).toBe('');
    expect(forwarded.endsWith(`\r\n\r\n${SDP}`)).toBe(true);
  });

  it.each([
    ['<sip:127.0.0.1:25061;lr>', ''],
    ['<sip:127.0.0.1:25061;lr>, <sip:127.0.0.1:25060>, <sip:next@10.0.0.9;lr>', '<sip:next@10.0.0.9;lr>'],
    ['<sip:next@10.0.0.9;lr>, <sip:127.0.0.1:25061;lr>', '<sip:next@10.0.0.9;lr>, <sip:127.0.0.1:25061;lr>'],
  ])('[3261 §16.4] of Route %s the topmost values that name the server are taken off', async (route, left) => {
    await proxied({}, { extra: [`Route: ${route}`] });
    expect(
      invitesTo(ONE)
        .match(/(?<=^Route: ).*(?=\r$)/gm)
        ?.join(', ') ?? '',
    ).toBe(left);
  });

  it('[3261 §16.7] 180 and 200 go back without our Via; the application hears of the 200 and that it is over', async () => {
    await proxied();
    await call.answer(invitesTo(ONE), '100 Trying');
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.answer(invitesTo(ONE), '200 OK', { tag: 'x', ...CONTACT, body: SDP });
    expect(call.sent.filter((line) => line.startsWith('SIP/2.0'))).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 180 Ringing', 'SIP/2.0 200 OK']);
    expect(call.lastSent('SIP/2.0 200').match(/^Via: .*$/gm)).toEqual([
      'Via: SIP/2.0/TLS caller:6000;branch=z9hG4bKinvite;received=127.0.0.1',
    ]);
    const [full, done] = answersToApp();
    expect(full).toMatch(/^OK\|network\|\d+\|tls\|127\.0\.0\.1\|6000\|[\d:.]+\|\|\|continue\r\nSIP\/2\.0 200 OK/);
    expect(done).toBe('OK|done');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('without fullResponse the application hears `done` at once, and no more', async () => {
    await proxied({ fullResponse: false });
    await call.answer(invitesTo(ONE), '486 Busy Here', { tag: 'x' });
    expect(answersToApp()).toEqual(['OK|done']);
  });

  it('[3261 §16.7] every 2xx goes through, repeated ones too', async () => {
    await proxied();
    for (const _ of [1, 2]) await call.answer(invitesTo(ONE), '200 OK', { tag: 'x', ...CONTACT });
    expect(call.sent.filter((line) => line === 'SIP/2.0 200 OK')).toHaveLength(2);
  });

  it('serial: the next target is tried when one has refused', async () => {
    await proxied({ targets: [ONE, TWO] });
    expect(invitesTo(TWO)).toBe('');
    await call.answer(invitesTo(ONE), '486 Busy Here', { tag: 'x' });
    expect(call.sent).not.toContain('SIP/2.0 486 Busy Here');
    await call.answer(invitesTo(TWO), '200 OK', { tag: 'y', ...CONTACT });
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    expect(answersToApp().map((answer) => answer.split('\r\n')[1] ?? answer)).toEqual([
      'SIP/2.0 486 Busy Here',
      'SIP/2.0 200 OK',
      'OK|done',
    ]);
  });

  it('[3261 §16.7] simultaneous: one answers, the other is cancelled', async () => {
    await proxied({ targets: [ONE, TWO], mode: 'simultaneous' });
    await call.answer(invitesTo(TWO), '180 Ringing', { tag: 'y' });
    await call.answer(invitesTo(ONE), '200 OK', { tag: 'x', ...CONTACT });
    expect(call.sent).toContain(`CANCEL ${TWO} SIP/2.0`);
    await call.answer(call.lastSent('CANCEL '), '200 OK');
    await call.answer(invitesTo(TWO), '487 Request Terminated', { tag: 'y' });
    expect(call.sent).not.toContain('SIP/2.0 487 Request Terminated');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it.each([
    [['486 Busy Here', '603 Decline'], 'SIP/2.0 603 Decline'],
    [['404 Not Found', '302 Moved'], 'SIP/2.0 302 Moved'],
    [['500 Oh', '404 Not Found'], 'SIP/2.0 404 Not Found'],
    [['404 Not Found', '484 Incomplete'], 'SIP/2.0 484 Incomplete'],
    [['503 Busy', '503 Busy'], 'SIP/2.0 500 Server Internal Error'],
  ])('[3261 §16.7] of %j the caller gets %s', async ([first = '', second = ''], best) => {
    await proxied({ targets: [ONE, TWO], mode: 'simultaneous' });
    await call.answer(invitesTo(ONE), first, { tag: 'x' });
    await call.answer(invitesTo(TWO), second, { tag: 'y' });
    expect(call.sent.findLast((line) => line.startsWith('SIP/2.0'))).toBe(best);
  });

  it('[3261 §16.7] the challenges of all targets go back together', async () => {
    await proxied({ targets: [ONE, TWO], mode: 'simultaneous' });
    await call.answer(invitesTo(ONE), '401 Unauthorized', { tag: 'x', extra: ['WWW-Authenticate: Digest realm="one"'] });
    await call.answer(invitesTo(TWO), '407 Proxy Authentication Required', { tag: 'y', extra: ['Proxy-Authenticate: Digest realm="two"'] });
    const text = call.lastSent('SIP/2.0 4');
    expect([headerOf(text, 'WWW-Authenticate'), headerOf(text, 'Proxy-Authenticate')]).toEqual([
      'Digest realm="one"',
      'Digest realm="two"',
    ]);
  });

  it('[3261 §16.10] the CANCEL of the caller reaches the target; its 487 comes back', async () => {
    await proxied();
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.receive(call.request('CANCEL', { branch: 'z9hG4bKinvite' }));
    expect(call.sent.slice(-2)).toEqual(['SIP/2.0 200 OK', `CANCEL ${ONE} SIP/2.0`]);
    await call.answer(call.lastSent('CANCEL '), '200 OK');
    await call.answer(invitesTo(ONE), '487 Request Terminated', { tag: 'x' });
    expect(call.sent.at(-1)).toBe('SIP/2.0 487 Request Terminated');
  });

  it('followRedirects: the Contacts of a 3xx are tried, the best first', async () => {
    await proxied({ followRedirects: true });
    await call.answer(invitesTo(ONE), '302 Moved', {
      tag: 'x',
      extra: ['Contact: <sip:worse@10.0.0.3>;q=0.1, <sip:better@10.0.0.4>;q=0.9'],
    });
    expect(invitesTo('sip:better@10.0.0.4')).not.toBe('');
    expect(invitesTo('sip:worse@10.0.0.3')).toBe('');
    await call.answer(invitesTo('sip:better@10.0.0.4'), '404 Not Found', { tag: 'z' });
    expect(invitesTo('sip:worse@10.0.0.3')).not.toBe('');
  });

  it('provisionalTimeout: a target that says nothing is passed over', async () => {
    await proxied({ targets: [ONE, TWO], provisional: '2s' });
    await call.bench.pass(2_000);
    expect(invitesTo(TWO)).not.toBe('');
    await call.answer(invitesTo(TWO), '200 OK', { tag: 'y', ...CONTACT });
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('an abandoned target gets no INVITE any more: it may be lost, or be cancelled once it answers', async () => {
    call = await Scenario.start(['invite'], 'UDP');
    await proxied({ targets: [ONE, TWO], provisional: '2s' });
    await call.bench.pass(2_000);
    await call.answer(invitesTo(TWO), '200 OK', { tag: 'y', ...CONTACT });
    call.forget();
    await call.bench.pass(20_000);
    expect(call.sent.filter((line) => line.startsWith('INVITE '))).toEqual([]);
  });

  it('finalTimeout: a target that rings for too long is cancelled', async () => {
    await proxied({ targets: [ONE, TWO], final: '1500ms' });
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.bench.pass(1_500);
    expect(call.sent).toContain(`CANCEL ${ONE} SIP/2.0`);
    expect(invitesTo(TWO)).not.toBe('');
  });

  it('finalTimeout is not begun anew by a provisional response, timer C is', async () => {
    await proxied({ targets: [ONE], final: '1500ms' });
    await call.bench.pass(1_000);
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.bench.pass(500);
    expect(call.sent).toContain(`CANCEL ${ONE} SIP/2.0`);
    await proxied({ targets: [TWO] }, { callId: 'call2', branch: 'z9hG4bKsecond' });
    for (let minute = 0; minute < 5; minute += 1) {
      await call.answer(invitesTo(TWO), '180 Ringing', { tag: 'y' });
      await call.bench.pass(60_000);
    }
    expect(call.sent).not.toContain(`CANCEL ${TWO} SIP/2.0`);
    await call.bench.pass(121_000);
    expect(call.sent).toContain(`CANCEL ${TWO} SIP/2.0`);
  });

  it('[3261 §16.8] the 487 of a target that was given up counts as 408: the caller has not cancelled', async () => {
    await proxied({ targets: [ONE, TWO], final: '1500ms' });
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.bench.pass(1_500);
    await call.answer(invitesTo(ONE), '487 Request Terminated', { tag: 'x' });
    await call.answer(invitesTo(TWO), '486 Busy Here', { tag: 'y' });
    expect(call.sent.at(-1)).toBe('SIP/2.0 486 Busy Here');
  });

  it('[3261 §16.6] Max-Forwards 0: 483, and the application is told', async () => {
    expect(await proxied({}, { extra: ['Max-Forwards: 0'] })).toBe('NOK|Rejected with 483 Too Many Hops due to Max-Forwards value of 0');
    expect(call.sent.at(-1)).toBe('SIP/2.0 483 Too Many Hops');
  });

  it('a target that is no URI: the caller gets 500', async () => {
    await proxied({ targets: ['nonsense'] });
    expect(call.sent.at(-1)).toBe('SIP/2.0 500 Server Internal Error');
  });

  it('no target at all, and a transaction that nobody knows, are refused', async () => {
    expect(await proxied({ targets: [] })).toBe('NOK|error proxying request to ');
    expect(call.sent.at(-1)).toBe('SIP/2.0 500 Server Internal Error');
    expect(await call.command(order('nobody'))).toContain('NOK|Unknown transaction id: nobody');
  });

  it('[4320 §4.2] a non-INVITE request that no target answers is not answered with 408', async () => {
    await call.receive(call.request('MESSAGE'));
    await call.command(order(call.transactionId));
    await call.bench.pass(32_000);
    expect(call.sent.filter((line) => line.startsWith('SIP/2.0'))).toEqual([]);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });
});

describe('a dialog that the proxy stays in the way of', () => {
  async function established(): Promise<string> {
    await proxied({ remainInDialog: true });
    const recordRoute = headerOf(invitesTo(ONE), 'Record-Route');
    await call.answer(invitesTo(ONE), '200 OK', { tag: 'x', extra: [...CONTACT.extra, `Record-Route: ${recordRoute}`] });
    expect(headerOf(call.lastSent('SIP/2.0 200'), 'Record-Route')).toBe(recordRoute);
    call.forget();
    return recordRoute;
  }
  const inDialog = (method: string, route: string, parts: Parts = {}): string =>
    call.request(method, { uri: 'sip:peer@10.0.0.1', to: '<sip:b@server>;tag=x', cseq: 2, extra: [`Route: ${route}`], ...parts });

  it('[3261 §16.11] the ACK goes on to the target, without our Route', async () => {
    const route = await established();
    await call.receive(inDialog('ACK', route, { cseq: 1 }));
    expect(call.sent).toEqual(['ACK sip:peer@10.0.0.1 SIP/2.0']);
    expect(headerOf(call.lastSent('ACK '), 'Route')).toBe('');
    expect(call.lastSent('ACK ').match(/^Via: /gm)).toHaveLength(2);
  });

  it('[3261 §16.4] BYE and its answer pass, and the application sees neither', async () => {
    const route = await established();
    await call.receive(inDialog('BYE', route));
    await call.answer(call.lastSent('BYE sip:peer@10.0.0.1'), '200 OK');
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    expect(call.shown).toEqual([]);
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3261 §16.4] a strict router before us has put our URI into the Request-URI', async () => {
    const route = await established();
    const uri = route.slice(1, -1);
    await call.receive(inDialog('BYE', '', { uri, extra: ['Route: <sip:peer@10.0.0.1>'] }));
    expect(call.sent).toEqual(['BYE sip:peer@10.0.0.1 SIP/2.0']);
  });

  it('[3261 §16.4] a client that puts its outbound proxy, the server, before our Record-Route gets through', async () => {
    const route = await established();
    await call.receive(inDialog('BYE', `<sip:127.0.0.1:25061;lr>, ${route}`));
    expect(call.sent).toEqual(['BYE sip:peer@10.0.0.1 SIP/2.0']);
    expect(headerOf(call.lastSent('BYE '), 'Route')).toBe('');
  });

  it('a Route that names us without the token of this dialog forwards nothing', async () => {
    const route = await established();
    for (const forged of ['<sip:127.0.0.1:25061;lr>', '<sip:127.0.0.1:25061;lr;tk=000000000000000000000000>']) {
      expect(await call.receive(inDialog('BYE', forged))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    }
    expect(await call.receive(inDialog('BYE', route, { callId: 'another' }))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    await call.receive(inDialog('ACK', '<sip:127.0.0.1:25061;lr>', { cseq: 1 }));
    expect(call.sent.filter((line) => !line.startsWith('SIP/2.0 481'))).toEqual([]);
  });
});
