import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parseFast } from '../../src/sip/message/fast-path-parser.js';
import type { Reception } from '../../src/sip/message/reception.js';
import { headerOf, NOTHING_LEFT, type Parts, Scenario, SDP } from '../support/scenario.js';

const RECEPTION: Reception = {
  limits: { maxHeaders: 100, maxHeaderBytes: 8_192, maxBodyBytes: 65_536 },
  own: { ids: new Set(), of: () => [] },
};

let call: Scenario;

beforeEach(async () => {
  call = await Scenario.start();
});

/** An answered call; returns the To value with our tag. */
async function answered(parts: Parts = {}): Promise<string> {
  await call.respond(await call.offered(parts), '200 OK', '', SDP);
  return headerOf(call.bench.toCaller.at(-1) ?? '', 'To');
}

describe('a re-INVITE', () => {
  it.each([488, 491, 500])('[3261 §12.2.2] gets no Contact in a %i, and one in a 200', async (status) => {
    const to = await call.connected();
    await call.receive(call.invite({ to, cseq: 2, branch: 'z9hG4bKre' }));
    await call.respond(call.transactionId, `${String(status)} No`);
    expect(headerOf(call.lastSent(`SIP/2.0 ${String(status)}`), 'Contact')).toBe('');
    await call.receive(call.request('ACK', { to, cseq: 2, branch: 'z9hG4bKre' }));
    await call.receive(call.invite({ to, cseq: 3, branch: 'z9hG4bKagain' }));
    await call.respond(call.transactionId, '200 OK', '', SDP);
    expect(headerOf(call.lastSent('SIP/2.0 200'), 'Contact')).not.toBe('');
  });
});

describe('a request whose connection closes at once', () => {
  it.each(['BYE', 'INFO', 'OPTIONS'])(
    '[3261 §18.4] reaches the application as %s and leaves nothing that waits for the answer',
    async (method) => {
      call = await Scenario.start(['invite', 'options']);
      const to = await call.connected();
      await call.bench.pass(32_000);
      const before = call.bench.left;
      call.bench.refuseToOpen();
      call.bench.fromCaller(call.request(method, { to, cseq: 2 }));
      call.bench.dropCaller();
      await call.bench.settle();
      expect(call.shown.at(-1)).toBe(`${method} sip:b@server SIP/2.0`);
      const left = method === 'BYE' ? { ...before, calls: 0 } : before;
      expect(call.bench.left).toEqual(left);
      expect(await call.respond(call.transactionId, '200 OK')).toBe('NOK|Response not sent due to unknown transaction');
      expect(call.bench.left).toEqual(left);
    },
  );
});

describe('a SIP server that takes an INVITE', () => {
  it('[3261 §13.3.1.4] repeats the 200 on TLS too, at 0.5, 1, 2, 4, 4 s, until the ACK', async () => {
    const to = await answered();
    call.bench.toCaller.length = 0;
    const counts: number[] = [];
    for (const gap of [499, 1, 999, 1, 2_000, 4_000, 4_000]) {
      await call.bench.pass(gap);
      counts.push(call.bench.toCaller.length);
    }
    expect(counts).toEqual([0, 1, 1, 2, 3, 4, 5]);
    await call.receive(call.request('ACK', { to }));
    await call.bench.pass(30_000);
    expect(call.bench.toCaller).toHaveLength(5);
  });

  it('[3261 §18.2.2] repeats the 200 over a new connection to the port of sent-by when that of the INVITE is gone', async () => {
    const to = await answered();
    call.bench.dropCaller();
    call.bench.callAgainFrom('127.0.0.1');
    call.forget();
    await call.bench.pass(1_500);
    expect(call.sent).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 200 OK']);
    expect(call.bench.opened).toEqual([{ transport: 'TLS', host: 'caller', port: 6_000, address: '127.0.0.1' }]);
    await call.receive(call.request('ACK', { to }));
    await call.bench.pass(40_000);
    expect(call.sent).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 200 OK']);
  });

  it('[3261 §18.2.2] repeats the 200 to a re-INVITE that way, and over the connection where the caller spoke since', async () => {
    const to = await call.connected();
    await call.receive(call.invite({ to, cseq: 2, branch: 'z9hG4bKre' }));
    await call.respond(call.transactionId, '200 OK', '', SDP);
    call.bench.dropCaller();
    call.bench.callAgainFrom('127.0.0.1');
    await call.receive(call.request('INFO', { to, cseq: 3 }));
    call.forget();
    await call.bench.pass(500);
    expect([call.sent, call.bench.opened]).toEqual([['SIP/2.0 200 OK'], []]);
  });

  it('[3261 §13.3.1.4] ends the call with BYE and tells the application when no ACK came in 64·T1', async () => {
    await answered();
    await call.bench.pass(32_000);
    const bye = call.bench.toCaller.at(-1) ?? '';
    expect(bye).toMatch(/^BYE sip:a@caller:6000;transport=tls SIP\/2\.0\r\n/);
    expect(headerOf(bye, 'Reason')).toBe('SIP;cause=200;text="ACK timeout"');
    const frame = call.bench.toApp.at(-1) ?? '';
    expect(frame).toContain('|sip|application|');
    expect(frame.split('|').slice(8, 10)).toEqual(['unsolicited', call.dialogId]);
  });

  it('reads a call from INVITE to BYE once, on the fast path: it parses no header a second time', async () => {
    const { message } = parseFast(call.invite(), { remote: { address: '192.0.2.1', port: 6_000 } }, RECEPTION) ?? {};
    const reads = vi.spyOn(Object.getPrototypeOf(message) as { headers: unknown }, 'headers', 'get');
    const to = await answered();
    await call.receive(call.request('ACK', { to }));
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    expect(reads).not.toHaveBeenCalled();
    reads.mockRestore();
  });

  it('hands the first ACK to the application with the INVITE’s transaction id, and no repetition of it', async () => {
    const id = await call.offered();
    await call.respond(id, '200 OK', '', SDP);
    const to = headerOf(call.bench.toCaller.at(-1) ?? '', 'To');
    for (let copy = 0; copy < 3; copy += 1) await call.receive(call.request('ACK', { to }));
    const acks = call.bench.toApp.filter((payload) => payload.includes('\r\nACK '));
    expect(acks).toHaveLength(1);
    expect(acks[0]?.split('|').slice(8, 10)).toEqual([id, call.dialogId]);
  });

  it('[6026 §7.1] makes no second call of a repeated INVITE, before and after the 200', async () => {
    await call.offered();
    await call.offered();
    expect(call.bench.toApp).toHaveLength(1);
    await call.respond(call.transactionId, '200 OK', '', SDP);
    await call.receive(call.invite());
    expect(call.bench.toApp.filter((payload) => payload.includes('\r\nINVITE '))).toHaveLength(1);
  });

  it('[3261 §8.2.2.2] answers a copy that came by another way with 482 while the call lives', async () => {
    const to = await call.connected();
    await call.receive(call.invite({ branch: 'z9hG4bKother' }));
    expect(call.sent.at(-1)).toBe('SIP/2.0 482 Loop Detected');
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    await call.respond(call.transactionId, '200 OK');
    await call.receive(call.invite({ branch: 'z9hG4bKlater', cseq: 5 }));
    expect(call.shown.at(-1)).toMatch(/^INVITE /);
  });

  it('keeps nothing after BYE and the timers of RFC 6026', async () => {
    const to = await call.connected();
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    await call.respond(call.transactionId, '200 OK');
    await call.bench.pass(32_001);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });
});

describe('a SIP server that gets a CANCEL', () => {
  const cancel = (): string => call.request('CANCEL', { branch: 'z9hG4bKinvite' });

  it('[3261 §9.2] answers 200 and 487 with one To-tag, tells the application, and refuses its late answer', async () => {
    const id = await call.offered();
    await call.receive(cancel());
    expect(call.sent).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated']);
    const tags = call.bench.toCaller.slice(1).map((text) => headerOf(text, 'To'));
    expect(tags[0]).toBe(tags[1]);
    expect(call.bench.toApp.at(-1)?.split('|').slice(8, 10)).toEqual([id, '']);
    await call.respond(id, '200 OK', '', SDP);
    expect(call.bench.toApp.at(-1)).toContain('|NOK|Response not sent due to unknown transaction');
  });

  it('[3261 §9.2] answers 200 after the 200 to the INVITE, and keeps the call', async () => {
    const to = await answered();
    await call.receive(cancel());
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    await call.receive(call.request('ACK', { to }));
    expect(call.bench.left.calls).toBe(1);
    expect(call.shown.some((line) => line.startsWith('CANCEL'))).toBe(false);
  });

  it('names the dialog to the application when a provisional response went out', async () => {
    const id = await call.offered();
    await call.respond(id, '180 Ringing');
    await call.receive(cancel());
    expect(call.bench.toApp.at(-1)?.split('|').slice(8, 10)).toEqual([id, call.dialogId]);
  });

  it('makes up a CANCEL for the application when the caller’s connection is gone before the answer', async () => {
    await call.offered();
    call.bench.dropCaller();
    await call.bench.settle();
    expect(call.shown.at(-1)).toMatch(/^CANCEL sip:b@server/);
    expect(call.bench.left).toMatchObject({ pending: 0, calls: 0 });
  });
});

describe('a SIP server in a dialog', () => {
  it('[3261 §14.2] answers a second INVITE before the first is answered with 500 and Retry-After', async () => {
    const to = await call.connected();
    await call.receive(call.request('INVITE', { to, cseq: 2 }));
    expect(await call.receive(call.request('INVITE', { to, cseq: 3 }))).toBe('SIP/2.0 500 Server Internal Error');
    expect(Number(headerOf(call.bench.toCaller.at(-1) ?? '', 'Retry-After'))).toBeLessThanOrEqual(10);
  });

  it('answers 491 to an INVITE while our 200 waits for its ACK', async () => {
    const to = await answered();
    expect(await call.receive(call.request('INVITE', { to, cseq: 2 }))).toBe('SIP/2.0 491 Request Pending');
  });

  it('[3311 §5.2] refuses a second UPDATE before the first is answered', async () => {
    const to = await call.connected();
    await call.receive(call.request('UPDATE', { to, cseq: 2 }));
    expect(await call.receive(call.request('UPDATE', { to, cseq: 3 }))).toBe('SIP/2.0 500 Server Internal Error');
  });

  it('[3261 §12.2.2] refuses a request whose CSeq is not greater than the last one', async () => {
    const to = await call.connected();
    expect(await call.receive(call.request('INFO', { to, cseq: 1 }))).toBe('SIP/2.0 500 CSeq Out Of Order');
  });

  it('[3261 §15.1.2] ends an early dialog at a BYE, and answers the INVITE with 487', async () => {
    const id = await call.offered();
    await call.respond(id, '180 Ringing');
    const to = headerOf(call.bench.toCaller.at(-1) ?? '', 'To');
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    expect(call.sent).toContain('SIP/2.0 487 Request Terminated');
  });

  it('[3311 §5.2] answers an UPDATE on an early dialog with 500 and Retry-After, for a 481 would end the call', async () => {
    const id = await call.offered();
    await call.respond(id, '180 Ringing');
    const to = headerOf(call.bench.toCaller.at(-1) ?? '', 'To');
    expect(await call.receive(call.request('UPDATE', { to, cseq: 2 }))).toBe('SIP/2.0 500 Server Internal Error');
    expect(headerOf(call.bench.toCaller.at(-1) ?? '', 'Retry-After')).toMatch(/^(?:[1-9]|10)$/);
  });

  it('[3261 §12.1.1] [3261 §16.12] copies Record-Route and follows loose routes, then strict ones', async () => {
    for (const [route, uri, routes] of [
      ['<sip:p1;lr>, <sip:p2;lr>', 'sip:a@caller:6000;transport=tls', ['<sip:p1;lr>', '<sip:p2;lr>']],
      ['<sip:p1>, <sip:p2;lr>', 'sip:p1', ['<sip:p2;lr>', '<sip:a@caller:6000;transport=tls>']],
    ] as const) {
      call = await Scenario.start();
      await answered({ extra: [`Record-Route: ${route}`] });
      expect(headerOf(call.bench.toCaller.at(-1) ?? '', 'Record-Route')).toBe(route);
      call.bench.fromApp(`b|sip||${call.dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
      await call.bench.settle();
      const bye = call.bench.toCaller.at(-1) ?? '';
      expect(bye).toMatch(new RegExp(`^BYE ${uri.replace(/[.?]/g, '\\$&')} SIP/2\\.0\r\n`));
      expect([...bye.matchAll(/^Route: (.*)\r$/gm)].map((match) => match[1])).toEqual(routes);
    }
  });

  it('[3261 §12.2.2] takes the next CSeq after one that it refused, and a greater one after a gap', async () => {
    const to = await call.connected();
    await call.receive(call.request('INFO', { to, cseq: 7 }));
    await call.respond(call.transactionId, '415 Unsupported Media Type');
    expect(await call.receive(call.request('INFO', { to, cseq: 6 }))).toBe('SIP/2.0 500 CSeq Out Of Order');
    await call.receive(call.request('INFO', { to, cseq: 8 }));
    expect(await call.respond(call.transactionId, '200 OK')).toBe('OK');
  });

  it.each(['INVITE', 'UPDATE'])(
    '[3261 §12.2.1.1] sends its requests to the Contact of the newest %s, and ignores the Contact of an INFO',
    async (method) => {
      const to = await call.connected();
      const from = (host: string, name: string, cseq: number): string =>
        call.request(name, { to, cseq }).replace(/^Contact: .*$/m, `Contact: <sip:a@${host}:6000;transport=tls>`);
      await call.receive(from('moved', method, 2));
      await call.respond(call.transactionId, '200 OK', '', method === 'INVITE' ? SDP : '');
      if (method === 'INVITE') await call.receive(call.request('ACK', { to, cseq: 2 }));
      await call.receive(from('elsewhere', 'INFO', 3));
      await call.respond(call.transactionId, '200 OK');
      await call.send('BYE sip:placeholder', call.dialogId);
      expect(call.sent.at(-1)).toBe('BYE sip:a@moved:6000;transport=tls SIP/2.0');
    },
  );

  it('[3311 §5.2] takes another UPDATE once the first is answered', async () => {
    const to = await call.connected();
    await call.receive(call.request('UPDATE', { to, cseq: 2 }));
    await call.respond(call.transactionId, '488 Not Acceptable Here');
    await call.receive(call.request('UPDATE', { to, cseq: 3 }));
    expect(await call.respond(call.transactionId, '200 OK')).toBe('OK');
  });

  it('[3261 §14.2] keeps the call when a re-INVITE is refused, and takes the next one', async () => {
    const to = await call.connected();
    await call.receive(call.request('INVITE', { to, cseq: 2 }));
    await call.respond(call.transactionId, '488 Not Acceptable Here');
    await call.receive(call.request('ACK', { to, cseq: 2 }));
    expect(call.bench.dialogCount).toBe(1);
    await call.receive(call.request('INVITE', { to, cseq: 3 }));
    expect(await call.respond(call.transactionId, '200 OK', '', SDP)).toBe('OK');
  });

  it('[3261 §12.1.1] answers a re-INVITE with its Contact and without Record-Route', async () => {
    const to = await call.connected();
    await call.receive(call.request('INVITE', { to, cseq: 2, extra: ['Record-Route: <sip:p1;lr>'] }));
    for (const status of ['180 Ringing', '200 OK']) {
      await call.respond(call.transactionId, status, '', SDP);
      const sent = call.bench.toCaller.at(-1) ?? '';
      expect([headerOf(sent, 'Contact'), headerOf(sent, 'Record-Route')]).toEqual(['<sips:127.0.0.1:25061;transport=tls>', '']);
    }
  });

  it('[3261 §12.1.1] [4320 §4.1] begins a dialog with a 18x and a 200 to INVITE, and none with a 100 or a refusal', async () => {
    for (const [status, dialogs] of [
      ['100 Trying', 0],
      ['180 Ringing', 1],
      ['200 OK', 1],
      ['302 Moved', 0],
    ] as const) {
      call = await Scenario.start();
      await call.respond(await call.offered(), status, '', status === '200 OK' ? SDP : '');
      expect([status, call.bench.dialogCount]).toEqual([status, dialogs]);
    }
  });
});

describe('a SIP server that gets a request outside of a dialog', () => {
  it.each(['BYE', 'UPDATE', 'PRACK'])(
    '[3261 §12.2.2] answers 481 to a %s without a tag of ours, and shows it to nobody',
    async (method) => {
      call = await Scenario.start([method.toLowerCase()]);
      expect(await call.receive(call.request(method))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
      expect(call.shown).toEqual([]);
    },
  );

  it.each(['INFO', 'MESSAGE', 'OPTIONS'])('[3261 §8.2] shows a %s without a To-tag to the application as a new request', async (method) => {
    call = await Scenario.start([method.toLowerCase()]);
    await call.receive(call.request(method));
    expect(call.shown).toEqual([`${method} sip:b@server SIP/2.0`]);
  });
});

describe('the SIP server', () => {
  it('[3261 §8.2.2.1] answers 416 to a Request-URI of an unknown scheme, with a Warning that names the known ones', async () => {
    await call.receive(call.invite({ uri: 'nobodyKnowsThis:b@server' }));
    expect(headerOf(call.lastSent('SIP/2.0 416'), 'Warning')).toBe('399 127.0.0.1:25061 "The Request-URI is neither sip, sips nor tel."');
  });

  it.each(['sips:b@server', 'tel:+15550100100', 'SIP:b@server'])('[3261 §8.2.2.1] takes the Request-URI %s', async (uri) => {
    await call.receive(call.invite({ uri }));
    expect(call.shown).toEqual([`INVITE ${uri} SIP/2.0`]);
  });

  it('[3261 §8.2.6.1] repeats the Timestamp in the 100, and in no other response', async () => {
    const id = await call.offered({ extra: ['Timestamp: 54.2'] });
    await call.respond(id, '180 Ringing');
    expect(headerOf(call.lastSent('SIP/2.0 100'), 'Timestamp')).toBe('54.2');
    expect(headerOf(call.lastSent('SIP/2.0 180'), 'Timestamp')).toBe('');
  });

  it('[3261 §7.1] takes sip/2.0 in lower case for the same version, and gives it to the application in capitals', async () => {
    await call.receive(call.invite().replace(' SIP/2.0\r', ' sip/2.0\r'));
    expect(call.shown.at(-1)).toBe('INVITE sip:b@server SIP/2.0');
  });

  it('[3261 §7.3.1] gives folded headers to the application on one line', async () => {
    const folded = call.invite({ extra: ['Subject: one', '\t two'] }).replace('CSeq: 1 INVITE', 'CSeq:\t 1\r\n INVITE');
    await call.receive(folded);
    const frame = call.sipFrames.at(-1) ?? '';
    expect([headerOf(frame, 'CSeq'), headerOf(frame, 'Subject')]).toEqual(['1 INVITE', 'one two']);
    expect(await call.respond(call.transactionId, '200 OK', 'CSeq: 1 INVITE\r\n', SDP)).toBe('OK');
  });
});

describe('OPTIONS requests', () => {
  const probe = (userAgent: string, method = 'OPTIONS'): string =>
    call.request(method, { callId: `${userAgent}-${method}`, extra: [`User-Agent: ${userAgent}`] });

  it('get their answer from the server itself, unseen by the applications, when the User-Agent is one of those set', async () => {
    call = await Scenario.start(['options', 'message']);
    expect(await call.receive(probe('probe/1.0'))).toBe('SIP/2.0 200 OK');
    expect(call.shown).toEqual([]);
    for (const [userAgent, method] of [
      ['probe/1.0.1', 'OPTIONS'],
      ['Probe/1.0', 'OPTIONS'],
      ['probe/1.0', 'MESSAGE'],
    ] as const) {
      await call.receive(probe(userAgent, method));
      expect(call.shown.at(-1)).toBe(`${method} sip:b@server SIP/2.0`);
      call.forget();
    }
  });

  it('get their answer without any application when the User-Agent is one of those set', async () => {
    call = await Scenario.start([]);
    expect(await call.receive(probe('probe/1.0'))).toBe('SIP/2.0 200 OK');
    expect(await call.receive(probe('other/1.0'))).toBe('SIP/2.0 503 Service Unavailable');
  });
});

describe('the session timer of an incoming call', () => {
  const settled = async (value: string): Promise<string> => {
    const id = await call.offered();
    await call.respond(id, '200 OK', `Session-Expires: ${value}\r\nContact: <sip:us@server;transport=tls>\r\n`, SDP);
    const to = headerOf(call.bench.toCaller.at(-1) ?? '', 'To');
    await call.receive(call.request('ACK', { to }));
    call.bench.toCaller.length = 0;
    return to;
  };
  /** The caller's answer to the newest request of ours. */
  const answerLast = (status: string, ...extra: string[]): Promise<void> =>
    call.answer(call.bench.toCaller.at(-1) ?? '', status, { extra: [...extra, 'Contact: <sip:a@caller:6000;transport=tls>'] });

  it('[4028 §10] sends a refresh at half the interval with the last SDP and Contact, acknowledges, and goes on', async () => {
    await settled('1800;refresher=uas');
    const frames = call.bench.toApp.length;
    await call.bench.pass(899_000);
    expect(call.bench.toCaller).toEqual([]);
    await call.bench.pass(1_001);
    const refresh = call.bench.toCaller.at(-1) ?? '';
    expect(refresh).toMatch(/^INVITE /);
    expect(headerOf(refresh, 'Session-Expires')).toBe('1800;refresher=uac');
    expect(headerOf(refresh, 'Contact')).toBe('<sip:us@server;transport=tls>');
    expect(refresh.endsWith(SDP)).toBe(true);
    await answerLast('200 OK', 'Session-Expires: 1800;refresher=uac');
    expect(call.sent.at(-1)).toMatch(/^ACK /);
    await call.bench.pass(900_001);
    expect(call.sent.at(-1)).toMatch(/^INVITE /);
    // The application knows nothing of it.
    expect(call.bench.toApp).toHaveLength(frames);
  });

  it('[4028 §7.4] sends the refresh with the SDP of our own last re-INVITE, which another media relay may have made', async () => {
    await settled('1800;refresher=uas');
    const moved = SDP.replace(/^m=audio \d+/m, 'm=audio 40004');
    await call.send('INVITE sip:placeholder', call.dialogId, 'Contact: <sip:us@server;transport=tls>\r\nSupported: timer\r\n', moved);
    await answerLast('200 OK', 'Session-Expires: 1800;refresher=uac');
    await call.bench.pass(900_001);
    expect(call.lastSent('INVITE ').endsWith(moved)).toBe(true);
    expect(moved).not.toBe(SDP);
  });

  it('[4028 §10] ends the call a little before the interval is over when the peer does not refresh', async () => {
    await settled('90;refresher=uac');
    await call.bench.pass(59_000);
    expect(call.bench.toCaller).toEqual([]);
    await call.bench.pass(1_001);
    expect(headerOf(call.bench.toCaller.at(-1) ?? '', 'Reason')).toBe('SIP;cause=200;text="Session timer expired"');
    expect(call.bench.toApp.at(-1)).toContain('|unsolicited|');
    expect(call.bench.left.calls).toBe(0);
  });

  it('[4028 §10] starts anew at each refresh of the peer', async () => {
    const to = await settled('90;refresher=uac');
    await call.bench.pass(50_000);
    await call.receive(call.request('UPDATE', { to, cseq: 2 }));
    await call.respond(call.transactionId, '200 OK', 'Session-Expires: 90;refresher=uac\r\n');
    await call.bench.pass(50_000);
    expect(call.bench.left.calls).toBe(1);
    await call.bench.pass(10_001);
    expect(call.bench.left.calls).toBe(0);
  });

  it('[4028 §10] ends the call when the peer does not know it any more, and sends the refresh again after glare', async () => {
    await settled('90;refresher=uas');
    await call.bench.pass(45_001);
    await answerLast('491 Request Pending');
    await call.bench.pass(2_001);
    expect(call.sent.filter((line) => line.startsWith('INVITE '))).toHaveLength(2);
    await answerLast('481 Call/Transaction Does Not Exist');
    expect(call.sent.at(-1)).toMatch(/^BYE /);
    expect(call.bench.left.calls).toBe(0);
  });

  it.each([
    ['1800;refresher=uac', '1800;refresher=uac'],
    ['1800;refresher=UAS;x=y', '1800;refresher=uas'],
    ['60;refresher=uac', '90;refresher=uac'],
    ['1800', ''],
    ['abc;refresher=uac', ''],
  ])(
    '[4028 §9] turns "%s" into "%s" for an application that leaves timers to the server, in a re-INVITE and an UPDATE too',
    async (asked, agreed) => {
      const extra = ['Supported: timer', `Session-Expires: ${asked}`];
      await call.respond(await call.offered({ extra }), '200 OK', '', SDP);
      const answer = call.bench.toCaller.at(-1) ?? '';
      expect(headerOf(answer, 'Session-Expires')).toBe(agreed);
      const to = headerOf(answer, 'To');
      await call.receive(call.request('ACK', { to }));
      for (const [cseq, method] of [
        [2, 'UPDATE'],
        [3, 'INVITE'],
      ] as const) {
        await call.receive(call.request(method, { to, cseq, extra }));
        await call.respond(call.transactionId, '200 OK');
        expect([method, headerOf(call.bench.toCaller.at(-1) ?? '', 'Session-Expires')]).toEqual([method, agreed]);
      }
    },
  );

  it('[4028 §9] leaves the Session-Expires of the application as it is', async () => {
    const id = await call.offered({ extra: ['Session-Expires: 1800;refresher=uac'] });
    await call.respond(id, '200 OK', 'Session-Expires: 600;refresher=uas\r\n', SDP);
    expect(call.lastSent('SIP/2.0 200').match(/^Session-Expires: .*(?=\r)/gm)).toEqual(['Session-Expires: 600;refresher=uas']);
  });

  it('[4028 §9] puts no Session-Expires into a refusal', async () => {
    await call.respond(await call.offered({ extra: ['Session-Expires: 1800;refresher=uac'] }), '486 Busy Here');
    expect(headerOf(call.lastSent('SIP/2.0 486'), 'Session-Expires')).toBe('');
  });

  it('[4028 §9] expects no refresh that nobody has promised', async () => {
    await settled('90');
    await call.bench.pass(200_000);
    expect(call.bench.left.calls).toBe(1);
  });
});

describe('a SIP server whose applications fail', () => {
  it('answers 500 for an application that stays silent, before the caller gives up', async () => {
    await call.offered();
    await call.bench.pass(20_000);
    expect(call.sent.at(-1)).toBe('SIP/2.0 500 Server Internal Error');
    expect(call.bench.left.pending).toBe(0);
  });

  it('waits without a limit for an application that has answered provisionally', async () => {
    await call.respond(await call.offered(), '180 Ringing');
    await call.bench.pass(120_000);
    expect(call.sent.at(-1)).toBe('SIP/2.0 180 Ringing');
  });

  it('answers 503 to the INVITEs of an application that is gone, and ends its calls with BYE', async () => {
    await call.connected();
    await call.receive(call.invite({ branch: 'z9hG4bKsecond', cseq: 7 }).replaceAll('call1', 'call2'));
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent).toContain('SIP/2.0 503 Service Unavailable');
    expect(call.sent.some((line) => line.startsWith('BYE '))).toBe(true);
    expect(call.bench.left).toMatchObject({ pending: 0, calls: 0 });
  });

  it('answers 503 with Retry-After to an INVITE when all applications have withdrawn from INVITE, whatever else they serve', async () => {
    call.bench.fromApp('o|route|register');
    call.bench.fromApp('w|remove_route|invite');
    await call.bench.settle();
    await call.receive(call.invite());
    expect(call.sent.at(-1)).toBe('SIP/2.0 503 Service Unavailable');
    expect(Number(headerOf(call.bench.toCaller.at(-1) ?? '', 'Retry-After'))).toBeGreaterThan(0);
  });

  it('sends no second BYE for an application that goes while the BYE of the application is under way', async () => {
    await call.connected();
    call.bench.fromApp(`b|sip||${call.dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
    await call.bench.settle();
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent.filter((line) => line.startsWith('BYE '))).toHaveLength(1);
  });

  it('[3261 §15.1.1] keeps the dialog of a BYE that got 401 or 407 for 64·T1, so that the BYE can go again with credentials', async () => {
    await call.connected();
    call.bench.fromApp(`b|sip||${call.dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
    await call.bench.settle();
    await call.answer(call.lastSent('BYE '), '407 Proxy Authentication Required', { extra: ['Proxy-Authenticate: Digest realm="x"'] });
    await call.bench.pass(31_000);
    expect(call.bench.dialogCount).toBe(1);
    await call.bench.pass(2_000);
    expect(call.bench.dialogCount).toBe(0);
  });

  it('answers 503 when no application has asked for INVITE', async () => {
    call = await Scenario.start([]);
    await call.receive(call.invite());
    expect(call.sent).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 503 Service Unavailable']);
  });
});
