import { beforeEach, describe, expect, it } from 'vitest';
import { SessionRefresh } from '../../../../src/gateway/call/session-refresh.js';
import type { SrfAnswer, SrfHeaders } from '../../../../src/gateway/ports/signalling.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const ALLOW = 'INVITE, ACK, BYE, UPDATE';

let clock: VirtualClock;
let refresh: SessionRefresh;
let sent: SrfHeaders[];
let isBusy: boolean;
let begins: (() => (answer: SrfAnswer | undefined) => void)[];
let answer: (answer: SrfAnswer | undefined) => void;

beforeEach(() => {
  clock = new VirtualClock();
  sent = [];
  isBusy = false;
  begins = [];
  refresh = new SessionRefresh(clock, {
    update: (headers, onAnswer) => {
      sent.push(headers);
      answer = onAnswer;
    },
    reinvite: (headers, begin) => {
      begins.push(begin);
      if (isBusy) return;
      sent.push({ ...headers, by: 'INVITE' });
      answer = begin();
    },
    glareDelayMs: () => 3_000,
  });
});

const answered = (status: number, ...headers: string[]): void =>
  answer({ status, body: '', unanswered: null, raw: [`SIP/2.0 ${String(status)} X`, ...headers, '', ''].join('\r\n') });

describe('a session of a placed call', () => {
  it('[4028 §7.4] gets an UPDATE before half the interval, each time, when we refresh it', () => {
    refresh.settled('100;refresher=uac', ALLOW, true);
    clock.advance(39_999);
    expect(sent).toEqual([]);
    clock.advance(1);
    expect(sent).toEqual([{ 'Session-Expires': '100;refresher=uac' }]);
    answered(200, 'x: 200;refresher=uac');
    clock.advance(79_999);
    expect(sent).toHaveLength(1);
    clock.advance(1);
    expect(sent[1]).toEqual({ 'Session-Expires': '200;refresher=uac' });
  });

  it.each([
    ['the peer refreshes', '100;refresher=uas', ALLOW, true],
    ['the peer asked, and refreshes', '100;refresher=uac', ALLOW, false],
    ['the header names no refresher', '100', ALLOW, true],
    ['there is no timer', undefined, ALLOW, true],
  ])('gets no UPDATE of ours when %s', (_what, sessionExpires, allow, isOwnRequest) => {
    refresh.settled(sessionExpires, allow, isOwnRequest);
    clock.advance(200_000);
    expect(sent).toEqual([]);
  });

  it.each([
    ['accepts none', 'INVITE, ACK'],
    ['does not list its methods', undefined],
  ])('[4028 §7.4] gets a re-INVITE in place of an UPDATE where the peer %s', (_what, allow) => {
    refresh.settled('100;refresher=uac', allow, true);
    clock.advance(40_000);
    expect(sent).toEqual([{ 'Session-Expires': '100;refresher=uac', by: 'INVITE' }]);
    clock.advance(30_000);
    expect(sent).toHaveLength(1);
    answered(200, 'Session-Expires: 200;refresher=uac');
    clock.advance(80_000);
    expect(sent[1]).toEqual({ 'Session-Expires': '200;refresher=uac', by: 'INVITE' });
  });

  it('retries a re-INVITE that has to wait every 2 s; one that begins after the peer’s own has no effect', () => {
    isBusy = true;
    refresh.settled('100;refresher=uac', 'INVITE', true);
    clock.advance(44_000);
    expect([begins.length, sent.length]).toEqual([3, 0]);
    const [late] = begins;
    refresh.settled('100;refresher=uac', undefined, true);
    late?.()({ status: 422, body: '', unanswered: null, raw: 'SIP/2.0 422 X\r\nMin-SE: 300\r\n\r\n' });
    isBusy = false;
    clock.advance(39_999);
    expect(sent).toEqual([]);
    clock.advance(1);
    expect(sent).toEqual([{ 'Session-Expires': '100;refresher=uac', by: 'INVITE' }]);
  });

  it.each(['INVITE', 'INVITE, UPDATE'])('[3261 §14.1] is refreshed again after a 491, once the glare is over: %s', (allow) => {
    refresh.settled('100;refresher=uac', allow, true);
    clock.advance(40_000);
    answered(491);
    clock.advance(2_999);
    expect(sent).toHaveLength(1);
    clock.advance(1);
    expect(sent).toHaveLength(2);
  });

  it('[4028 §9] gets an UPDATE of ours when the peer leaves it to us', () => {
    refresh.settled('100;refresher=uas', ALLOW, false);
    clock.advance(40_000);
    expect(sent).toHaveLength(1);
  });

  it('[4028 §7.4] is refreshed again with the interval that a 422 requires, once', () => {
    refresh.settled('100;refresher=uac', ALLOW, true);
    clock.advance(40_000);
    answered(422, 'Min-SE: 300');
    expect(sent[1]).toEqual({ 'Session-Expires': '300;refresher=uac', 'Min-SE': '300' });
    answered(422, 'Min-SE: 600');
    clock.advance(1_000_000);
    expect(sent).toHaveLength(2);
  });

  it.each([408, 481, 488, 500])('is not refreshed again after %i, since the SIP server handles that', (status) => {
    refresh.settled('100;refresher=uac', ALLOW, true);
    clock.advance(40_000);
    answered(status);
    clock.advance(1_000_000);
    expect(sent).toHaveLength(1);
  });

  it('is refreshed soon, then as usual, when an earlier process had it', () => {
    refresh.settled('100;refresher=uac', ALLOW, true, 2_500);
    clock.advance(2_499);
    expect(sent).toEqual([]);
    clock.advance(1);
    answered(200, 'Session-Expires: 100;refresher=uac');
    clock.advance(39_999);
    expect(sent).toHaveLength(1);
    clock.advance(1);
    expect(sent).toHaveLength(2);
    refresh.settled('100;refresher=uas', ALLOW, true, 2_500);
    clock.advance(1_000_000);
    expect(sent).toHaveLength(2);
  });

  it('keeps an interval that was agreed again before the answer', () => {
    refresh.settled('100;refresher=uac', ALLOW, true);
    clock.advance(40_000);
    refresh.settled('100;refresher=uac', undefined, false);
    answered(200, 'Session-Expires: 100;refresher=uac');
    clock.advance(1_000_000);
    expect(sent).toHaveLength(1);
  });

  it('is not refreshed after the end of the call', () => {
    refresh.settled('100;refresher=uac', ALLOW, true);
    refresh.stop();
    clock.advance(1_000_000);
    expect(sent).toEqual([]);
    refresh.settled('100;refresher=uac', ALLOW, true);
    clock.advance(40_000);
    refresh.stop();
    answered(200, 'Session-Expires: 100;refresher=uac');
    clock.advance(1_000_000);
    expect(sent).toHaveLength(1);
  });
});
