import { describe, expect, it } from 'vitest';
import { sipHeaders } from '../../../../src/agent-protocol/sip-headers.js';
import {
  callerForAgent,
  DEFAULT_HEADERS_FROM_AGENT,
  listedHeaderProblem,
  namedHeaders,
  unlistedHeader,
} from '../../../../src/gateway/model/passed-headers.js';
import { NOBODY } from '../../../../src/gateway/model/call-record.js';

describe('a list of headers', () => {
  it.each(['User-to-User', 'x-ticket', 'X-*', 'Call-Info', 'Subject'])('may have %s', (entry) => {
    expect(listedHeaderProblem(entry)).toBeNull();
  });

  it.each([
    ...['Via', 'FROM', 'to', 'Call-ID', 'CSeq', 'Contact', 'Route', 'Record-Route', 'Max-Forwards', 'Content-Type', 'content-length'],
    ...['Authorization', 'Proxy-Authorization', 'Require', 'Supported', 'Session-Expires', 'Reason', 'Identity', 'Referred-By', 'Refer-To'],
    ...['P-Asserted-Identity', 'Privacy', 'X-Trunkline-Public-Only', 'x-trunkline-trunk-tls', 'l', 'x'],
  ])('may not have %s, which is of the stack', (entry) => {
    expect(listedHeaderProblem(entry)).toContain('SIP stack');
  });

  it.each(['', 'X-A*', '*', 'X A', 'X-A\r\nVia', 'X-A:', 'Ü', `X-${'a'.repeat(63)}`])('may not have %j, which is no name', (entry) => {
    expect(listedHeaderProblem(entry)).toBe('must be the name of a header, or X-*');
  });

  it('allows its names in any case, X- names by X-*, and nothing of the stack whatever it has', () => {
    expect(unlistedHeader({ 'user-to-user': 'a', 'x-Any': 'b' }, DEFAULT_HEADERS_FROM_AGENT)).toBeNull();
    expect(unlistedHeader({ 'X-One': 'a', Subject: 'b' }, DEFAULT_HEADERS_FROM_AGENT)).toBe('Subject');
    expect(unlistedHeader({ 'X-Two': 'a' }, ['X-One'])).toBe('X-Two');
    expect(unlistedHeader({ 'X-One': 'a' }, [])).toBe('X-One');
    expect(unlistedHeader({ 'X-Trunkline-Public-Only': 'no' }, ['X-*', 'X-Trunkline-Public-Only'])).toBe('X-Trunkline-Public-Only');
    expect(unlistedHeader({ via: 'x' }, ['via'])).toBe('via');
  });
});

describe('headers to be sent', () => {
  it.each([
    [{ 'X-A': 'one\r\nVia: two' }, 'printable'],
    [{ 'X-A': 'one\n' }, 'printable'],
    [{ 'X-A': 'ä' }, 'printable'],
    [{ 'X-A': '' }, 'printable'],
    [{ 'X-A:': 'a' }, 'name of a header'],
    [{ 'X-A': 'a'.repeat(1_022) }, 'at most 1024 bytes'],
    [{ 'X-A': 'a', 'x-a': 'b' }, 'once'],
    [Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`X-${String(index)}`, 'a'])), 'at most 10'],
  ])('are refused as %j', (headers, problem) => {
    const read = sipHeaders.safeParse(headers);
    expect(read.success ? '' : JSON.stringify(read.error.issues)).toContain(problem);
  });

  it('are ten of 1,024 bytes each at most', () => {
    const most = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`X-${String(index)}`, 'a'.repeat(1_021)]));
    expect(sipHeaders.safeParse(most).success).toBe(true);
  });
});

describe('the headers that an agent gets', () => {
  const caller = { ...NOBODY, number: '+15550100999', user_to_user: '00c8', headers: { 'x-ticket': '1', 'x-other': '2' } };
  const values = (name: string): readonly string[] => ({ 'call-info': ['<a>', '<b>'], subject: ['s'.repeat(513)] })[name] ?? [];

  it('are User-to-User, X- headers and Call-Info by default', () => {
    const named = namedHeaders(values);
    expect(named).toEqual({ 'call-info': '<a>, <b>' });
    expect(callerForAgent(caller, named)).toEqual({ ...caller, headers: { ...caller.headers, 'call-info': '<a>, <b>' } });
  });

  it('are those of the list alone, and no value that is too long', () => {
    const list = ['X-Ticket', 'Subject'];
    expect(callerForAgent(caller, namedHeaders(values, list), list)).toEqual({
      ...caller,
      user_to_user: null,
      headers: { 'x-ticket': '1' },
    });
  });
});
