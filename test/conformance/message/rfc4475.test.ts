import { describe, expect, it } from 'vitest';
import { deliver, messageNames, readMessage, served, valuesOf } from '../../support/wire.js';
import { answered, answeredAndClosed, checkAnswer, torture, tortureOf } from './torture.js';

// RFC 4475, every message of it, to the SIP server alone: what it forwards, its application judges (the gateway's answers are named).
// A row: what the RFC says, then what comes of it in a datagram and, where it differs, over a connection.
const { row, names } = tortureOf('rfc4475');
const read = (name: string): string => readMessage('rfc4475', name);

describe('the SIP server, given a valid message of RFC 4475 §3.1.1,', () => {
  // It has a To-tag, so that it belongs to a dialog that is not there.
  it(
    '[4475 §3.1.1.1] answers 481 to wsinv, which is well-formed and of an unknown dialog: folds, white space, compact forms',
    row('wsinv', answered('481 Call/Transaction Does Not Exist')),
  );
  it(
    '[4475 §3.1.1.1] forwards wsinv without its To-tag',
    torture(() => read('wsinv').replace(' ;   tag    = 1918181833n', ''), 'forwarded'),
  );
  it(
    '[4475 §3.1.1.2] answers 501 to intmeth, whose method is unknown: every legal character, NUL in a quoted pair',
    row('intmeth', answered('501 Not Implemented')),
  );
  it('[4475 §3.1.1.3] forwards esc01: escaped characters in URIs', row('esc01', 'forwarded'));
  it('[4475 §3.1.1.4] forwards escnull: escaped NULs in URIs', row('escnull', 'forwarded'));
  it(
    '[4475 §3.1.1.5] answers 501 to esc02, whose method is unknown and not REGISTER: % outside of URIs escapes nothing',
    row('esc02', answered('501 Not Implemented')),
  );
  it('[4475 §3.1.1.6] forwards lwsdisp: no white space between display name and <', row('lwsdisp', 'forwarded'));
  it('[4475 §3.1.1.7] forwards longreq: long values, 34 Vias in every spelling', row('longreq', 'forwarded'));
  it('[4475 §3.1.1.8] drops what follows the body of dblreq in a datagram, and takes it for the next message over a connection', async () => {
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
  it('[4475 §3.1.1.9] forwards semiuri: a semicolon and an escaped @ in the user part', row('semiuri', 'forwarded'));
  it('[4475 §3.1.1.10] forwards transports: every transport in Via, an unknown one too', row('transports', 'forwarded'));
  it('[4475 §3.1.1.11] forwards mpart01: a multipart body with binary bytes', row('mpart01', 'forwarded'));
  it('[4475 §3.1.1.12] drops unreason: a response to no request of ours', row('unreason', 'dropped'));
  it('[4475 §3.1.1.12] gives the application the reason phrase of unreason, sent as an answer, byte by byte', async () => {
    expect(await asAnswer('unreason')).toMatch(/^SIP\/2\.0 200 = 2\*\*3 \* 5\*\*2 (?:[\x80-\xff]+ )+- [\x80-\xff]+\r\n/);
  });
  it('[4475 §3.1.1.13] drops noreason: a response to no request of ours', row('noreason', 'dropped'));
  it('[4475 §3.1.1.13] gives the application the empty reason phrase of noreason, made 180 and sent as an answer', async () => {
    expect(await asAnswer('noreason', (text) => text.replace('SIP/2.0 100 ', 'SIP/2.0 180 '))).toMatch(/^SIP\/2\.0 180 \r\n/);
  });
});

describe('the SIP server, given an invalid message of RFC 4475 §3.1.2,', () => {
  it(
    '[4475 §3.1.2.1] answers 400 to badinv01: semicolons and commas with nothing between',
    row('badinv01', answered('400 Bad Via Header')),
  );
  it(
    '[4475 §3.1.2.2] answers 400 to clerr in a datagram, and waits for the rest over a connection: Content-Length beyond the datagram',
    row('clerr', answered('400 Bad Content-Length'), 'waits'),
  );
  it(
    '[4475 §3.1.2.3] answers 400 to ncl and closes the connection: a negative Content-Length',
    row('ncl', answered('400 Bad Content-Length'), answeredAndClosed('400 Bad Content-Length')),
  );
  it(
    '[4475 §3.1.2.4] answers 400 to scalar02: numbers out of range in a request',
    row('scalar02', answered('400 Bad Max-Forwards Header')),
  );
  it('[4475 §3.1.2.5] drops scalarlg: numbers out of range in a response', row('scalarlg', 'dropped'));
  it('[4475 §3.1.2.6] answers 400 to quotbal: a quoted string without end', row('quotbal', answered('400 Bad To Header')));
  it('[4475 §3.1.2.7] answers 400 to ltgtruri: <> around the Request-URI', row('ltgtruri', answered('400 Bad Request-URI')));
  it('[4475 §3.1.2.8] answers 400 to lwsruri: white space in the Request-URI', row('lwsruri', answered('400 Bad Request-Line')));
  it('[4475 §3.1.2.9] answers 400 to lwsstart: two spaces in the Request-Line', row('lwsstart', answered('400 Bad Request-Line')));
  it('[4475 §3.1.2.10] answers 400 to trws: spaces after the version', row('trws', answered('400 Bad Request-Line')));
  it('[4475 §3.1.2.11] answers 400 to escruri: headers in the Request-URI', row('escruri', answered('400 Bad Request-URI')));
  // The RFC leaves 400 or ignoring it to the receiver. Nothing here reads Date.
  it('[4475 §3.1.2.12] forwards baddate: a Date that is not GMT', row('baddate', 'forwarded'));
  // 400 is for the registrar, which is an application. The gateway is none: it answers 405.
  it('[4475 §3.1.2.13] forwards regbadct: a Contact with URI headers and without <>', row('regbadct', 'forwarded'));
  // The RFC allows 400 and allows to be liberal; nothing is ambiguous in these two.
  it('[4475 §3.1.2.14] forwards badaspec: white space inside of <>', row('badaspec', 'forwarded'));
  it('[4475 §3.1.2.15] forwards baddn: a display name that needs quotes and has none', row('baddn', 'forwarded'));
  it('[4475 §3.1.2.16] answers 505 to badvers: SIP/7.0', row('badvers', answered('505 Version Not Supported')));
  it('[4475 §3.1.2.17] answers 400 to mismatch01: the method of CSeq is another', row('mismatch01', answered('400 CSeq Method Mismatch')));
  it(
    '[4475 §3.1.2.18] answers 400 to mismatch02: an unknown method, and the method of CSeq is another',
    row('mismatch02', answered('400 CSeq Method Mismatch')),
  );
  it('[4475 §3.1.2.19] drops bigcode: a status code beyond 699', row('bigcode', 'dropped'));
});

describe('the SIP server, given a message of RFC 4475 §3.2 for the transaction layer,', () => {
  it('[4475 §3.2.1] forwards badbranch: the magic cookie alone', row('badbranch', 'forwarded'));
  it('[4475 §3.2.1] takes badbranch again for a repetition, and badbranch with another Call-ID for another request', async () => {
    const bench = await served('datagram');
    const text = read('badbranch');
    for (const sent of [text, text, text.replace('Call-ID: ', 'Call-ID: another')]) bench.fromCaller(sent);
    await bench.settle();
    expect(bench.toApp).toHaveLength(2);
  });
});

describe('the SIP server, given a message of RFC 4475 §3.3 for the application layer,', () => {
  it('[4475 §3.3.1] answers 400 to insuf: no Call-ID, From and To', row('insuf', answered('400 Missing Call-ID Header')));
  it('[4475 §3.3.2] answers 416 to unkscm: an unknown URI scheme', row('unkscm', answered('416 Unsupported URI Scheme')));
  it('[4475 §3.3.3] answers 416 to novelsc: a known URI scheme that is not SIP', row('novelsc', answered('416 Unsupported URI Scheme')));
  it('[4475 §3.3.4] forwards unksm2: unknown schemes in To, From and Contact', row('unksm2', 'forwarded'));
  // Which extensions there are, the application knows: the gateway answers 420 with Unsupported.
  it('[4475 §3.3.5] forwards bext01: unknown extensions in Require', row('bext01', 'forwarded'));
  // The gateway answers 415 with Accept.
  it('[4475 §3.3.6] forwards invut: an unknown body type', row('invut', 'forwarded'));
  it('[4475 §3.3.7] forwards regaut01: an unknown authorization scheme', row('regaut01', 'forwarded'));
  it(
    '[4475 §3.3.8] answers 400 to multi01: several values of headers that have one',
    row('multi01', answered('400 Multiple cseq Headers')),
  );
  it(
    '[4475 §3.3.9] answers 400 to mcl01 and closes the connection: two Content-Lengths',
    row('mcl01', answered('400 Multiple content-length Headers'), answeredAndClosed('400 Bad Content-Length')),
  );
  it('[4475 §3.3.10] drops bcast: a response with a second Via, of the broadcast address', row('bcast', 'dropped'));
  it('[4475 §3.3.11] forwards zeromf: Max-Forwards 0, which does not matter at the last hop', row('zeromf', 'forwarded'));
  it('[4475 §3.3.12] forwards cparam01: a Contact parameter without <>', row('cparam01', 'forwarded'));
  it('[4475 §3.3.13] forwards cparam02: a Contact parameter with <>', row('cparam02', 'forwarded'));
  it('[4475 §3.3.14] forwards regescrt: URI headers in a Contact with <>', row('regescrt', 'forwarded'));
  it('[4475 §3.3.15] forwards sdp01: an Accept without application/sdp', row('sdp01', 'forwarded'));
});

describe('the SIP server, given the message of RFC 4475 §3.4 for backward compatibility,', () => {
  // A connection needs a Content-Length (RFC 3261 §18.3), which RFC 2543 did not demand.
  it(
    '[4475 §3.4.1] forwards inv2543 in a datagram, and answers 400 to it over a connection: no branch, no From-tag, no Content-Length',
    row('inv2543', 'forwarded', answeredAndClosed('400 Missing Content-Length')),
  );
});

describe('the table of RFC 4475', () => {
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
