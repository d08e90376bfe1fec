import { beforeEach, describe, expect, it } from 'vitest';
import { headerOf, NOTHING_LEFT, Scenario, SDP } from '../support/scenario.js';

let call: Scenario;
const CONTACT = { extra: ['Contact: <sip:peer@10.0.0.9>'] };

beforeEach(async () => {
  call = await Scenario.start([]);
});

async function invited(): Promise<string> {
  expect(await call.send('INVITE sip:peer@10.0.0.9:5060', '', '', SDP)).toBe('OK');
  return call.lastSent('INVITE ');
}

const transactionOf = (): string =>
  call.bench.toApp
    .findLast((frame) => frame.includes('|Msg sent:|\r\nINVITE '))
    ?.split('|')
    .at(10) ?? '';
const dialogOf = (invite: string): string =>
  `${headerOf(invite, 'Call-ID')};from-tag=${/tag=(.*)$/.exec(headerOf(invite, 'From'))?.[1] ?? ''}`;

describe('a SIP server that has sent an INVITE of the application', () => {
  it('[3261 §13.2.2.4] acknowledges a repeated 2xx again and does not show it again', async () => {
    const invite = await invited();
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    await call.send('ACK sip:placeholder', dialogOf(invite));
    call.forget();
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    expect(call.sent).toEqual(['ACK sip:peer@10.0.0.9 SIP/2.0']);
    expect(call.shown).toEqual([]);
  });

  it('[3261 §13.2.2.4] [3261 §15] acknowledges the 2xx when the BYE comes before the ACK of the application, and again when the 2xx comes again', async () => {
    const invite = await invited();
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    call.forget();
    const bye = call.request('BYE', {
      callId: headerOf(invite, 'Call-ID'),
      from: `${headerOf(invite, 'To')};tag=one`,
      to: headerOf(invite, 'From'),
    });
    await call.receive(bye);
    expect(call.sent).toEqual(['ACK sip:peer@10.0.0.9 SIP/2.0']);
    expect(headerOf(call.lastSent('ACK '), 'CSeq')).toBe(`${Number.parseInt(headerOf(invite, 'CSeq'))} ACK`);
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    expect(call.sent).toEqual(['ACK sip:peer@10.0.0.9 SIP/2.0', 'ACK sip:peer@10.0.0.9 SIP/2.0']);
    await call.respond(call.transactionId, '200 OK');
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3261 §13.2.2.4] answers the 2xx of another fork with ACK and BYE, and keeps the call', async () => {
    const invite = await invited();
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    await call.send('ACK sip:placeholder', dialogOf(invite));
    call.forget();
    await call.answer(invite, '200 OK', { tag: 'two', extra: ['Contact: <sip:other@10.0.0.8>'] });
    expect(call.sent).toEqual(['ACK sip:other@10.0.0.8 SIP/2.0', 'BYE sip:other@10.0.0.8 SIP/2.0']);
    expect(headerOf(call.lastSent('BYE '), 'To')).toContain('tag=two');
    expect(await call.send('INFO sip:placeholder', dialogOf(invite))).toBe('OK');
  });

  it('[3261 §12.1.2] forgets the early dialogs of forks that did not win when the transaction ends', async () => {
    const invite = await invited();
    await call.answer(invite, '180 Ringing', { tag: 'one', ...CONTACT });
    await call.answer(invite, '180 Ringing', { tag: 'two', ...CONTACT });
    await call.answer(invite, '200 OK', { tag: 'two', ...CONTACT });
    await call.send('ACK sip:placeholder', dialogOf(invite));
    await call.bench.pass(32_000);
    expect(call.bench.dialogCount).toBe(1);
  });

  it('[3261 §9.1] sends the CANCEL only after a provisional response', async () => {
    const invite = await invited();
    expect(await call.command(`c|sip|${transactionOf()}|\r\nCANCEL sip:peer@10.0.0.9 SIP/2.0\r\n\r\n`)).toBe('OK');
    expect(call.sent).not.toContain('CANCEL sip:peer@10.0.0.9:5060 SIP/2.0');
    await call.answer(invite, '100 Trying');
    expect(call.sent.at(-1)).toBe('CANCEL sip:peer@10.0.0.9:5060 SIP/2.0');
    await call.answer(invite, '487 Request Terminated', { tag: 'one' });
    expect(call.shown.at(-1)).toBe('SIP/2.0 487 Request Terminated');
  });

  it('tells the application of a 200 that crosses the CANCEL, and sends BYE after the ACK of the application', async () => {
    const invite = await invited();
    await call.answer(invite, '180 Ringing', { tag: 'one', ...CONTACT });
    await call.command(`c|sip|${transactionOf()}|\r\nCANCEL sip:peer@10.0.0.9 SIP/2.0\r\n\r\n`);
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    await call.send('ACK sip:placeholder', dialogOf(invite));
    expect(headerOf(call.lastSent('BYE '), 'Reason')).toBe('SIP;cause=200;text="ACK-BYE due to cancel race condition"');
    expect(call.sipFrames.at(-1)).toContain('|unsolicited|');
    await call.answer(call.lastSent('CANCEL '), '200 OK');
    await call.answer(call.lastSent('BYE '), '200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3261 §9.1] gives up a cancelled INVITE that gets no final response after 64·T1', async () => {
    const invite = await invited();
    await call.answer(invite, '180 Ringing', { tag: 'one', ...CONTACT });
    await call.command(`c|sip|${transactionOf()}|\r\nCANCEL sip:peer@10.0.0.9 SIP/2.0\r\n\r\n`);
    await call.answer(call.lastSent('CANCEL '), '200 OK');
    await call.bench.pass(31_999);
    expect(call.shown.at(-1)).toBe('SIP/2.0 180 Ringing');
    await call.bench.pass(1);
    expect(call.shown.at(-1)).toBe('SIP/2.0 408 Request Timeout');
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('tells the application 408 once when the connection is lost before the answer, for the peer may have taken the INVITE', async () => {
    await invited();
    call.bench.dropCaller();
    await call.bench.settle();
    expect(call.shown).toEqual(['SIP/2.0 408 Request Timeout']);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('cancels the INVITE when the application is gone', async () => {
    const invite = await invited();
    await call.answer(invite, '180 Ringing', { tag: 'one', ...CONTACT });
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent.at(-1)).toBe('CANCEL sip:peer@10.0.0.9:5060 SIP/2.0');
    await call.answer(call.lastSent('CANCEL '), '200 OK');
    await call.answer(invite, '487 Request Terminated', { tag: 'one' });
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3261 §9.1] cancels the INVITE once, and not after its final response', async () => {
    const cancel = (): Promise<string> => call.command(`c|sip|${transactionOf()}|\r\nCANCEL sip:peer@10.0.0.9 SIP/2.0\r\n\r\n`);
    const cancels = (): number => call.sent.filter((line) => line.startsWith('CANCEL ')).length;
    const invite = await invited();
    await call.answer(invite, '180 Ringing', { tag: 'one', ...CONTACT });
    await cancel();
    await cancel();
    expect(cancels()).toBe(1);
    await call.answer(invite, '487 Request Terminated', { tag: 'one' });
    const busy = await invited();
    await call.answer(busy, '180 Ringing', { tag: 'one', ...CONTACT });
    await call.answer(busy, '486 Busy Here', { tag: 'one' });
    await cancel();
    expect(cancels()).toBe(1);
  });

  it('[3262 §4] does not show a reliable provisional response that is repeated or out of order', async () => {
    const invite = await invited();
    for (const rseq of [7, 7, 9, 8]) {
      await call.answer(invite, `183 ${String(rseq)}`, {
        tag: 'one',
        extra: [...CONTACT.extra, 'Require: 100rel', `RSeq: ${String(rseq)}`],
      });
    }
    // Another fork counts for itself.
    await call.answer(invite, '183 two', { tag: 'two', extra: [...CONTACT.extra, 'Require: 100rel', 'RSeq: 7'] });
    expect(call.shown).toEqual(['SIP/2.0 183 7', 'SIP/2.0 183 8', 'SIP/2.0 183 two']);
  });

  it('[3261 §22.3] puts the credentials of the INVITE into the ACK of another fork, and not into its BYE', async () => {
    const credentials = ['Authorization: Digest username="a"', 'Proxy-Authorization: Digest username="b"'];
    await call.send('INVITE sip:peer@10.0.0.9:5060', '', `${credentials.join('\r\n')}\r\nX-Other: y\r\n`, SDP);
    const invite = call.lastSent('INVITE ');
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    await call.answer(invite, '200 OK', { tag: 'two', ...CONTACT });
    const [ack, bye] = [call.lastSent('ACK '), call.lastSent('BYE ')];
    const names = ['Authorization', 'Proxy-Authorization', 'X-Other'];
    expect(names.map((name) => headerOf(ack, name))).toEqual(['Digest username="a"', 'Digest username="b"', '']);
    expect(names.map((name) => headerOf(bye, name))).toEqual(['', '', '']);
    expect(headerOf(ack, 'CSeq')).toBe(`${String(Number.parseInt(headerOf(invite, 'CSeq'), 10))} ACK`);
  });
});

describe('a call that the application placed', () => {
  let dialog: string;

  beforeEach(async () => {
    const invite = await invited();
    dialog = dialogOf(invite);
    await call.answer(invite, '200 OK', { tag: 'one', ...CONTACT });
    await call.send('ACK sip:placeholder', dialog);
  });

  it.each([
    ['INVITE', 0],
    ['UPDATE', 0],
    ['OPTIONS', 0],
    ['INFO', 1],
    ['REFER', 1],
  ])('[5057 §5.1] after a 481 to its %s has %i dialogs', async (method, dialogs) => {
    await call.send(`${method} sip:placeholder`, dialog, '', method === 'INVITE' ? SDP : '');
    await call.answer(call.lastSent(`${method} `), '481 Call/Transaction Does Not Exist');
    expect(call.bench.dialogCount).toBe(dialogs);
  });

  it.each(['200 OK', '481 Call/Transaction Does Not Exist', '500 Server Internal Error'])(
    '[3261 §15.1.1] ends with a BYE that gets %s',
    async (status) => {
      await call.send('BYE sip:placeholder', dialog);
      expect(call.bench.dialogCount).toBe(1);
      await call.answer(call.lastSent('BYE '), status);
      expect(call.bench.dialogCount).toBe(0);
    },
  );

  it.each(['401 Unauthorized', '407 Proxy Authentication Required'])(
    '[3261 §22] lasts 64·T1 after a BYE that gets %s, so that the BYE can go again with credentials',
    async (status) => {
      await call.send('BYE sip:placeholder', dialog);
      await call.answer(call.lastSent('BYE '), status);
      await call.bench.pass(31_999);
      expect(await call.send('BYE sip:placeholder', dialog, 'Authorization: Digest username="a"\r\n')).toBe('OK');
      await call.answer(call.lastSent('BYE '), '200 OK');
      expect(call.bench.dialogCount).toBe(0);
    },
  );

  it('ends after 64·T1 when a BYE that got 401 does not go again', async () => {
    await call.send('BYE sip:placeholder', dialog);
    await call.answer(call.lastSent('BYE '), '401 Unauthorized');
    await call.bench.pass(31_999);
    expect(call.bench.dialogCount).toBe(1);
    await call.bench.pass(1);
    expect(call.bench.dialogCount).toBe(0);
  });

  it.each(['401 Unauthorized', '488 Not Acceptable Here', '491 Request Pending'])(
    'does not end with a re-INVITE that gets %s',
    async (status) => {
      await call.send('INVITE sip:placeholder', dialog, '', SDP);
      await call.answer(call.lastSent('INVITE '), status);
      expect(call.bench.dialogCount).toBe(1);
    },
  );
});

describe('the session timer of a call that the application placed', () => {
  const sessionOf = (value: string): { tag: string; extra: string[]; body: string } => ({
    tag: 'one',
    extra: ['Contact: <sip:peer@10.0.0.9>', 'Require: timer', `Session-Expires: ${value}`, 'Content-Type: application/sdp'],
    body: SDP,
  });

  async function answered(value: string): Promise<void> {
    const invite = await invited();
    await call.answer(invite, '200 OK', sessionOf(value));
    await call.send('ACK sip:placeholder', dialogOf(invite));
    call.forget();
  }

  /** A request of the callee's in the call. */
  const ofCallee = (method: string, cseq: number): string =>
    [
      `${method} sip:us@server SIP/2.0`,
      `Via: SIP/2.0/TLS 10.0.0.9;branch=z9hG4bKcallee${String(cseq)}`,
      `From: ${headerOf(first, 'To')};tag=one`,
      `To: ${headerOf(first, 'From')}`,
      `Call-ID: ${headerOf(first, 'Call-ID')}`,
      `CSeq: ${String(cseq)} ${method}`,
      ...['Contact: <sip:peer@10.0.0.9>', 'Supported: timer', 'Session-Expires: 90;refresher=uac', 'Content-Length: 0', '', ''],
    ].join('\r\n');
  let first: string;

  beforeEach(() => {
    first = '';
  });

  it('[4028 §7.2] [4028 §10] makes us refresh at half the interval, by a re-INVITE with our SDP, when refresher is uac', async () => {
    await answered('90;refresher=uac');
    await call.bench.pass(44_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(2);
    const refresh = call.lastSent('INVITE ');
    expect(headerOf(refresh, 'Session-Expires')).toBe('90;refresher=uac');
    expect(refresh.endsWith(SDP)).toBe(true);
    await call.answer(refresh, '200 OK', sessionOf('90;refresher=uac'));
    expect(call.sent.at(-1)).toMatch(/^ACK /);
    expect(call.shown).toEqual([]);
    await call.bench.pass(45_001);
    expect(call.sent.at(-1)).toMatch(/^INVITE /);
  });

  it('[4028 §10] ends the call before the interval is over when refresher is uas and the callee does not refresh', async () => {
    await answered('90;refresher=uas');
    await call.bench.pass(59_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(2);
    expect(headerOf(call.lastSent('BYE '), 'Reason')).toBe('SIP;cause=200;text="Session timer expired"');
  });

  it.each(['UPDATE', 'INVITE'])('[4028 §10] begins anew at an %s of the callee when refresher is uas', async (method) => {
    first = await invited();
    await call.answer(first, '200 OK', sessionOf('90;refresher=uas'));
    await call.send('ACK sip:placeholder', dialogOf(first));
    await call.bench.pass(50_000);
    await call.receive(ofCallee(method, 500));
    await call.respond(call.transactionId, '200 OK', 'Session-Expires: 90;refresher=uac\r\n', method === 'INVITE' ? SDP : '');
    if (method === 'INVITE') await call.receive(ofCallee('ACK', 500));
    await call.bench.pass(50_000);
    expect(call.bench.left.calls).toBe(1);
    await call.bench.pass(10_001);
    expect(call.bench.left.calls).toBe(0);
  });

  it('[4028 §7.4] sends a refresh that gets 422 again at once, one time, with the interval that the 422 asks for', async () => {
    await answered('90;refresher=uac');
    await call.bench.pass(45_001);
    await call.answer(call.lastSent('INVITE '), '422 Session Interval Too Small', { extra: ['Min-SE: 600'] });
    const again = call.lastSent('INVITE ');
    expect([headerOf(again, 'Session-Expires'), headerOf(again, 'Min-SE')]).toEqual(['600;refresher=uac', '600']);
    const count = call.sent.length;
    await call.answer(again, '422 Session Interval Too Small', { extra: ['Min-SE: 1200'] });
    expect(call.sent.slice(count)).toEqual([expect.stringMatching(/^ACK /)]);
    expect(call.bench.left.calls).toBe(1);
  });

  it.each([
    ['408 Request Timeout', 0],
    ['481 Call/Transaction Does Not Exist', 0],
    ['500 Server Internal Error', 15_000],
    ['488 Not Acceptable Here', 15_000],
  ])(
    '[4028 §10] when our refresh gets %s, ends the call after %i ms (at once, or shortly before the interval is over)',
    async (status, afterMs) => {
      await answered('90;refresher=uac');
      await call.bench.pass(45_001);
      await call.answer(call.lastSent('INVITE '), status);
      if (afterMs > 0) await call.bench.pass(afterMs - 1);
      if (afterMs > 0) expect(call.bench.left.calls).toBe(1);
      await call.bench.pass(1);
      expect(call.bench.left.calls).toBe(0);
      expect(headerOf(call.lastSent('BYE '), 'Reason')).toBe('SIP;cause=200;text="Session timer expired"');
    },
  );

  it.each(['Min-SE: 90', 'Min-SE: 600 seconds', 'X-Other: y'])(
    '[4028 §7.4] sends no second refresh after a 422 with "%s", which does not ask for a longer interval',
    async (line) => {
      await answered('90;refresher=uac');
      await call.bench.pass(45_001);
      const count = call.sent.length;
      await call.answer(call.lastSent('INVITE '), '422 Session Interval Too Small', { extra: [line] });
      expect(call.sent.slice(count)).toEqual([expect.stringMatching(/^ACK /)]);
    },
  );

  it('[3261 §14.1] waits 2.1 to 4 s after glare, because we made the Call-ID', async () => {
    await answered('90;refresher=uac');
    await call.bench.pass(45_001);
    await call.answer(call.lastSent('INVITE '), '491 Request Pending');
    const count = call.sent.length;
    await call.bench.pass(2_099);
    expect(call.sent).toHaveLength(count);
    await call.bench.pass(1_901);
    expect(call.sent.slice(count)).toEqual([expect.stringMatching(/^INVITE /)]);
  });

  it('[3261 §14.1] waits with its refresh while our own re-INVITE is under way', async () => {
    first = await invited();
    await call.answer(first, '200 OK', sessionOf('90;refresher=uac'));
    await call.send('ACK sip:placeholder', dialogOf(first));
    await call.bench.pass(44_000);
    await call.send('INVITE sip:placeholder', dialogOf(first), '', SDP);
    const own = call.lastSent('INVITE ');
    await call.answer(own, '180 Ringing', { tag: 'one', ...CONTACT });
    call.forget();
    await call.bench.pass(4_000);
    expect(call.sent).toEqual([]);
    await call.answer(own, '488 Not Acceptable Here');
    await call.bench.pass(2_000);
    expect(call.sent).toEqual([expect.stringMatching(/^ACK /), expect.stringMatching(/^INVITE /)]);
  });

  it('[4028 §10] takes our own UPDATE before half the interval for a refresh', async () => {
    const invite = await invited();
    await call.answer(invite, '200 OK', sessionOf('90;refresher=uac'));
    await call.send('ACK sip:placeholder', dialogOf(invite));
    await call.bench.pass(36_000);
    await call.send('UPDATE sip:placeholder', dialogOf(invite), 'Supported: timer\r\nSession-Expires: 90;refresher=uac\r\n');
    await call.answer(call.lastSent('UPDATE '), '200 OK', { extra: ['Session-Expires: 90;refresher=uac'] });
    call.forget();
    await call.bench.pass(44_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(2);
    expect(call.sent).toEqual([expect.stringMatching(/^INVITE /)]);
  });
});

describe('the SIP server', () => {
  it('[3261 §8.1.3.5] sends a non-INVITE request again with the same Call-ID and From tag and the CSeq that the application states', async () => {
    const stated = (callId: string): string => `${callId}From: <sip:us@here>;tag=mine\r\nCSeq: 42 REGISTER\r\n`;
    await call.send('REGISTER sip:peer@10.0.0.9', '', stated('Call-ID: one\r\n'));
    const again = call.lastSent('REGISTER ');
    expect(['Call-ID', 'From', 'CSeq'].map((name) => headerOf(again, name))).toEqual(['one', '<sip:us@here>;tag=mine', '42 REGISTER']);
    await call.send('REGISTER sip:peer@10.0.0.9', '', stated(''));
    const fresh = call.lastSent('REGISTER ');
    expect(headerOf(fresh, 'From')).not.toContain('tag=mine');
    expect(headerOf(fresh, 'CSeq')).not.toBe('42 REGISTER');
  });

  it.each(['OPTIONS', 'MESSAGE', 'REGISTER', 'PUBLISH'])('gives the application the answer to its %s out of a dialog', async (method) => {
    expect(await call.send(`${method} sip:peer@10.0.0.9`)).toBe('OK');
    await call.answer(call.lastSent(`${method} `), '200 OK', { tag: 'x' });
    expect(call.shown).toEqual(['SIP/2.0 200 OK']);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3261 §17.1.2.2] makes a 408 for the application after 64·T1 when nobody answers its request', async () => {
    await call.send('OPTIONS sip:peer@10.0.0.9');
    await call.bench.pass(32_000);
    expect(call.shown).toEqual(['SIP/2.0 408 Request Timeout']);
    expect(call.sipFrames[0]?.split('|')[3]).toBe('0');
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[4320 §4.1] answers a waiting non-INVITE request with 100 when timer E has reached T2, and with no other provisional response', async () => {
    call = await Scenario.start(['message']);
    await call.receive(call.request('MESSAGE'));
    const id = call.transactionId;
    expect(await call.respond(id, '180 Ringing')).toMatch(/^NOK\|/);
    await call.bench.pass(3_499);
    expect(call.sent).toEqual([]);
    await call.bench.pass(1);
    expect(call.sent).toEqual(['SIP/2.0 100 Trying']);
    expect(await call.respond(id, '200 OK')).toBe('OK');
  });

  it('[4320 §4.2] sends no 408 to a non-INVITE request', async () => {
    call = await Scenario.start(['message']);
    await call.receive(call.request('MESSAGE'));
    expect(await call.respond(call.transactionId, '408 Request Timeout')).toMatch(/^NOK\|/);
    expect(call.sent).toEqual([]);
  });
});

describe('a request to a client that registered over its connection', () => {
  const register = (expires: number): string =>
    call.request('REGISTER', { to: '<sip:phone@server>', extra: [`Expires: ${String(expires)}`], cseq: 1 + expires });

  async function registered(expires: number): Promise<void> {
    await call.receive(register(expires));
    await call.respond(call.transactionId, '200 OK');
    call.forget();
  }

  beforeEach(async () => {
    call = await Scenario.start(['register']);
    call.bench.refuseToOpen();
  });

  it('[5626] goes back over that connection for as long as the registration lasts', async () => {
    await registered(60);
    expect(await call.send('OPTIONS sip:a@caller:6000')).toBe('OK');
    expect(call.sent).toEqual(['OPTIONS sip:a@caller:6000 SIP/2.0']);
    await call.bench.pass(60_000);
    expect(await call.send('OPTIONS sip:a@caller:6000')).toBe('NOK|requested protocol/transport not available');
  });

  it('is refused after a REGISTER with Expires: 0, and when the connection is gone', async () => {
    await registered(60);
    await registered(0);
    expect(await call.send('OPTIONS sip:a@caller:6000')).toMatch(/^NOK/);
    await registered(50);
    call.bench.dropCaller();
    expect(await call.send('OPTIONS sip:a@caller:6000')).toMatch(/^NOK/);
  });
});

describe('a dialog whose TLS connection is gone', () => {
  async function lost(contact: string): Promise<void> {
    call = await Scenario.start();
    const invite = call.invite().replace(/^Contact: .*$/m, `Contact: <${contact}>`);
    await call.receive(invite);
    await call.respond(call.transactionId, '200 OK', '', SDP);
    await call.receive(call.request('ACK', { to: headerOf(call.bench.toCaller.at(-1) ?? '', 'To') }));
    call.bench.dropCaller();
    call.forget();
  }

  it.each(['sip:a@caller:6000;transport=tcp', 'sip:a@caller:6000;transport=udp'])(
    'does not go on in clear when the Contact is %s, because a re-INVITE holds keys',
    async (contact) => {
      await lost(contact);
      expect(await call.send('INVITE sip:placeholder', call.dialogId, '', SDP)).toBe('NOK|requested protocol/transport not available');
      expect(call.sent).toEqual([]);
    },
  );

  it('[5923] goes on over a new connection', async () => {
    await lost('sip:a@caller:6000;transport=tls');
    expect(await call.send('INFO sip:placeholder', call.dialogId)).toBe('OK');
  });
});
