import { describe, expect, it } from 'vitest';
import { flatten, parseFast } from '../../../../src/sip/message/fast-path-parser.js';
import { changed, getHeader, getHeaders, serialize } from '../../../../src/sip/message/message.js';
import { isQuick, LIMITS, PEER, PEERS, PLAIN, RECEPTION, RESPONSE, text } from '../../../support/two-readers.js';

/** The lines with each that begins like one of `others` replaced by it; one that begins like none is added. */
function having(lines: readonly string[], ...others: readonly string[]): string {
  const all = [...lines];
  for (const line of others) {
    const name = line.slice(0, line.indexOf(':') + 1);
    const at = all.findIndex((candidate) => candidate.startsWith(name));
    if (at < 0) all.push(line);
    else all[at] = line;
  }
  return text(all);
}

const invite = (...others: readonly string[]): string => having(PLAIN, ...others);
const response = (...others: readonly string[]): string => having(RESPONSE, ...others);
const requestLine = (line: string, method = 'INVITE'): string => text([line, ...PLAIN.slice(1)]).replace('1 INVITE', `1 ${method}`);
const statusLine = (line: string): string => text([line, ...RESPONSE.slice(1)]);
const without = (name: string): string => text(PLAIN.filter((line) => !line.startsWith(`${name}:`)));
const headersInAll = (count: number): string =>
  text([...PLAIN, ...Array.from({ length: count - PLAIN.length + 1 }, (_, n) => `X-${String(n)}: y`)]);
const withBody = (size: number): string => invite(`Content-Length: ${String(size)}`).slice(0, -5) + 'b'.repeat(size);
const ofLength = (length: number): string => `X-Long: ${'y'.repeat(length - 8)}`;

const QUICK: readonly (readonly [string, string])[] = [
  ['an INVITE', text(PLAIN)],
  ['a response', text(RESPONSE)],
  ['a URI without a user', requestLine('INVITE sip:gw.example SIP/2.0')],
  ['a SIPS URI', requestLine('INVITE sips:a@gw.example SIP/2.0')],
  ['an address and the greatest port', requestLine('INVITE sip:a@192.0.2.1:65535 SIP/2.0')],
  ['a port above 60000', requestLine('BYE sip:192.0.2.1:61013;transport=tls SIP/2.0', 'BYE')],
  ['a sent-by with a port above 60000', invite('Via: SIP/2.0/TLS 192.0.2.1:60999;branch=z9hG4bKabc')],
  ['a port of one digit', requestLine('INVITE sip:a@gw.example:5 SIP/2.0')],
  ['a parameter without a value', requestLine('INVITE sip:a@gw.example;lr;transport=tcp SIP/2.0')],
  ['a user of 200 characters', requestLine(`INVITE sip:${'a'.repeat(200)}@gw.example SIP/2.0`)],
  ['a user with all that it may have', requestLine("INVITE sip:a.!~*'()&=+$,;/%-_@gw.example SIP/2.0")],
  ['an OPTIONS', requestLine('OPTIONS sip:gw.example SIP/2.0', 'OPTIONS')],
  ['a method of 32 letters', requestLine(`${'M'.repeat(32)} sip:gw.example SIP/2.0`, 'M'.repeat(32))],
  ['a status of 6xx', statusLine('SIP/2.0 603 Decline')],
  ['no reason phrase', statusLine('SIP/2.0 180 ')],
  ['UDP without a port', invite('Via: SIP/2.0/UDP carrier.example;branch=z9hG4bKabc')],
  ['TCP with parameters in another order', invite('Via: SIP/2.0/TCP carrier-1.example:5060;rport;branch=z9hG4bKabc;alias')],
  ['a branch between others', invite('Via: SIP/2.0/TLS 192.0.2.1;alias;branch=z9hG4bKabc;keep')],
  ['no branch', invite('Via: SIP/2.0/TLS 192.0.2.1:5061')],
  ['a second branch', invite('Via: SIP/2.0/TLS 192.0.2.1;branch=z9hG4bKa;xbranch=z9hG4bKb')],
  ['`received` of someone else', invite('Via: SIP/2.0/TLS 192.0.2.1;branch=z9hG4bKabc;received=203.0.113.1;rport')],
  ['two lines of Via', text([...PLAIN.slice(0, 2), 'Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKfar', ...PLAIN.slice(2)])],
  ['a name without quotes', invite('From: The Caller <sip:a@carrier.example>;tag=from1')],
  ['an empty name', invite('From: "" <sip:a@carrier.example>;tag=from1')],
  ['no name', invite('From: <sip:a@carrier.example>')],
  ['a To with a tag', invite('To: "Us" <sip:+15550100100@gw.example>;tag=to-1.!%*+`\'~')],
  ['spaces and tabs around values', invite('Call-ID: \t abc.1@carrier.example \t', 'CSeq:1 INVITE', 'X-Other:\t value ')],
  ['a tab in CSeq', invite('CSeq: 2147483647\tINVITE')],
  ['no Max-Forwards', without('Max-Forwards')],
  ['the greatest Max-Forwards', invite('Max-Forwards: 255')],
  ['an empty value', invite('X-Other:')],
  ['every header that it knows', invite(...['Route: <sip:p.example;lr>', 'Require: 100rel', 'Session-Expires: 90;refresher=uac'])],
  ['more of them', invite('Subscription-State: active', 'RAck: 1 1 INVITE', 'RSeq: 2', 'Expires: 60', 'Timestamp: 7.1')],
  ['no body', withBody(0)],
  ['a Via behind other headers', text([PLAIN[0]!, ...PLAIN.slice(2), PLAIN[1]!])],
  ['blanks in place of a value', invite('X-Other: \t ', 'Route: \t ')],
  ['a colon at the front of the body', text(PLAIN).replace('v=0\r\n', ':v=0\n')],
  ['the greatest body', withBody(LIMITS.maxBodyBytes)],
  ['a NUL in the body', text(PLAIN).replace('v=0\r\n', 'v=0\0\n')],
  ['a NUL at the front of the body', text(PLAIN).replace('v=0\r\n', '\0v=0\n')],
  ['as many headers as may be', headersInAll(LIMITS.maxHeaders)],
  ['a line as long as may be', invite(ofLength(LIMITS.maxHeaderBytes))],
];

const WHOLE: readonly (readonly [string, string])[] = [
  ['nothing', ''],
  ['no line end', 'OPTIONS sip:gw.example SIP/2.0'],
  ['no end of the headers', text(PLAIN).slice(0, -9)],
  ['another version', requestLine('INVITE sip:gw.example SIP/3.0')],
  ['[3261 §7.1] the version in lower case', requestLine('INVITE sip:gw.example sip/2.0')],
  ['a method of 33 letters', requestLine(`${'M'.repeat(33)} sip:gw.example SIP/2.0`, 'M'.repeat(33))],
  ['a second space', requestLine('INVITE  sip:gw.example SIP/2.0')],
  ['a space at the front', requestLine(' INVITE sip:gw.example SIP/2.0')],
  ['tel:', requestLine('INVITE tel:+15550100100 SIP/2.0')],
  ['a user of 201 characters', requestLine(`INVITE sip:${'a'.repeat(201)}@gw.example SIP/2.0`)],
  ['port 0', requestLine('INVITE sip:gw.example:0 SIP/2.0')],
  ['port 65536', requestLine('INVITE sip:gw.example:65536 SIP/2.0')],
  ['IPv6', requestLine('INVITE sip:[2001:db8::1] SIP/2.0')],
  ['two dots in a name', requestLine('INVITE sip:gw..example SIP/2.0')],
  ['headers in the URI', requestLine('INVITE sip:gw.example?Replaces=1 SIP/2.0')],
  ['an empty parameter', requestLine('INVITE sip:gw.example;;lr SIP/2.0')],
  ['a status of 7xx', statusLine('SIP/2.0 700 What')],
  ['a status of 0xx', statusLine('SIP/2.0 099 What')],
  ['a status of four digits', statusLine('SIP/2.0 2000 What')],
  ['a status without a space after it', statusLine('SIP/2.0 200')],
  ['a status line that begins with more', statusLine('X SIP/2.0 200 OK')],
  ['SCTP', invite('Via: SIP/2.0/SCTP 192.0.2.1;branch=z9hG4bKabc')],
  ['TLS in lower case', invite('Via: SIP/2.0/tls 192.0.2.1;branch=z9hG4bKabc')],
  ['spaces in Via', invite('Via: SIP / 2.0 / TLS 192.0.2.1;branch=z9hG4bKabc')],
  ['two values in one Via', invite('Via: SIP/2.0/TLS 192.0.2.1;branch=z9hG4bKabc, SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKfar')],
  ['no Via', without('Via')],
  ['no Via in a response', text(RESPONSE.filter((line) => !line.startsWith('Via:')))],
  ['no From', without('From')],
  ['no To', without('To')],
  ['no Call-ID', without('Call-ID')],
  ['no CSeq', without('CSeq')],
  ['no Content-Length', without('Content-Length')],
  ['From without brackets', invite('From: sip:a@carrier.example;tag=from1')],
  ['From with more than a tag', invite('From: <sip:a@carrier.example>;tag=from1;x=y')],
  ['From with a quote in the name', invite('From: "A \\"B\\"" <sip:a@carrier.example>;tag=from1')],
  ['To without brackets', invite('To: sip:a@carrier.example')],
  ['To with an empty tag', invite('To: <sip:a@carrier.example>;tag=')],
  ['a Call-ID with a bar', invite('Call-ID: abc|1@carrier.example')],
  ['an empty Call-ID', invite('Call-ID:')],
  ['[3261 §8.1.1.5] CSeq 2^31', invite('CSeq: 2147483648 INVITE')],
  ['CSeq of another method', invite('CSeq: 1 OPTIONS')],
  ['[3261 §20.22] Max-Forwards 256', invite('Max-Forwards: 256')],
  ...['Call-ID: abc.1@carrier.example', 'CSeq: 1 INVITE', 'From: <sip:a@b>', 'To: <sip:a@b>', 'Max-Forwards: 70', 'Content-Length: 5'].map(
    (line) => [`[4475 §3.3.8] two of ${line}`, text([...PLAIN, line])] as const,
  ),
  ['a compact form', invite().replace('Contact:', 'm:')],
  ['a header in lower case', invite().replace('Contact:', 'contact:')],
  ['a folded line', invite().replace('X-Other: value', 'X-Other: value\r\n more')],
  ['a line without a colon', invite().replace('X-Other: value', 'X-Other')],
  ['a header name with a space', invite().replace('X-Other:', 'X Other:')],
  ['a header that only the gateway may set', text([...PLAIN, 'X-Own: forged'])],
  ['a line without a colon at the end', text([...PLAIN, 'X-Other'])],
  ['a line without a name', invite().replace('X-Other:', ':')],
  ['one character in place of the empty line', text(PLAIN).replace('\r\n\r\nv=0', '\r\nv\nv=0')],
  ['a bare line feed', invite().replace('X-Other: value', 'X-Other: val\nue')],
  ['a bare carriage return', invite().replace('X-Other: value', 'X-Other: val\rue')],
  ['a NUL in a header', invite('X-Other: val\0ue')],
  ['a body that is shorter than it says', invite('Content-Length: 6')],
  ['a body that is longer than it says', invite('Content-Length: 4')],
  ['a length with a zero before it', invite('Content-Length: 05')],
  ['one byte of body too many', withBody(LIMITS.maxBodyBytes + 1)],
  ['one header too many', headersInAll(LIMITS.maxHeaders + 1)],
  ['one byte too many in a line', invite(ofLength(LIMITS.maxHeaderBytes + 1))],
];

describe('the fast parser', () => {
  it.each(QUICK)('accepts %s, and returns what the full parser does', (_what, whole) => {
    for (const peer of PEERS) expect(isQuick(whole, peer)).toBe(true);
  });

  it.each(WHOLE)('leaves %s to the full parser', (_what, whole) => {
    expect(parseFast(whole, PEER, RECEPTION)).toBeUndefined();
  });

  it('[3581 §4] adds our headers at the end, and keeps the others in place', () => {
    const { message } = parseFast(text(PLAIN), PEER, RECEPTION) ?? expect.unreachable();
    const via = 'Via: SIP/2.0/TLS 192.0.2.1:5061;branch=z9hG4bKabc;rport=40000;received=198.51.100.7';
    const [start, , ...rest] = PLAIN;
    expect(serialize(message)).toBe(text([start!, via, ...rest, 'X-Own: carrier.example']));
    expect(getHeader(message, 'content-type')).toBe('application/sdp');
    // Not looked for in the first pass.
    expect(getHeaders(message, 'x-own')).toEqual(['carrier.example']);
    expect(message.body).toBe('v=0\r\n');
  });

  it('gives a request its parts, and a response its own', () => {
    expect(parseFast(text(PLAIN), PEER, RECEPTION)?.message).toMatchObject({
      kind: 'request',
      method: 'INVITE',
      uri: 'sip:+15550100100@gw.example:5061;transport=tls',
      status: 0,
      reason: '',
    });
    expect(parseFast(response('CSeq: 1 BYE'), PEER, RECEPTION)?.message).toMatchObject({
      kind: 'response',
      method: '',
      uri: '',
      status: 200,
      reason: 'OK',
    });
  });

  it('shows a changed copy with its own headers and body, not those that came', () => {
    const { message } = parseFast(text(RESPONSE), PEER, RECEPTION) ?? expect.unreachable();
    const copy = changed(message, { headers: message.headers.filter(({ id }) => id !== 'contact'), body: '' });
    expect(getHeader(copy, 'contact')).toBeUndefined();
    expect(serialize(copy)).toContain('Content-Length: 0\r\n');
  });

  it('copies each byte of a text', () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).join('');
    expect(flatten(bytes)).toBe(bytes);
  });
});
