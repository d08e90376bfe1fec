import { describe, expect, it } from 'vitest';
import { playLines, Replay, type Differences } from '../../support/replay.js';
import { headerOf, startOf } from '../../support/scenario.js';

const NONE: Differences = [];
/** Recorded on another port. */
const PORT: Differences = [[/\b35061\b/g, '25061']];
/** RFC 3261 §9.2: the 200 to a CANCEL and the 487 have one To-tag; theirs have two. */
const ONE_TAG: Differences = [[/K2KeNDrXDBQ2r/g, 'jStNKj7Sg20FD']];
/** RFC 3261 §8.1.1.8: a Contact is sips only when the Request-URI is; and a URI with parameters stands in brackets (§20.10). */
const SIPS: Differences = [
  [/<sips:127\.0\.0\.1:25061/g, '<sip:127.0.0.1:25061'],
  [/<sip:peer@127\.0\.0\.1:25300>;transport=tls/g, '<sip:peer@127.0.0.1:25300;transport=tls>'],
];

describe('[control protocol] the SIP server', () => {
  it.each([
    ['01-connect-auth-route', NONE],
    ['02-invite-udp-callerbye', NONE],
    ['03-invite-tls-callerbye', NONE],
    ['04-invite-cancel', NONE],
    ['05-invite-cancel-app-never-responded', ONE_TAG],
    ['06-app-initiated-bye', NONE],
    ['07-reinvite-info-in-dialog', NONE],
    ['08-options-incoming', NONE],
    ['09-register-incoming-tls', NONE],
    ['10-reject-486', NONE],
    ['11-custom-headers', NONE],
    ['12-app-sets-totag', NONE],
    ['15-app-options-out-of-dialog', NONE],
    ['16-app-createUAC-bye', NONE],
    ['17-app-createUAC-reinvite-bye', NONE],
    ['18-app-createUAC-cancel', NONE],
    ['19-app-createUAC-tls', SIPS],
    ['20-bad-dialog-id', NONE],
    ['22-custom-headers-ok', NONE],
    ['23-ping', NONE],
    ['25-caller-never-acks', NONE],
    ['33-tls-call', PORT],
    ['33-tls-split', PORT],
    ['33-tls-wrongtag', PORT],
    ['35-uac-100-then-404', NONE],
  ])('sends in the session %s what the real server sent', async (name, differences) => {
    const replay = new Replay(name, differences);
    await replay.play();
    if (replay.peer.length > 0) replay.expectReceived();
  });
});

/** The Request-URI of a proxied request is the target that the application ordered (RFC 3261 §16.6 step 2); theirs stays. */
const TARGET_IN_URI: Differences = [
  [/^(INVITE|MESSAGE) sip:service@example\.org (SIP\/2\.0\r\nVia: SIP\/2\.0\/UDP 127\.0\.0\.1:25060)/, '$1 sip:peer@127.0.0.1:19614 $2'],
];

describe('[control protocol] the SIP server, with both ends of the session recorded,', () => {
  const TOLD = ['CSeq', 'Route', 'Session-Expires', 'Reason'];
  const told = (text: string): string[] => [startOf(text), ...TOLD.map((name) => headerOf(text, name))];
  const kindOf = (payload: string): string =>
    payload
      .split('\r\n', 2)
      .map((line, index) => (index === 0 ? line.split('|')[1] : line))
      .join(' ');

  it.each([
    ['51-se-90-no-refresher-default-none', NONE],
    ['51-se-90-uac-no-refresh', NONE],
    ['51-se-90-uac-plain-reinvite', NONE],
    ['51-se-90-uas-refresh', NONE],
    ['53-proxy-route-self', TARGET_IN_URI],
  ])('sends in the session %s what the real server sent', async (name, differences) => {
    const { toApp, toPeer } = await playLines(name, differences);
    expect(toPeer.ours.map(told)).toEqual(toPeer.theirs.map(told));
    // The recordings end before the last answer frame.
    const shown = (frames: readonly string[]): string[] => frames.map(kindOf).filter((kind) => kind.startsWith('sip '));
    expect(shown(toApp.ours)).toEqual(shown(toApp.theirs));
  });
});
