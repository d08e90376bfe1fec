import { describe, expect, it } from 'vitest';
import type { CallerIdentity } from '../../../../src/gateway/model/call-record.js';
import type { VerifiedIdentity } from '../../../../src/gateway/model/verified-identity.js';
import { answeredBy, detected } from '../../../../src/gateway/twilio/answered-by.js';
import { callParameters, type VoiceFacts } from '../../../../src/gateway/twilio/call-parameters.js';
import { callStatusOf, twilioDirection } from '../../../../src/gateway/twilio/call-status.js';

// A call in the words of Twilio's API and requests.

describe('AnsweredBy', () => {
  it.each([
    ['person', 'human'],
    ['machine', 'machine_start'],
    ['fax', 'fax'],
    ['unknown', 'unknown'],
  ] as const)('for %s is %s', (answerer, word) => {
    expect(answeredBy(answerer)).toBe(word);
    expect(detected('Enable', { type: 'verdict', answerer })).toBe(word);
  });

  it('waits for the end of a machine’s greeting only on request, and never guesses', () => {
    expect(detected('DetectMessageEnd', { type: 'verdict', answerer: 'machine' })).toBeNull();
    expect(detected('DetectMessageEnd', { type: 'verdict', answerer: 'person' })).toBe('human');
    expect(detected('DetectMessageEnd', { type: 'greeting-ended', by: 'beep' })).toBe('machine_end_beep');
    expect(detected('DetectMessageEnd', { type: 'greeting-ended', by: 'silence' })).toBe('machine_end_silence');
    expect(detected('Enable', { type: 'guess', answerer: 'person' })).toBeNull();
  });
});

describe('CallStatus', () => {
  const of = (reason: Parameters<typeof callStatusOf>[0]['reason'], sipStatus: number, answeredAt: string | null = null) =>
    callStatusOf({ reason, sip_status: sipStatus, answered_at: answeredAt });

  it.each([
    ['CALLER_CANCELLED', 487, 'canceled'],
    ['AGENT_HANGUP', 603, 'canceled'],
    ['API_STOPPED', 487, 'canceled'],
    ['BUSY', 486, 'busy'],
    ['CALLEE_DECLINED', 600, 'busy'],
    ['NO_ANSWER', 487, 'no-answer'],
    ['TRUNK_REFUSED', 408, 'no-answer'],
    ['TRUNK_REFUSED', 480, 'no-answer'],
    ['TRUNK_REFUSED', 403, 'failed'],
    ['TRUNK_UNREACHABLE', 503, 'failed'],
  ] as const)('for %s with %s is %s', (reason, sipStatus, status) => {
    expect(of(reason, sipStatus)).toBe(status);
    expect(of(reason, sipStatus, '2026-11-25T12:00:00.000Z')).toBe('completed');
  });

  it('has the direction beside it', () => {
    expect([twilioDirection('inbound'), twilioDirection('outbound')]).toEqual(['inbound', 'outbound-api']);
  });
});

describe('the parameters of a request to a webhook', () => {
  const CALLER: CallerIdentity = {
    number: '+15550100999',
    display_name: null,
    asserted: [],
    remote_party: null,
    diversions: [],
    history: [],
    privacy: [],
    user_to_user: null,
    headers: {},
  };
  const FACTS: VoiceFacts = {
    callId: '01234567-89ab-cdef-0123-456789abcdef',
    orgId: 'fedcba98-7654-3210-fedc-ba9876543210',
    direction: 'inbound',
    to: '+15550100100',
    caller: CALLER,
    identity: null,
  };
  const LEAST = {
    CallSid: 'CA0123456789abcdef0123456789abcdef',
    AccountSid: 'ACfedcba9876543210fedcba9876543210',
    ApiVersion: '2010-04-01',
    Direction: 'inbound',
    CallStatus: 'ringing',
    From: '+15550100999',
    Caller: '+15550100999',
    To: '+15550100100',
    Called: '+15550100100',
  };
  const identity = (changes: Partial<VerifiedIdentity>): VerifiedIdentity => ({
    verdict: 'valid',
    detail: null,
    attestation: 'A',
    origid: null,
    signer: null,
    ...changes,
  });

  it('omit what is unknown', () => {
    expect(callParameters(FACTS, 'ringing')).toEqual(LEAST);
  });

  it('have the first to forward the call, the caller’s name, the answerer, and the headers that the operator passes', () => {
    const caller: CallerIdentity = {
      ...CALLER,
      display_name: 'Ann',
      diversions: ['sip:+15550100777@carrier', 'sip:+15550100778@carrier'].map((uri) => ({ uri, reason: null })),
      headers: { 'x-queue': 'sales', 'x-priority': '1' },
    };
    expect(callParameters({ ...FACTS, caller, answeredBy: 'human' }, 'ringing')).toEqual({
      ...LEAST,
      CallerName: 'Ann',
      ForwardedFrom: 'sip:+15550100777@carrier',
      AnsweredBy: 'human',
      'SipHeader_x-queue': 'sales',
      'SipHeader_x-priority': '1',
    });
  });

  it.each(['A', 'B', 'C'] as const)('have StirVerstat for a valid attestation %s only', (attestation) => {
    const verstat = (changes: Partial<VerifiedIdentity>) =>
      callParameters({ ...FACTS, identity: identity({ attestation, ...changes }) }, 'ringing')['StirVerstat'];
    expect(verstat({})).toBe(`TN-Validation-Passed-${attestation}`);
    expect(verstat({ verdict: 'invalid' })).toBeUndefined();
    expect(verstat({ attestation: null })).toBeUndefined();
  });
});
