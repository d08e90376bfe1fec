import { describe, expect, it } from 'vitest';
import { answerCommand, offerCommand, type RelayLegs } from '../../../src/rtpengine/flags.js';

const ARGS = { callId: 'c1', fromTag: 'carrier', sdp: 'v=0' };
const LEGS: RelayLegs = { interfaces: { outside: 'out', inside: 'in' }, insideSrtp: false };

describe('offer', () => {
  it('asks for plain RTP inside, or SRTP when the endpoint speaks it', () => {
    expect(offerCommand(ARGS, LEGS)['transport-protocol']).toBe('RTP/AVP');
    expect(offerCommand(ARGS, { ...LEGS, insideSrtp: true })['transport-protocol']).toBe('RTP/SAVP');
  });

  it('goes from the outside interface to the inside one, and names none of an rtpengine that is not ours', () => {
    expect(offerCommand(ARGS, LEGS)['direction']).toEqual(['out', 'in']);
    expect(offerCommand(ARGS, { ...LEGS, interfaces: null })).not.toHaveProperty('direction');
  });

  it('forbids every suite but the one, by name and with the negative list that 10.5 honours', () => {
    const suites = offerCommand(ARGS, LEGS)['SDES'] as string[];
    expect(suites).toHaveLength(11);
    expect(suites.every((suite) => /^no-[A-Z0-9_]+$/.test(suite))).toBe(true);
    expect(suites).not.toContain('no-AES_CM_128_HMAC_SHA1_80');
  });

  it('wants neither ICE nor DTLS nor rtcp-mux, and no codec that the endpoint does not have', () => {
    expect(offerCommand(ARGS, LEGS)).toMatchObject({
      ICE: 'remove',
      DTLS: 'off',
      'rtcp-mux': ['demux', 'reject'],
      codec: { strip: ['all'], except: ['PCMU', 'PCMA', 'telephone-event'] },
    });
  });
});

describe('answer', () => {
  it('belongs to the offer’s call and tag, hides the inside address, and repeats no negotiation flag', () => {
    expect(answerCommand({ ...ARGS, toTag: 'agent' })).toEqual({
      'call-id': 'c1',
      'from-tag': 'carrier',
      'to-tag': 'agent',
      sdp: 'v=0',
      DTLS: 'off',
      replace: ['origin', 'session-connection'],
    });
  });
});
