import { describe, expect, it } from 'vitest';
import {
  answerCommand,
  deleteCommand,
  offerCommand,
  type NegotiationArguments,
  type OfferFlags,
} from '../../../../src/gateway/relay/flags.js';

const BY_CARRIER: NegotiationArguments = { callId: 'c1', offerer: 'carrier', sdp: 'v=0', endsSrtp: false };
const BY_US: NegotiationArguments = { ...BY_CARRIER, offerer: 'agent' };
const FLAGS: OfferFlags = { interfaces: { outside: 'out', inside: 'in' }, isSecure: false };

it('an offer lets packets move the carrier’s end alone, and only where rtpengine verifies them', () => {
  const follows = (command: Record<string, unknown>): boolean => (command['flags'] as string[]).includes('media handover');
  const [byCarrier, byUs] = [BY_CARRIER, BY_US].map((args) => ({ ...args, endsSrtp: true })) as [
    NegotiationArguments,
    NegotiationArguments,
  ];
  expect([offerCommand(byCarrier, FLAGS), answerCommand(byCarrier)].map(follows)).toEqual([true, false]);
  expect([offerCommand(byUs, FLAGS), answerCommand(byUs)].map(follows)).toEqual([false, true]);
  expect([offerCommand(BY_CARRIER, FLAGS), answerCommand(BY_US)].map(follows)).toEqual([false, false]);
});

describe('an offer to rtpengine', () => {
  it('requests plain RTP or SRTP towards the side that gets it', () => {
    expect(offerCommand(BY_CARRIER, FLAGS)['transport-protocol']).toBe('RTP/AVP');
    expect(offerCommand(BY_US, { ...FLAGS, isSecure: true })['transport-protocol']).toBe('RTP/SAVP');
  });

  it('goes from the offerer’s interface to the other one, and names none of a shared rtpengine', () => {
    expect(offerCommand(BY_CARRIER, FLAGS)).toMatchObject({ 'from-tag': 'carrier', direction: ['out', 'in'] });
    expect(offerCommand(BY_US, FLAGS)).toMatchObject({ 'from-tag': 'agent', direction: ['in', 'out'] });
    expect(offerCommand(BY_CARRIER, { ...FLAGS, interfaces: null })).not.toHaveProperty('direction');
  });

  it('forbids every suite but one, by name and with the negative list that 10.5 honours', () => {
    const suites = offerCommand(BY_CARRIER, FLAGS)['SDES'] as string[];
    expect(suites).toHaveLength(11);
    expect(suites.every((suite) => /^no-[A-Z0-9_]+$/.test(suite))).toBe(true);
    expect(suites).not.toContain('no-AES_CM_128_HMAC_SHA1_80');
  });

  it('requests neither ICE nor DTLS nor rtcp-mux, only codecs of the endpoint, and constant ports', () => {
    expect(offerCommand(BY_CARRIER, FLAGS)).toMatchObject({
      ICE: 'remove',
      DTLS: 'off',
      'rtcp-mux': ['demux', 'reject'],
      codec: { strip: ['all'], except: ['PCMU', 'PCMA', 'telephone-event'] },
      flags: ['port-latching'],
    });
  });
});

describe('an answer to rtpengine', () => {
  it.each([
    [BY_CARRIER, 'carrier', 'agent', ['port-latching', 'asymmetric']],
    [BY_US, 'agent', 'carrier', ['port-latching']],
  ])('belongs to the offer’s call and tag, hides the inside address, and repeats no negotiation flag', (args, from, to, flags) => {
    expect(answerCommand(args)).toEqual({
      'call-id': 'c1',
      'from-tag': from,
      'to-tag': to,
      sdp: 'v=0',
      DTLS: 'off',
      replace: ['origin', 'session-connection'],
      flags,
    });
  });
});

it('delete has a tag where figures are wanted, and no delay', () => {
  expect(deleteCommand('c1', 'agent')).toEqual({ 'call-id': 'c1', 'delete-delay': 0, 'from-tag': 'agent' });
  expect(deleteCommand('c1', null)).toEqual({ 'call-id': 'c1', 'delete-delay': 0 });
});
