import { beforeEach, describe, expect, it } from 'vitest';
import { Bench } from '../support/transcript.js';

const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n';

let bench: Bench;
let serial = 0;

beforeEach(async () => {
  bench = new Bench('TLS', 6_000);
  bench.fromApp('r|route|invite');
  await bench.settle();
  bench.toApp.length = 0;
});

interface Parts {
  readonly branch?: string;
  readonly cseq?: number;
  readonly to?: string;
  readonly extra?: readonly string[];
  readonly body?: string;
}

function request(method: string, parts: Parts = {}): string {
  serial += 1;
  const { branch = `z9hG4bKs${String(serial)}`, cseq = 1, to = '<sip:b@server>', extra = [], body = '' } = parts;
  return [
    `${method} sip:b@server SIP/2.0`,
    `Via: SIP/2.0/TLS caller:6000;branch=${branch}`,
    'From: <sip:a@caller>;tag=from1',
    `To: ${to}`,
    'Call-ID: call1',
    `CSeq: ${String(cseq)} ${method}`,
    'Contact: <sip:a@caller:6000;transport=tls>',
    ...extra,
    `Content-Length: ${String(body.length)}`,
    '',
    body,
  ].join('\r\n');
}

const invite = (parts: Parts = {}): string =>
  request('INVITE', { branch: 'z9hG4bKinvite', body: SDP, extra: ['Content-Type: application/sdp'], ...parts });
const statuses = (): string[] => bench.toCaller.map((text) => text.slice(0, text.indexOf('\r\n')));
const framesToApp = (): string[] => bench.toApp.map((payload) => payload.split('\r\n')[1] ?? payload.split('|').slice(3).join('|'));
const headerOf = (text: string, name: string): string => new RegExp(`^${name}: (.*)\r$`, 'm').exec(text)?.[1] ?? '';
/** The transaction id of the newest `sip` frame. */
const transactionId = (): string =>
  bench.toApp
    .filter((payload) => payload.includes('|sip|'))
    .at(-1)
    ?.split('|')[8] ?? '';
const dialogId = 'call1;from-tag=from1';

async function offered(parts: Parts = {}): Promise<string> {
  bench.fromCaller(invite(parts));
  await bench.settle();
  return transactionId();
}

async function respond(id: string, status: string, extra = '', body = ''): Promise<void> {
  bench.fromApp(`m|sip|${id}|\r\nSIP/2.0 ${status}\r\n${extra}\r\n${body}`);
  await bench.settle();
}

/** An answered call; returns the To value with our tag. */
async function answered(parts: Parts = {}): Promise<string> {
  await respond(await offered(parts), '200 OK', '', SDP);
  return headerOf(bench.toCaller.at(-1) ?? '', 'To');
}

async function connected(): Promise<string> {
  const to = await answered();
  bench.fromCaller(request('ACK', { to }));
  await bench.settle();
  return to;
}

async function fromCaller(method: string, parts: Parts): Promise<string> {
  bench.fromCaller(request(method, parts));
  await bench.settle();
  return statuses().at(-1) ?? '';
}

describe('an answered INVITE', () => {
  it('[3261 §13.3.1.4] repeats the 200 on TLS too, at 0.5, 1, 2, 4, 4 s, until the ACK', async () => {
    const to = await answered();
    bench.toCaller.length = 0;
    const counts: number[] = [];
    for (const gap of [499, 1, 999, 1, 2_000, 4_000, 4_000]) {
      await bench.pass(gap);
      counts.push(bench.toCaller.length);
    }
    expect(counts).toEqual([0, 1, 1, 2, 3, 4, 5]);
    bench.fromCaller(request('ACK', { to }));
    await bench.settle();
    await bench.pass(30_000);
    expect(bench.toCaller).toHaveLength(5);
  });

  it('[3261 §13.3.1.4] ends with our BYE when no ACK came in 64·T1, and tells the application', async () => {
    await answered();
    await bench.pass(32_000);
    const bye = bench.toCaller.at(-1) ?? '';
    expect(bye).toMatch(/^BYE sip:a@caller:6000;transport=tls SIP\/2\.0\r\n/);
    expect(headerOf(bye, 'Reason')).toBe('SIP;cause=200;text="ACK timeout"');
    const frame = bench.toApp.at(-1) ?? '';
    expect(frame).toContain('|sip|application|');
    expect(frame.split('|').slice(8, 10)).toEqual(['unsolicited', dialogId]);
  });

  it('hands the first ACK to the application with the INVITE’s transaction id, and no repetition of it', async () => {
    const id = await offered();
    await respond(id, '200 OK', '', SDP);
    const to = headerOf(bench.toCaller.at(-1) ?? '', 'To');
    for (let copy = 0; copy < 3; copy += 1) bench.fromCaller(request('ACK', { to }));
    await bench.settle();
    const acks = bench.toApp.filter((payload) => payload.includes('\r\nACK '));
    expect(acks).toHaveLength(1);
    expect(acks[0]?.split('|').slice(8, 10)).toEqual([id, dialogId]);
  });

  it('[6026 §7.1] makes no second call of a repeated INVITE, before and after the 200', async () => {
    await offered();
    await offered();
    expect(bench.toApp).toHaveLength(1);
    await respond(transactionId(), '200 OK', '', SDP);
    bench.fromCaller(invite());
    await bench.settle();
    expect(bench.toApp.filter((payload) => payload.includes('\r\nINVITE '))).toHaveLength(1);
  });

  it('[3261 §8.2.2.2] answers a copy by another way with 482, while the call lives', async () => {
    const to = await connected();
    bench.fromCaller(invite({ branch: 'z9hG4bKother' }));
    await bench.settle();
    expect(statuses().at(-1)).toBe('SIP/2.0 482 Loop Detected');
    await fromCaller('BYE', { to, cseq: 2 });
    await respond(transactionId(), '200 OK');
    bench.fromCaller(invite({ branch: 'z9hG4bKlater', cseq: 5 }));
    await bench.settle();
    expect(framesToApp().at(-1)).toMatch(/^INVITE /);
  });

  it('leaves nothing behind after BYE and the timers of RFC 6026', async () => {
    const to = await connected();
    await fromCaller('BYE', { to, cseq: 2 });
    await respond(transactionId(), '200 OK');
    await bench.pass(32_001);
    expect(bench.left).toEqual({ pending: 0, calls: 0, outgoing: 0, proxied: 0, transactions: 0, timers: 0 });
  });
});

describe('CANCEL', () => {
  const cancel = (): string => request('CANCEL', { branch: 'z9hG4bKinvite' });

  it('[3261 §9.2] answers 200 and 487 with one To-tag, tells the application, refuses its late answer', async () => {
    const id = await offered();
    bench.fromCaller(cancel());
    await bench.settle();
    expect(statuses()).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated']);
    const tags = bench.toCaller.slice(1).map((text) => headerOf(text, 'To'));
    expect(tags[0]).toBe(tags[1]);
    expect(bench.toApp.at(-1)?.split('|').slice(8, 10)).toEqual([id, '']);
    await respond(id, '200 OK', '', SDP);
    expect(bench.toApp.at(-1)).toContain('|NOK|Response not sent due to unknown transaction');
  });

  it('[3261 §9.2] answers 200 after our 200 and leaves the call alone', async () => {
    const to = await answered();
    bench.fromCaller(cancel());
    await bench.settle();
    expect(statuses().at(-1)).toBe('SIP/2.0 200 OK');
    bench.fromCaller(request('ACK', { to }));
    await bench.settle();
    expect(bench.left.calls).toBe(1);
    expect(framesToApp().some((line) => line.startsWith('CANCEL'))).toBe(false);
  });

  it('names the dialog when a provisional answer went out', async () => {
    const id = await offered();
    await respond(id, '180 Ringing');
    bench.fromCaller(cancel());
    await bench.settle();
    expect(bench.toApp.at(-1)?.split('|').slice(8, 10)).toEqual([id, dialogId]);
  });

  it('is made up for the application when the caller’s connection is gone before the answer', async () => {
    await offered();
    bench.dropCaller();
    await bench.settle();
    expect(framesToApp().at(-1)).toMatch(/^CANCEL sip:b@server/);
    expect(bench.left).toMatchObject({ pending: 0, calls: 0 });
  });
});

describe('in a dialog', () => {
  it('[3261 §14.2] refuses a second INVITE before the first is answered: 500 with Retry-After', async () => {
    const to = await connected();
    await fromCaller('INVITE', { to, cseq: 2 });
    expect(await fromCaller('INVITE', { to, cseq: 3 })).toBe('SIP/2.0 500 Server Internal Error');
    expect(Number(headerOf(bench.toCaller.at(-1) ?? '', 'Retry-After'))).toBeLessThanOrEqual(10);
  });

  it('answers 491 to an INVITE while our 200 waits for its ACK', async () => {
    const to = await answered();
    expect(await fromCaller('INVITE', { to, cseq: 2 })).toBe('SIP/2.0 491 Request Pending');
  });

  it('[3311 §5.2] refuses a second UPDATE before the first is answered', async () => {
    const to = await connected();
    await fromCaller('UPDATE', { to, cseq: 2 });
    expect(await fromCaller('UPDATE', { to, cseq: 3 })).toBe('SIP/2.0 500 Server Internal Error');
  });

  it('[3261 §12.2.2] refuses a CSeq that does not grow', async () => {
    const to = await connected();
    expect(await fromCaller('INFO', { to, cseq: 1 })).toBe('SIP/2.0 500 CSeq Out Of Order');
  });

  it('[3261 §15.1.2] ends an early dialog at BYE: the INVITE gets 487', async () => {
    const id = await offered();
    await respond(id, '180 Ringing');
    const to = headerOf(bench.toCaller.at(-1) ?? '', 'To');
    await fromCaller('BYE', { to, cseq: 2 });
    expect(statuses()).toContain('SIP/2.0 487 Request Terminated');
  });

  it('[3261 §12.1.1] [3261 §16.12] copies Record-Route and follows loose routes, then strict ones', async () => {
    for (const [route, uri, routes] of [
      ['<sip:p1;lr>, <sip:p2;lr>', 'sip:a@caller:6000;transport=tls', ['<sip:p1;lr>', '<sip:p2;lr>']],
      ['<sip:p1>, <sip:p2;lr>', 'sip:p1', ['<sip:p2;lr>', '<sip:a@caller:6000;transport=tls>']],
    ] as const) {
      bench = new Bench('TLS', 6_000);
      bench.fromApp('r|route|invite');
      await bench.settle();
      await answered({ extra: ['Content-Type: application/sdp', `Record-Route: ${route}`] });
      expect(headerOf(bench.toCaller.at(-1) ?? '', 'Record-Route')).toBe(route);
      bench.fromApp(`b|sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
      await bench.settle();
      const bye = bench.toCaller.at(-1) ?? '';
      expect(bye).toMatch(new RegExp(`^BYE ${uri.replace(/[.?]/g, '\\$&')} SIP/2\\.0\r\n`));
      expect([...bye.matchAll(/^Route: (.*)\r$/gm)].map((match) => match[1])).toEqual(routes);
    }
  });
});

describe('session timers', () => {
  const settled = async (value: string): Promise<string> => {
    const id = await offered();
    await respond(id, '200 OK', `Session-Expires: ${value}\r\nContact: <sip:us@server;transport=tls>\r\n`, SDP);
    const to = headerOf(bench.toCaller.at(-1) ?? '', 'To');
    bench.fromCaller(request('ACK', { to }));
    await bench.settle();
    bench.toCaller.length = 0;
    return to;
  };
  /** The caller's answer to the newest request of ours. */
  const answerLast = async (status: string, extra = ''): Promise<void> => {
    const sent = bench.toCaller.at(-1) ?? '';
    const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(sent, name)}\r\n`).join('');
    bench.fromCaller(`SIP/2.0 ${status}\r\n${copied}${extra}Contact: <sip:a@caller:6000;transport=tls>\r\nContent-Length: 0\r\n\r\n`);
    await bench.settle();
  };

  it('[4028 §10] refreshes at half the interval with the last SDP and Contact, acknowledges, and goes on', async () => {
    await settled('1800;refresher=uas');
    const frames = bench.toApp.length;
    await bench.pass(899_000);
    expect(bench.toCaller).toEqual([]);
    await bench.pass(1_001);
    const refresh = bench.toCaller.at(-1) ?? '';
    expect(refresh).toMatch(/^INVITE /);
    expect(headerOf(refresh, 'Session-Expires')).toBe('1800;refresher=uac');
    expect(headerOf(refresh, 'Contact')).toBe('<sip:us@server;transport=tls>');
    expect(refresh.endsWith(SDP)).toBe(true);
    await answerLast('200 OK', 'Session-Expires: 1800;refresher=uac\r\n');
    expect(statuses().at(-1)).toMatch(/^ACK /);
    await bench.pass(900_001);
    expect(statuses().at(-1)).toMatch(/^INVITE /);
    // The application knows nothing of it.
    expect(bench.toApp).toHaveLength(frames);
  });

  it('[4028 §10] ends the call when the peer does not refresh, a little before the interval is over', async () => {
    await settled('90;refresher=uac');
    await bench.pass(59_000);
    expect(bench.toCaller).toEqual([]);
    await bench.pass(1_001);
    expect(headerOf(bench.toCaller.at(-1) ?? '', 'Reason')).toBe('SIP;cause=200;text="Session timer expired"');
    expect(bench.toApp.at(-1)).toContain('|unsolicited|');
    expect(bench.left.calls).toBe(0);
  });

  it('[4028 §10] starts anew at each refresh of the peer', async () => {
    const to = await settled('90;refresher=uac');
    await bench.pass(50_000);
    await fromCaller('UPDATE', { to, cseq: 2 });
    await respond(transactionId(), '200 OK', 'Session-Expires: 90;refresher=uac\r\n');
    await bench.pass(50_000);
    expect(bench.left.calls).toBe(1);
    await bench.pass(10_001);
    expect(bench.left.calls).toBe(0);
  });

  it('[4028 §10] ends the call when the peer does not know it any more, and tries again after glare', async () => {
    await settled('90;refresher=uas');
    await bench.pass(45_001);
    await answerLast('491 Request Pending');
    await bench.pass(2_001);
    expect(statuses().filter((line) => line.startsWith('INVITE '))).toHaveLength(2);
    await answerLast('481 Call/Transaction Does Not Exist');
    expect(statuses().at(-1)).toMatch(/^BYE /);
    expect(bench.left.calls).toBe(0);
  });

  it('[4028 §9] holds nobody to a refresh that nobody has promised', async () => {
    await settled('90');
    await bench.pass(200_000);
    expect(bench.left.calls).toBe(1);
  });
});

describe('applications that fail', () => {
  it('answers 500 for one that stays silent, before the caller gives up', async () => {
    await offered();
    await bench.pass(20_000);
    expect(statuses().at(-1)).toBe('SIP/2.0 500 Server Internal Error');
    expect(bench.left.pending).toBe(0);
  });

  it('gives one that has answered provisionally all the time it wants', async () => {
    await respond(await offered(), '180 Ringing');
    await bench.pass(120_000);
    expect(statuses().at(-1)).toBe('SIP/2.0 180 Ringing');
  });

  it('answers 503 to the INVITEs of one that is gone, and ends its calls with BYE', async () => {
    await connected();
    bench.fromCaller(invite({ branch: 'z9hG4bKsecond', cseq: 7 }).replaceAll('call1', 'call2'));
    await bench.settle();
    bench.dropApp();
    await bench.settle();
    expect(statuses()).toContain('SIP/2.0 503 Service Unavailable');
    expect(statuses().some((line) => line.startsWith('BYE '))).toBe(true);
    expect(bench.left).toMatchObject({ pending: 0, calls: 0 });
  });

  it('answers 503 with Retry-After to INVITEs that all have withdrawn from, whatever else they still serve', async () => {
    bench.fromApp('o|route|register');
    bench.fromApp('w|remove_route|invite');
    await bench.settle();
    bench.fromCaller(invite());
    await bench.settle();
    expect(statuses().at(-1)).toBe('SIP/2.0 503 Service Unavailable');
    expect(Number(headerOf(bench.toCaller.at(-1) ?? '', 'Retry-After'))).toBeGreaterThan(0);
  });

  it('sends no second BYE for an application that goes while its own is under way', async () => {
    await connected();
    bench.fromApp(`b|sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
    await bench.settle();
    bench.dropApp();
    await bench.settle();
    expect(statuses().filter((line) => line.startsWith('BYE '))).toHaveLength(1);
  });

  it('answers 503 when nobody has asked for INVITE', async () => {
    bench = new Bench('TLS', 6_000);
    bench.fromCaller(invite());
    await bench.settle();
    expect(statuses()).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 503 Service Unavailable']);
  });
});
