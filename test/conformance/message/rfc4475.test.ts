import { describe, expect, it } from 'vitest';
import { deliver, messageNames, readMessage, served, valuesOf } from '../../support/wire.js';
import { answered, answeredAndClosed, checkAnswer, torture, tortureOf } from './torture.js';

// RFC 4475, every message of it, to the SIP server alone: what it forwards, its application judges (the gateway's answers are named).
// A row: what the RFC says, then what comes of it in a datagram and, where it differs, over a connection.
const { row, names } = tortureOf('rfc4475');
const read = (name: string): string => readMessage('rfc4475', name);

describe('RFC 4475 §3.1.1, valid messages', () => {
  // It has a To-tag, so that it belongs to a dialog that is not there.
  it(
    '[4475 §3.1.1.1] wsinv: folds, white space, compact forms: well-formed; in a dialog that is not there: 481',
    row('wsinv', answered('481 Call/Transaction Does Not Exist')),
  );
  it(
    '[4475 §3.1.1.1] wsinv without its To-tag: forwarded',
    torture(() => read('wsinv').replace(' ;   tag    = 1918181833n', ''), 'forwarded'),
  );
  it(
    '[4475 §3.1.1.2] intmeth: every legal character, NUL in a quoted pair: an unknown method, 501',
    row('intmeth', answered('501 Not Implemented')),
  );
  it('[4475 §3.1.1.3] esc01: escaped characters in URIs: forwarded', row('esc01', 'forwarded'));
  it('[4475 §3.1.1.4] escnull: escaped NULs in URIs: forwarded', row('escnull', 'forwarded'));
  it(
    '[4475 §3.1.1.5] esc02: % outside of URIs escapes nothing: not REGISTER but an unknown method, 501',
    row('esc02', answered('501 Not Implemented')),
  );
  it('[4475 §3.1.1.6] lwsdisp: no white space between display name and <: forwarded', row('lwsdisp', 'forwarded'));
  it('[4475 §3.1.1.7] longreq: long values, 34 Vias in every spelling: forwarded', row('longreq', 'forwarded'));
  it('[4475 §3.1.1.8] dblreq: what follows a datagram’s body is dropped; over a connection it is the next message', async () => {
    names.push('dblreq');
    const text = read('dblreq');
    const inDatagram = await deliver(await served('datagram'), text, 'datagram');
    expect(inDatagram.forwarded.map((message) => message.split(' ')[0])).toEqual(['REGISTER']);
    expect(inDatagram.answers).toHaveLength(1);
    checkAnswer(text, inDatagram.answers[0]!);
    const overStream = await deliver(await served('stream'), text, 'stream');
    expect(overStream.forwarded.map((message) => message.split(' ')[0])).toEqual(['REGISTER', 'INVITE', 'CANCEL']);
    expect(overStream.forwarded[1]).toMatch(/a=rtpmap:31 LP$/);
    // The second message is longer than it says: what is left of it is no message, and the call ends with the connection.
    expect(overStream.isConnected).toBe(false);
  });
  it('[4475 §3.1.1.9] semiuri: a semicolon and an escaped @ in the user part: forwarded', row('semiuri', 'forwarded'));
  it('[4475 §3.1.1.10] transports: every transport in Via, an unknown one too: forwarded', row('transports', 'forwarded'));
  it('[4475 §3.1.1.11] mpart01: a multipart body with binary bytes: forwarded', row('mpart01', 'forwarded'));
  it('[4475 §3.1.1.12] unreason: a response to nothing of ours: dropped', row('unreason', 'dropped'));
  it('[4475 §3.1.1.12] unreason as an answer: the application gets the reason phrase byte by byte', async () => {
    expect(await asAnswer('unreason')).toMatch(/^SIP\/2\.0 200 = 2\*\*3 \* 5\*\*2 (?:[\x80-\xff]+ )+- [\x80-\xff]+\r\n/);
  });
  it('[4475 §3.1.1.13] noreason: a response to nothing of ours: dropped', row('noreason', 'dropped'));
  it('[4475 §3.1.1.13] noreason, made 180, as an answer: an empty reason phrase', async () => {
    expect(await asAnswer('noreason', (text) => text.replace('SIP/2.0 100 ', 'SIP/2.0 180 '))).toMatch(/^SIP\/2\.0 180 \r\n/);
  });
});

describe('RFC 4475 §3.1.2, invalid messages', () => {
  it('[4475 §3.1.2.1] badinv01: semicolons and commas with nothing between: 400', row('badinv01', answered('400 Bad Via Header')));
  it(
    '[4475 §3.1.2.2] clerr: Content-Length beyond the datagram: 400; a connection waits for the rest',
    row('clerr', answered('400 Bad Content-Length'), 'waits'),
  );
  it(
    '[4475 §3.1.2.3] ncl: a negative Content-Length: 400, and the connection is closed',
    row('ncl', answered('400 Bad Content-Length'), answeredAndClosed('400 Bad Content-Length')),
  );
  it('[4475 §3.1.2.4] scalar02: numbers out of range in a request: 400', row('scalar02', answered('400 Bad Max-Forwards Header')));
  it('[4475 §3.1.2.5] scalarlg: numbers out of range in a response: dropped', row('scalarlg', 'dropped'));
  it('[4475 §3.1.2.6] quotbal: a quoted string without end: 400', row('quotbal', answered('400 Bad To Header')));
  it('[4475 §3.1.2.7] ltgtruri: <> around the Request-URI: 400', row('ltgtruri', answered('400 Bad Request-URI')));
  it('[4475 §3.1.2.8] lwsruri: white space in the Request-URI: 400', row('lwsruri', answered('400 Bad Request-Line')));
  it('[4475 §3.1.2.9] lwsstart: two spaces in the Request-Line: 400', row('lwsstart', answered('400 Bad Request-Line')));
  it('[4475 §3.1.2.10] trws: spaces after the version: 400', row('trws', answered('400 Bad Request-Line')));
  it('[4475 §3.1.2.11] escruri: headers in the Request-URI: 400', row('escruri', answered('400 Bad Request-URI')));
  // The RFC leaves 400 or ignoring it to the receiver. Nothing here reads Date.
  it('[4475 §3.1.2.12] baddate: a Date that is not GMT: forwarded', row('baddate', 'forwarded'));
  // 400 is for the registrar, which is an application. The gateway is none: it answers 405.
  it('[4475 §3.1.2.13] regbadct: a Contact with URI headers and without <>: forwarded', row('regbadct', 'forwarded'));
  // The RFC allows 400 and allows to be liberal; nothing is ambiguous in these two.
  it('[4475 §3.1.2.14] badaspec: white space inside of <>: forwarded', row('badaspec', 'forwarded'));
  it('[4475 §3.1.2.15] baddn: a display name that needs quotes and has none: forwarded', row('baddn', 'forwarded'));
  it('[4475 §3.1.2.16] badvers: SIP/7.0: 505', row('badvers', answered('505 Version Not Supported')));
  it('[4475 §3.1.2.17] mismatch01: the method of CSeq is another: 400', row('mismatch01', answered('400 CSeq Method Mismatch')));
  it('[4475 §3.1.2.18] mismatch02: the same with an unknown method: 400', row('mismatch02', answered('400 CSeq Method Mismatch')));
  it('[4475 §3.1.2.19] bigcode: a status code beyond 699: dropped', row('bigcode', 'dropped'));
});

describe('RFC 4475 §3.2, the transaction layer', () => {
  it('[4475 §3.2.1] badbranch: the magic cookie alone: forwarded', row('badbranch', 'forwarded'));
  it('[4475 §3.2.1] badbranch: it identifies nothing: a repetition is one, another Call-ID is another request', async () => {
    const bench = await served('datagram');
    const text = read('badbranch');
    for (const sent of [text, text, text.replace('Call-ID: ', 'Call-ID: another')]) bench.fromCaller(sent);
    await bench.settle();
    expect(bench.toApp).toHaveLength(2);
  });
});

describe('RFC 4475 §3.3, the application layer', () => {
  it('[4475 §3.3.1] insuf: no Call-ID, From and To: 400', row('insuf', answered('400 Missing Call-ID Header')));
  it('[4475 §3.3.2] unkscm: an unknown URI scheme: 416', row('unkscm', answered('416 Unsupported URI Scheme')));
  it('[4475 §3.3.3] novelsc: a known URI scheme that is not SIP: 416', row('novelsc', answered('416 Unsupported URI Scheme')));
  it('[4475 §3.3.4] unksm2: unknown schemes in To, From and Contact: forwarded', row('unksm2', 'forwarded'));
  // Which extensions there are, the application knows: the gateway answers 420 with Unsupported.
  it('[4475 §3.3.5] bext01: unknown extensions in Require: forwarded', row('bext01', 'forwarded'));
  // The gateway answers 415 with Accept.
  it('[4475 §3.3.6] invut: an unknown body type: forwarded', row('invut', 'forwarded'));
  it('[4475 §3.3.7] regaut01: an unknown authorization scheme: forwarded', row('regaut01', 'forwarded'));
  it('[4475 §3.3.8] multi01: several values of headers that have one: 400', row('multi01', answered('400 Multiple cseq Headers')));
  it(
    '[4475 §3.3.9] mcl01: two Content-Lengths: 400, and the connection is closed',
    row('mcl01', answered('400 Multiple content-length Headers'), answeredAndClosed('400 Bad Content-Length')),
  );
  it('[4475 §3.3.10] bcast: a response with a second Via, of the broadcast address: dropped', row('bcast', 'dropped'));
  it('[4475 §3.3.11] zeromf: Max-Forwards 0 is no matter at the end of the way: forwarded', row('zeromf', 'forwarded'));
  it('[4475 §3.3.12] cparam01: a Contact parameter without <>: forwarded', row('cparam01', 'forwarded'));
  it('[4475 §3.3.13] cparam02: the same with <>: forwarded', row('cparam02', 'forwarded'));
  it('[4475 §3.3.14] regescrt: URI headers in a Contact with <>: forwarded', row('regescrt', 'forwarded'));
  it('[4475 §3.3.15] sdp01: an Accept without application/sdp: forwarded', row('sdp01', 'forwarded'));
});

describe('RFC 4475 §3.4, backward compatibility', () => {
  // A connection needs a Content-Length (RFC 3261 §18.3), which RFC 2543 did not demand.
  it(
    '[4475 §3.4.1] inv2543: no branch, no From-tag, no Content-Length: forwarded',
    row('inv2543', 'forwarded', answeredAndClosed('400 Missing Content-Length')),
  );
});

describe('the table', () => {
  it('has a row for every message', () => {
    expect([...new Set(names)].sort()).toEqual(messageNames('rfc4475').sort());
    expect(names).toHaveLength(49);
  });
});

/** Sends an INVITE and answers it with the message under the INVITE's own headers; returns what the application gets. */
async function asAnswer(name: string, change = (text: string): string => text): Promise<string> {
  const bench = await served('datagram');
  bench.fromApp(
    'i|sip|||\r\nINVITE sip:b@192.0.2.1:6000 SIP/2.0\r\nFrom: <sip:a@localhost>\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n',
  );
  await bench.settle();
  const invite = bench.toCaller.at(-1) ?? '';
  const own = (header: string): string => valuesOf(invite, header)[0] ?? '';
  bench.fromCaller(
    change(read(name))
      .replace(/^Via: .*$/m, () => `Via: ${own('via')}`)
      .replace(/^Call-ID: .*$/m, () => `Call-ID: ${own('call-id')}`)
      .replace(/^CSeq: .*$/m, () => `CSeq: ${own('cseq')}`)
      .replace(/^From: .*$/m, () => `From: ${own('from')}`),
  );
  await bench.settle();
  const payload = bench.toApp.at(-1) ?? '';
  return payload.slice(payload.indexOf('\r\n') + 2);
}
