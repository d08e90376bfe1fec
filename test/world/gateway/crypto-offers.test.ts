import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { KEY, offerSdp, OTHER_KEY } from '../../support/sdp.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';

const NUMBER = '+15550100100';
const SUITE = 'AES_CM_128_HMAC_SHA1_80';
const USUAL = `inline:${KEY}`;
const SHORT_KEY = Buffer.alloc(29, 7).toString('base64');

let peer: SipPeer;
withWorld((site) => ({ peer } = site));

/** The a=crypto lines of the answer, without the key, or the refusal's code. */
async function answeredKeys(...crypto: readonly string[]): Promise<readonly string[] | string> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(offerSdp({ crypto }));
  const answer = await call.final();
  if (answer.status !== 200) return `${String(answer.status)} ${/"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? ''}`;
  call.ack(answer);
  await call.hangUp(answer);
  const lines = answer.body.match(/^a=crypto:.*(?=\r$)/gm) ?? [];
  // A key of our own, not the one that came.
  for (const line of lines) expect(line).not.toContain(KEY);
  return lines.map((line) => line.replace(/inline:[A-Za-z0-9+/]{40}/, 'inline:*'));
}

describe('the answer to an offer of SRTP keys', () => {
  it.each([
    ['the second line has the suite', '2', [`1 AEAD_AES_256_GCM inline:${'A'.repeat(59)}=`, `2 ${SUITE} ${USUAL}`]],
    ['the tag 1 stands behind the tag 2', '2', [`2 ${SUITE} ${USUAL}`, `1 ${SUITE} inline:${OTHER_KEY}`]],
    ['the tag 0', '0', [`0 ${SUITE} ${USUAL}`]],
    ['a tag of nine digits', '999999999', [`999999999 ${SUITE} ${USUAL}`]],
    ['a tag with zeros before it', '007', [`007 ${SUITE} ${USUAL}`]],
    ['a lifetime of 2^31', '1', [`1 ${SUITE} ${USUAL}|2^31`]],
    ['a lifetime as a number', '1', [`1 ${SUITE} ${USUAL}|1048576`]],
    ['a lifetime and an MKI of 4 bytes', '1', [`1 ${SUITE} ${USUAL}|2^20|1:4`]],
    ['one without an MKI behind one with', '2', [`1 ${SUITE} ${USUAL}|1:4`, `2 ${SUITE} inline:${OTHER_KEY}`]],
    ['the session parameter WSH', '1', [`1 ${SUITE} ${USUAL} WSH=64`]],
    ['KDR=4 on the first, a good second', '2', [`1 ${SUITE} ${USUAL} KDR=4`, `2 ${SUITE} inline:${OTHER_KEY}`]],
    ['UNENCRYPTED_SRTP on the first, a good second', '2', [`1 ${SUITE} ${USUAL} UNENCRYPTED_SRTP`, `2 ${SUITE} inline:${OTHER_KEY}`]],
    ['a key of 29 bytes, then a good one', '2', [`1 ${SUITE} inline:${SHORT_KEY}`, `2 ${SUITE} ${USUAL}`]],
  ])(
    '[4568 §5.1.2] has one line, with the chosen tag and no parameter that was not asked for: %s, so tag %s',
    async (_what, tag, crypto) => {
      expect(await answeredKeys(...crypto)).toEqual([`a=crypto:${tag} ${SUITE} inline:*`]);
    },
  );

  it.each([
    ['the tag twice', [`1 ${SUITE} ${USUAL}`, `1 ${SUITE} inline:${OTHER_KEY}`]],
    ['the same tag with and without a zero', [`1 ${SUITE} ${USUAL}`, `01 ${SUITE} inline:${OTHER_KEY}`]],
    ['a tag of ten digits', [`1000000000 ${SUITE} ${USUAL}`]],
    ['a key of 29 bytes', [`1 ${SUITE} inline:${SHORT_KEY}`]],
    ['a key that is not base64', [`1 ${SUITE} inline:${'*'.repeat(40)}`]],
    ['KDR=1', [`1 ${SUITE} ${USUAL} KDR=1`]],
    ['UNENCRYPTED_SRTP', [`1 ${SUITE} ${USUAL} UNENCRYPTED_SRTP`]],
    ['UNENCRYPTED_SRTCP', [`1 ${SUITE} ${USUAL} UNENCRYPTED_SRTCP`]],
    ['UNAUTHENTICATED_SRTP', [`1 ${SUITE} ${USUAL} UNAUTHENTICATED_SRTP`]],
    ['an MKI that does not fit its length', [`1 ${SUITE} ${USUAL}|256:1`]],
    ['two keys on a line', [`1 ${SUITE} ${USUAL}|1:4;inline:${OTHER_KEY}|2:4`]],
    ['the suite with the short tag alone', [`1 AES_CM_128_HMAC_SHA1_32 ${USUAL}`]],
  ])('[4568 §6.1] is 488 SRTP_SUITE_UNSUPPORTED for %s', async (_what, crypto) => {
    expect(await answeredKeys(...crypto)).toBe('488 SRTP_SUITE_UNSUPPORTED');
  });
});

describe('a re-INVITE with another SRTP key', () => {
  it('[4568 §6.4] opens audio with that key', async () => {
    const first = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(first.sdp());
    first.connect(ok.body);
    await first.hearsEcho(3_000);
    const second = await CallEnd.open();
    const rekeyed = await call.request('INVITE', ok, second.sdp());
    second.connect(rekeyed.body);
    call.ack(rekeyed);
    await second.hearsEcho(-3_000);
    await call.hangUp(ok);
    await Promise.all([first.close(), second.close()]);
  });
});
