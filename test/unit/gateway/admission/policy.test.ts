import { describe, expect, it } from 'vitest';
import { DEFAULT_INBOUND_OPTIONS } from '../../../../src/gateway/model/records.js';
import { NO_USAGE, decide, isSourceAllowed, isTrusted, notReady, type EdgeState } from '../../../../src/gateway/admission/admission.js';
import type { Reason } from '../../../../src/gateway/model/reasons.js';
import { sessionDescription, admit, refusalHeaders, sessionTimerHeaders, ownContact } from '../../../../src/gateway/call/invite.js';
import { ALLOWED_METHODS } from '../../../../src/lib/sip-methods.js';
import { calledNumber, calledUri } from '../../../../src/gateway/admission/parties.js';
import { readInfoDigit } from '../../../../src/gateway/call/info-digit.js';
import { REFUSABLE_VERDICTS } from '../../../../src/config/schema.js';
import { REASONS, reasonHeaderOf, warningOf } from '../../../../src/gateway/model/reasons.js';
import { NUMBER, ROUTE } from '../../../support/route.js';
import { offerSdp } from '../../../support/sdp.js';

describe('calledNumber', () => {
  it.each([
    'sip:+15550100100@host',
    'sip:15550100100@host',
    'sips:+1-555-010-0100@host:5061;user=phone',
    'sip:%2B15550100100@host',
    'sip:+15550100100;npdi;rn=+15550000000@host',
    'sip:15550100100:password@host',
    'tel:+1-555-010-0100',
    'tel:010-0100;phone-context=+1555',
    'sip:+1(555)0100100@[2001:db8::1]',
  ])('[3966] reads %s', (uri) => {
    expect(calledNumber(uri)).toEqual({ ok: true, value: NUMBER });
  });

  it.each([
    ['sip:alice@host', 'INVALID_NUMBER'],
    ['sip:host', 'INVALID_NUMBER'],
    ['sip:911@host', 'NUMBER_TOO_SHORT'],
    ['sip:+0123456789@host', 'INVALID_NUMBER'],
    ['sip:1234567890123456@host', 'INVALID_NUMBER'],
    ['sip:%ZZ@host', 'INVALID_NUMBER'],
    ['tel:555;phone-context=example.com', 'NUMBER_TOO_SHORT'],
    ['mailto:a@b', 'BAD_SCHEME'],
  ])('refuses %s with %s', (uri, reason) => {
    expect(calledNumber(uri)).toEqual({ ok: false, error: reason });
  });
});

describe('admit', () => {
  const head = {
    uri: 'sip:+15550100100@h',
    require: undefined,
    accept: undefined,
    contentType: 'application/sdp',
    contentDisposition: undefined,
    contentEncoding: undefined,
    body: 'v=0',
    contactUri: 'sip:a@b',
    supported: undefined,
    sessionExpires: undefined,
  };

  it('accepts an INVITE that can be looked up', () => {
    expect(admit(head)).toEqual({ ok: true, value: { called: NUMBER, sdp: 'v=0', sessionTimer: {} } });
    expect(admit({ ...head, require: 'timer, 100rel' })).toMatchObject({ ok: true });
  });

  it.each([
    [{ contactUri: undefined }, 'MALFORMED_REQUEST'],
    [{ require: 'timer, precondition' }, 'BAD_EXTENSION'],
    [{ contentType: 'text/plain' }, 'BAD_BODY'],
    [{ uri: 'sip:bob@h' }, 'INVALID_NUMBER'],
    [{ accept: 'text/plain, text/html' }, 'NOT_ACCEPTABLE'],
    [{ accept: 'application/sdp;q=0.0' }, 'NOT_ACCEPTABLE'],
    [{ supported: 'timer', sessionExpires: '60' }, 'SESSION_INTERVAL_TOO_SMALL'],
  ])('refuses %j with %s', (change, reason) => {
    expect(admit({ ...head, ...change })).toEqual({ ok: false, error: reason });
  });
});

describe('the called number', () => {
  const header = (name: string): string | undefined =>
    ({ To: '"B" <sip:+15550100200@pbx>;tag=1', Diversion: '<tel:+15550100300>;reason=unconditional', 'P-Called-Party-ID': 'sip:name@x' })[
      name
    ];

  it.each([
    ['request-uri', 'sip:pilot@h'],
    ['to', 'sip:+15550100200@pbx'],
    ['diversion', 'tel:+15550100300'],
    ['p-called-party-id', 'sip:name@x'],
  ] as const)('comes from %s when the trunk puts it there', (source, uri) => {
    expect(calledUri(source, 'sip:pilot@h', header)).toBe(uri);
  });

  it('comes from the Request-URI where the header is missing or has no number', () => {
    expect(calledUri('diversion', 'sip:pilot@h', () => undefined)).toBe('sip:pilot@h');
    expect(calledUri('to', 'sip:pilot@h', () => 'anybody')).toBe('sip:pilot@h');
  });
});

describe('the whole trunk', () => {
  const policy = { allowedSources: [], allowedIdentities: [], maxCalls: 10 };
  const fine: EdgeState = { isDraining: false, overload: null, calls: 9, isRelayUp: true, mediaHeadroom: 1 };

  it.each<[EdgeState, Reason, string | null]>([
    [{ ...fine, isDraining: true, overload: 'late' }, 'DRAINING', null],
    [{ ...fine, overload: 'the event loop is late: 312 ms, limit 250 ms' }, 'OVERLOADED', 'the event loop is late: 312 ms, limit 250 ms'],
    [{ ...fine, calls: 10 }, 'OVERLOADED', 'calls in progress: 10, limit 10'],
    [{ ...fine, isRelayUp: false }, 'MEDIA_UNAVAILABLE', 'no rtpengine answers'],
    [{ ...fine, mediaHeadroom: 0 }, 'MEDIA_UNAVAILABLE', 'every media port is in use'],
  ])('refuses calls in the state %j with %s, the figure and its limit: %s', (edge, reason, detail) => {
    expect(notReady(edge, policy)).toEqual({ reason, detail });
  });

  it.each([fine, { ...fine, mediaHeadroom: null }])('accepts calls in the state %j', (edge) => {
    expect(notReady(edge, policy)).toBeNull();
  });

  it('trusts the sources on its list and, where names are required, one of those in the certificate', () => {
    const source = { address: '203.0.113.7', identities: ['DNS:sip.carrier.example'] };
    expect(isTrusted(policy, source)).toBe(true);
    expect(isTrusted({ ...policy, allowedSources: ['198.51.100.0/24'] }, source)).toBe(false);
    expect(isTrusted({ ...policy, allowedIdentities: ['sip.carrier.example'] }, source)).toBe(true);
    expect(isTrusted({ ...policy, allowedIdentities: ['DNS:SIP.carrier.example'] }, source)).toBe(true);
    expect(isTrusted({ ...policy, allowedIdentities: ['other.example'] }, source)).toBe(false);
    expect(isTrusted({ ...policy, allowedIdentities: ['sip.carrier.example'] }, { ...source, identities: [] })).toBe(false);
  });
});

describe('a DTMF digit by INFO', () => {
  it.each([
    ['application/dtmf-relay', 'Signal=5\r\nDuration=250\r\n', { event: 5, durationMs: 250 }],
    ['application/dtmf-relay', 'Signal= *\nDuration= 100', { event: 10, durationMs: 100 }],
    ['application/dtmf-relay;charset=utf-8', 'Signal=11\r\n', { event: 11, durationMs: 160 }],
    ['application/dtmf', '#', { event: 11, durationMs: 160 }],
    ['application/dtmf', 'd\r\n', { event: 15, durationMs: 160 }],
    ['application/dtmf-relay', 'Signal=1\r\nDuration=999999\r\n', { event: 1, durationMs: 10_000 }],
  ])('is read from %s %j', (type, body, digit) => {
    expect(readInfoDigit(type, body)).toEqual({ ok: true, value: digit });
  });

  it.each([
    ['text/plain', '5', 'BAD_BODY'],
    [undefined, '5', 'BAD_BODY'],
    ['application/dtmf-relay', '5', 'MALFORMED_REQUEST'],
    ['application/dtmf', '55', 'MALFORMED_REQUEST'],
    ['application/dtmf-relay', 'Signal=x', 'MALFORMED_REQUEST'],
  ])('is refused from %s %j with %s', (type, body, error) => {
    expect(readInfoDigit(type, body)).toEqual({ ok: false, error });
  });
});

describe('sessionTimerHeaders', () => {
  it.each([
    ['a caller that names no refresher refreshes itself', '1800', 'timer', { 'Session-Expires': '1800;refresher=uac', Require: 'timer' }],
    ['a caller that wants us to refresh', '90;refresher=uas', '100rel, timer', { 'Session-Expires': '90;refresher=uas', Require: 'timer' }],
    ['a proxy that asks for a caller without timers', '1800', undefined, { 'Session-Expires': '1800;refresher=uas' }],
    ['a proxy that asks for too little', '30', undefined, { 'Session-Expires': '90;refresher=uas' }],
    ['no session timer', undefined, 'timer', {}],
    ['an invalid header', 'soon', 'timer', {}],
  ])('[4028 §9] answers: %s', (_what, sessionExpires, supported, headers) => {
    expect(sessionTimerHeaders({ sessionExpires, supported, require: undefined })).toEqual({ ok: true, value: headers });
  });

  it('[4028 §9] refuses less than 90 s when the caller understands 422', () => {
    expect(sessionTimerHeaders({ sessionExpires: '89', supported: undefined, require: 'timer' })).toEqual({
      ok: false,
      error: 'SESSION_INTERVAL_TOO_SMALL',
    });
  });
});

describe('sessionDescription', () => {
  const description = (contentType: string | undefined, body: string, contentDisposition?: string, contentEncoding?: string) =>
    sessionDescription({ contentType, contentDisposition, contentEncoding, body });

  it('[3261 §8.2.3] refuses an unknown content encoding', () => {
    const sdp = offerSdp();
    expect(description('application/sdp', sdp, undefined, 'gzip')).toEqual({ ok: false, error: 'BAD_BODY' });
    expect(description('application/sdp', sdp, undefined, ' Identity ')).toEqual({ ok: true, value: sdp });
    expect(description('application/sdp', '', undefined, 'gzip')).toEqual({ ok: true, value: '' });
  });

  it('[3261 §8.2.3] ignores an optional body of another type, and refuses one that is not optional', () => {
    expect(description('application/json', '{}', 'session;handling=optional')).toEqual({ ok: true, value: '' });
    expect(description('application/json', '{}', 'session; handling="optional"')).toEqual({ ok: true, value: '' });
    expect(description('application/json', '{}', 'session;handling=required')).toEqual({ ok: false, error: 'BAD_BODY' });
    expect(description('application/sdp', 'v=0', 'session;handling=optional')).toEqual({ ok: true, value: 'v=0' });
  });

  it('takes the application/sdp part of a multipart body', () => {
    const body =
      '--b1\r\nContent-Type: application/isup\r\n\r\nbinary\r\n--b1\r\nContent-Type: application/sdp\r\n\r\nv=0\r\ns=-\r\n--b1--\r\n';
    expect(description('multipart/mixed;boundary=b1', body)).toEqual({ ok: true, value: 'v=0\r\ns=-\r\n' });
    expect(description('multipart/mixed; boundary="b1"', body)).toMatchObject({ ok: true });
    expect(description('multipart/mixed;boundary=b2', body)).toEqual({ ok: false, error: 'BAD_BODY' });
  });

  it('[3261 §8.2.3] refuses a multipart body with another part that must be understood', () => {
    const body = (handling: string): string =>
      `--b1\r\nContent-Type: application/isup\r\nContent-Disposition: signal;handling=${handling}\r\n\r\nx\r\n` +
      '--b1\r\nContent-Type: application/sdp\r\nContent-Disposition: session;handling=required\r\n\r\nv=0\r\n--b1--\r\n';
    expect(description('multipart/mixed;boundary=b1', body('optional'))).toEqual({ ok: true, value: 'v=0\r\n' });
    expect(description('multipart/mixed;boundary=b1', body('required'))).toEqual({ ok: false, error: 'BAD_BODY' });
  });

  it('tells an empty body from one that cannot be used', () => {
    expect(description(undefined, '')).toEqual({ ok: true, value: '' });
    expect(description('application/json', '{}')).toEqual({ ok: false, error: 'BAD_BODY' });
  });
});

describe('decide', () => {
  const input = {
    route: ROUTE,
    sourceAddress: '203.0.113.7',
    identity: null,
    credentials: null,
    refusedVerdicts: [],
    sdp: offerSdp(),
    relayAddress: null,
    load: NO_USAGE,
  };

  it('[3264 §5.1] refuses an address family that the relay lacks, where it is known', () => {
    const sdp = offerSdp().replaceAll('IN IP4 127.0.0.1', 'IN IP6 2001:db8::7');
    expect(decide({ ...input, sdp, relayAddress: '192.0.2.1' })).toEqual({ ok: false, error: 'ADDRESS_FAMILY_UNSUPPORTED' });
    for (const relayAddress of ['2001:db8::1', null]) expect(decide({ ...input, sdp, relayAddress }).ok).toBe(true);
    // Held the old way: no media goes to that address.
    expect(decide({ ...input, sdp: offerSdp({ address: '0.0.0.0' }), relayAddress: '2001:db8::1' }).ok).toBe(true);
  });

  it('accepts a good offer on an attached number', () => {
    expect(decide(input)).toMatchObject({ ok: true, value: { codec: { name: 'PCMU' } } });
  });

  it.each([
    ['a number that nobody attached', { route: null }, 'NUMBER_NOT_ATTACHED'],
    ['a number attached outbound only', { route: { ...ROUTE, number: { ...ROUTE.number, inbound: null } } }, 'NUMBER_NOT_ATTACHED'],
    ['a disabled organization', { route: { ...ROUTE, org: { ...ROUTE.org, disabled: true } } }, 'ORG_DISABLED'],
    ['an organization without the entitlement', { route: { ...ROUTE, org: { ...ROUTE.org, sip_enabled: false } } }, 'ORG_NOT_ENTITLED'],
    [
      'a number whose agent was deleted',
      { route: { ...ROUTE, number: { ...ROUTE.number, inbound: { agent_id: 'gone', options: DEFAULT_INBOUND_OPTIONS } } } },
      'AGENT_UNAVAILABLE',
    ],
    [
      'a source that the organization does not list',
      { route: { ...ROUTE, org: { ...ROUTE.org, allowed_sources: ['198.51.100.1'] } } },
      'SOURCE_NOT_ALLOWED',
    ],
    ['an offer without SRTP', { sdp: offerSdp({ profile: 'RTP/AVP', crypto: [] }) }, 'SRTP_REQUIRED'],
  ])('refuses %s', (_what, change, reason) => {
    expect(decide({ ...input, ...change })).toEqual({ ok: false, error: reason });
  });

  it.each([
    ['missing', 'IDENTITY_REQUIRED', 428],
    ['stale', 'IDENTITY_STALE', 403],
    ['bad-info', 'IDENTITY_INFO_BAD', 436],
    ['credential', 'IDENTITY_CREDENTIAL_UNSUPPORTED', 437],
    ['invalid', 'IDENTITY_INVALID', 438],
  ] as const)('[8224 §6.2.2] refuses an identity that is %s with %s, only where it is configured so', (verdict, reason, status) => {
    const identity = { verdict, detail: '', attestation: null, origid: null, signer: null };
    expect(decide({ ...input, identity, refusedVerdicts: [verdict] })).toEqual({ ok: false, error: reason });
    expect(REASONS[reason].sipStatus).toBe(status);
    expect(decide({ ...input, identity })).toMatchObject({ ok: true });
    expect(decide({ ...input, identity, refusedVerdicts: REFUSABLE_VERDICTS.filter((one) => one !== verdict) })).toMatchObject({
      ok: true,
    });
    expect(decide({ ...input, identity: { ...identity, verdict: 'valid' }, refusedVerdicts: [verdict] })).toMatchObject({ ok: true });
  });

  it('accepts an INVITE without an offer', () => {
    expect(decide({ ...input, sdp: '' })).toEqual({ ok: true, value: null });
  });

  it('refuses a source that the number does not list', () => {
    const options = { ...DEFAULT_INBOUND_OPTIONS, allowed_sources: ['198.51.100.0/24'] };
    const route = { ...ROUTE, number: { ...ROUTE.number, inbound: { agent_id: null, options } } };
    expect(decide({ ...input, route })).toEqual({ ok: false, error: 'SOURCE_NOT_ALLOWED' });
    expect(decide({ ...input, route, sourceAddress: '198.51.100.9' })).toMatchObject({ ok: true });
  });

  it.each([
    ['NUMBER_CALL_LIMIT', { max_concurrent_calls: 2 }, {}, { numberCalls: 2 }],
    ['NUMBER_RATE_LIMIT', { max_calls_per_second: 3 }, {}, { numberCallsLastSecond: 3 }],
    ['ORG_CALL_LIMIT', {}, { max_concurrent_calls: 4 }, { orgCalls: 4 }],
    ['ORG_RATE_LIMIT', {}, { max_calls_per_second: 5 }, { orgCallsLastSecond: 5 }],
  ])('refuses one call more than the limit: %s', (reason, options, orgLimit, load) => {
    const inbound = { agent_id: null, options: { ...DEFAULT_INBOUND_OPTIONS, ...options } };
    const route = { ...ROUTE, number: { ...ROUTE.number, inbound }, org: { ...ROUTE.org, ...orgLimit } };
    const [[name, value]] = Object.entries(load) as [[string, number]];
    expect(decide({ ...input, route, load: { ...NO_USAGE, [name]: value } })).toEqual({ ok: false, error: reason });
    expect(decide({ ...input, route, load: { ...NO_USAGE, [name]: value - 1 } })).toMatchObject({ ok: true });
  });

  it('matches addresses and blocks of both families', () => {
    expect(isSourceAllowed(['2001:db8::/32'], '2001:db8::5')).toBe(true);
    expect(isSourceAllowed(['2001:db8::/32'], '203.0.113.7')).toBe(false);
    expect(isSourceAllowed(['203.0.113.7'], '203.0.113.7')).toBe(true);
    expect(isSourceAllowed(['203.0.113.7'], 'nonsense')).toBe(false);
  });
});

describe('the reason table', () => {
  it('[3261 §20.43] [3326] writes the code into Warning and Reason', () => {
    expect(warningOf('NUMBER_NOT_ATTACHED', 'gw.example.com')).toBe(
      '399 gw.example.com "NUMBER_NOT_ATTACHED: The called number is not attached for inbound calls."',
    );
    expect(reasonHeaderOf('NUMBER_NOT_ATTACHED')).toBe('Q.850;cause=1;text="NUMBER_NOT_ATTACHED"');
  });

  it('keeps 503 for states of the whole trunk, and Retry-After for what a carrier may retry', () => {
    for (const [code, facts] of Object.entries(REASONS)) {
      if (facts.sipStatus === 503) expect([code, facts.fault]).toEqual([code, 'gateway']);
      if (facts.retryAfter) expect([code, facts.retryable]).toEqual([code, true]);
      expect(facts.explanation).toMatch(/^[A-Z].*\.$/);
      expect(facts.explanation).not.toContain('"');
    }
  });
});

describe('refusalHeaders', () => {
  const context = {
    host: 'gw',
    require: 'timer, precondition, foo',
    accepted: 'application/sdp',
    retryAfterSeconds: () => 7,
    detail: null,
  };

  it.each([
    ['BAD_EXTENSION', { Unsupported: 'precondition, foo' }],
    ['BAD_BODY', { Accept: 'application/sdp', 'Accept-Encoding': 'identity' }],
    ['SESSION_INTERVAL_TOO_SMALL', { 'Min-SE': '90' }],
    ['METHOD_NOT_ALLOWED', { Allow: ALLOWED_METHODS }],
    ['EXCHANGE_PENDING', { 'Retry-After': '7' }],
    ['DRAINING', { 'Retry-After': '7' }],
    ['NUMBER_NOT_ATTACHED', {}],
  ] as const)('[3261 §8.2.2] has for %s the headers that its status requires', (reason, more) => {
    expect(refusalHeaders(reason, context)).toEqual({ Warning: warningOf(reason, 'gw'), Reason: reasonHeaderOf(reason), ...more });
  });

  it('[3261 §20.43] names the figure and its limit in the Warning', () => {
    const { Warning } = refusalHeaders('OVERLOADED', { ...context, detail: 'the event loop is late: 312 ms, limit 250 ms' });
    expect(Warning).toBe(
      '399 gw "OVERLOADED: The gateway accepts no more calls at the moment. The event loop is late: 312 ms, limit 250 ms."',
    );
  });
});

describe('ownContact', () => {
  const own = { host: 'gw.example.com', port: 5061, transport: 'tls' };

  it.each([
    [{ requestUri: 'sip:x@h', topRecordRoute: undefined, contactUri: 'sip:a@b;transport=tls' }, '<sip:gw.example.com:5061;transport=tls>'],
    [{ requestUri: 'sips:x@h', topRecordRoute: undefined, contactUri: 'sip:a@b' }, '<sips:gw.example.com:5061;transport=tls>'],
    [{ requestUri: 'sip:x@h', topRecordRoute: undefined, contactUri: 'sips:a@b' }, '<sips:gw.example.com:5061;transport=tls>'],
    [{ requestUri: 'sip:x@h', topRecordRoute: '<sip:p;lr>', contactUri: 'sips:a@b' }, '<sip:gw.example.com:5061;transport=tls>'],
    [{ requestUri: 'sip:x@h', topRecordRoute: '<sips:p;lr>', contactUri: 'sip:a@b' }, '<sips:gw.example.com:5061;transport=tls>'],
  ])('[3261 §12.1.1] makes of %j the Contact %s', (head, contact) => {
    expect(ownContact(own, head)).toBe(contact);
  });
});
