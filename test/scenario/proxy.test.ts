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

describe('a SIP server that proxies an INVITE', () => {
  it('[3261 §16.6] forwards it with its Via, one hop less, the headers of the application, and the rest unchanged', async () => {
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
  ])('[3261 §16.4] takes the topmost values that name the server off the Route %s', async (route, left) => {
    await proxied({}, { extra: [`Route: ${route}`] });
    expect(
      invitesTo(ONE)
        .match(/(?<=^Route: ).*(?=\r$)/gm)
        ?.join(', ') ?? '',
    ).toBe(left);
  });

  it('[3261 §16.7] returns 180 and 200 without its own Via, and tells the application of the 200 and of the end', async () => {
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

  it('tells the application `done` at once, and no more, when fullResponse is not asked for', async () => {
    await proxied({ fullResponse: false });
    await call.answer(invitesTo(ONE), '486 Busy Here', { tag: 'x' });
    expect(answersToApp()).toEqual(['OK|done']);
  });

  it('[3261 §16.7] returns every 2xx, repeated ones too', async () => {
    await proxied();
    for (const _ of [1, 2]) await call.answer(invitesTo(ONE), '200 OK', { tag: 'x', ...CONTACT });
    expect(call.sent.filter((line) => line === 'SIP/2.0 200 OK')).toHaveLength(2);
  });

  it('tries the targets one after another in serial mode: the next one when one has refused', async () => {
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

  it('[3261 §16.7] cancels the other target when one answers in simultaneous mode', async () => {
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
  ])('[3261 §16.7] chooses among %j and returns %s', async ([first = '', second = ''], best) => {
    await proxied({ targets: [ONE, TWO], mode: 'simultaneous' });
    await call.answer(invitesTo(ONE), first, { tag: 'x' });
    await call.answer(invitesTo(TWO), second, { tag: 'y' });
    expect(call.sent.findLast((line) => line.startsWith('SIP/2.0'))).toBe(best);
  });

  it('[3261 §16.7] returns the challenges of all targets in one response', async () => {
    await proxied({ targets: [ONE, TWO], mode: 'simultaneous' });
    await call.answer(invitesTo(ONE), '401 Unauthorized', { tag: 'x', extra: ['WWW-Authenticate: Digest realm="one"'] });
    await call.answer(invitesTo(TWO), '407 Proxy Authentication Required', { tag: 'y', extra: ['Proxy-Authenticate: Digest realm="two"'] });
    const text = call.lastSent('SIP/2.0 4');
    expect([headerOf(text, 'WWW-Authenticate'), headerOf(text, 'Proxy-Authenticate')]).toEqual([
      'Digest realm="one"',
      'Digest realm="two"',
    ]);
  });

  it('[3261 §16.10] forwards the CANCEL of the caller to the target, and returns the 487', async () => {
    await proxied();
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.receive(call.request('CANCEL', { branch: 'z9hG4bKinvite' }));
    expect(call.sent.slice(-2)).toEqual(['SIP/2.0 200 OK', `CANCEL ${ONE} SIP/2.0`]);
    await call.answer(call.lastSent('CANCEL '), '200 OK');
    await call.answer(invitesTo(ONE), '487 Request Terminated', { tag: 'x' });
    expect(call.sent.at(-1)).toBe('SIP/2.0 487 Request Terminated');
  });

  it('tries the Contacts of a 3xx, the one with the highest q first, when followRedirects is set', async () => {
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

  it('tries the next target when one sends nothing for provisionalTimeout', async () => {
    await proxied({ targets: [ONE, TWO], provisional: '2s' });
    await call.bench.pass(2_000);
    expect(invitesTo(TWO)).not.toBe('');
    await call.answer(invitesTo(TWO), '200 OK', { tag: 'y', ...CONTACT });
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('repeats no INVITE to a target that it has passed over', async () => {
    call = await Scenario.start(['invite'], 'UDP');
    await proxied({ targets: [ONE, TWO], provisional: '2s' });
    await call.bench.pass(2_000);
    await call.answer(invitesTo(TWO), '200 OK', { tag: 'y', ...CONTACT });
    call.forget();
    await call.bench.pass(20_000);
    expect(call.sent.filter((line) => line.startsWith('INVITE '))).toEqual([]);
  });

  it('cancels a target that rings for longer than finalTimeout', async () => {
    await proxied({ targets: [ONE, TWO], final: '1500ms' });
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.bench.pass(1_500);
    expect(call.sent).toContain(`CANCEL ${ONE} SIP/2.0`);
    expect(invitesTo(TWO)).not.toBe('');
  });

  it('starts timer C anew at a provisional response, and finalTimeout not', async () => {
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

  it('[3261 §16.8] counts the 487 of a target that it gave up as 408, because the caller has not cancelled', async () => {
    await proxied({ targets: [ONE, TWO], final: '1500ms' });
    await call.answer(invitesTo(ONE), '180 Ringing', { tag: 'x' });
    await call.bench.pass(1_500);
    await call.answer(invitesTo(ONE), '487 Request Terminated', { tag: 'x' });
    await call.answer(invitesTo(TWO), '486 Busy Here', { tag: 'y' });
    expect(call.sent.at(-1)).toBe('SIP/2.0 486 Busy Here');
  });

  it('[3261 §16.6] answers 483 to an INVITE with Max-Forwards 0, and tells the application', async () => {
    expect(await proxied({}, { extra: ['Max-Forwards: 0'] })).toBe('NOK|Rejected with 483 Too Many Hops due to Max-Forwards value of 0');
    expect(call.sent.at(-1)).toBe('SIP/2.0 483 Too Many Hops');
  });

  it('answers 500 when the target is not a URI', async () => {
    await proxied({ targets: ['nonsense'] });
    expect(call.sent.at(-1)).toBe('SIP/2.0 500 Server Internal Error');
  });

  it('refuses an order without a target, and one for an unknown transaction', async () => {
    expect(await proxied({ targets: [] })).toBe('NOK|error proxying request to ');
    expect(call.sent.at(-1)).toBe('SIP/2.0 500 Server Internal Error');
    expect(await call.command(order('nobody'))).toContain('NOK|Unknown transaction id: nobody');
  });

  it('[4320 §4.2] sends no 408 for a non-INVITE request that no target answers', async () => {
    await call.receive(call.request('MESSAGE'));
    await call.command(order(call.transactionId));
    await call.bench.pass(32_000);
    expect(call.sent.filter((line) => line.startsWith('SIP/2.0'))).toEqual([]);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });
});

describe('a SIP server that has put itself into the Record-Route of a dialog', () => {
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

  it('[3261 §16.11] forwards the ACK to the target, without its own Route', async () => {
    const route = await established();
    await call.receive(inDialog('ACK', route, { cseq: 1 }));
    expect(call.sent).toEqual(['ACK sip:peer@10.0.0.1 SIP/2.0']);
    expect(headerOf(call.lastSent('ACK '), 'Route')).toBe('');
    expect(call.lastSent('ACK ').match(/^Via: /gm)).toHaveLength(2);
  });

  it('[3261 §16.4] forwards BYE and its answer, and shows the application neither', async () => {
    const route = await established();
    await call.receive(inDialog('BYE', route));
    await call.answer(call.lastSent('BYE sip:peer@10.0.0.1'), '200 OK');
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    expect(call.shown).toEqual([]);
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3261 §16.4] forwards a request whose Request-URI is its own URI, put there by a strict router', async () => {
    const route = await established();
    const uri = route.slice(1, -1);
    await call.receive(inDialog('BYE', '', { uri, extra: ['Route: <sip:peer@10.0.0.1>'] }));
    expect(call.sent).toEqual(['BYE sip:peer@10.0.0.1 SIP/2.0']);
  });

  it('[3261 §16.4] forwards a request whose Route names it twice: as the outbound proxy of the client, and from its Record-Route', async () => {
    const route = await established();
    await call.receive(inDialog('BYE', `<sip:127.0.0.1:25061;lr>, ${route}`));
    expect(call.sent).toEqual(['BYE sip:peer@10.0.0.1 SIP/2.0']);
    expect(headerOf(call.lastSent('BYE '), 'Route')).toBe('');
  });

  it('forwards nothing by a Route that names it without the token of this dialog', async () => {
    const route = await established();
    for (const forged of ['<sip:127.0.0.1:25061;lr>', '<sip:127.0.0.1:25061;lr;tk=000000000000000000000000>']) {
      expect(await call.receive(inDialog('BYE', forged))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    }
    expect(await call.receive(inDialog('BYE', route, { callId: 'another' }))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    await call.receive(inDialog('ACK', '<sip:127.0.0.1:25061;lr>', { cseq: 1 }));
    expect(call.sent.filter((line) => !line.startsWith('SIP/2.0 481'))).toEqual([]);
  });
});
