import { describe, expect, it } from 'vitest';
import { challengesOf, judgeCredentials } from '../../../../src/gateway/admission/challenge.js';
import { chooseChallenges, digestAnswer } from '../../../../src/lib/digest-access.js';

const CREDENTIALS = { username: 'carrier', password: 's3 cret' };
const SCOPE = { secret: 'of the organization', number: '+15551234567' };
const NOW_MS = Date.UTC(2026, 0, 1);
const URI = 'sip:+15551234567@gateway.example';

/** The answer to the challenge of a gateway with this name, at this time. */
function answered({ scope = SCOPE, realm = 'one.example', atMs = NOW_MS, uri = URI, method = 'INVITE' } = {}): string {
  const [challenge] = chooseChallenges(challengesOf(scope, realm, atMs, false));
  if (challenge === undefined) throw new Error('there is no challenge that can be answered');
  return digestAnswer(challenge, CREDENTIALS, { method, uri, count: 1, cnonce: 'c0ffee' });
}

const verdict = (...values: readonly string[]): string => judgeCredentials(values, URI, CREDENTIALS, SCOPE, NOW_MS);

describe('an answer to a challenge of ours', () => {
  it('is right at every gateway, whichever challenged', () => {
    for (const realm of ['one.example', 'two.example']) expect(verdict(answered({ realm }))).toBe('right');
  });

  it.each([
    [-60_000, 'right'],
    [-60_001, 'stale'],
    [300_000, 'right'],
    [300_001, 'stale'],
  ])('whose nonce is %i ms old is %s', (ageMs, expected) => {
    expect(verdict(answered({ atMs: NOW_MS - ageMs }))).toBe(expected);
  });

  it.each([
    ['another number', { ...SCOPE, number: '+15550000000' }],
    ['another organization', { ...SCOPE, secret: 'other' }],
  ])('with the nonce of %s is stale', (_what, scope) => {
    expect(verdict(answered({ scope }))).toBe('stale');
  });

  it.each([
    ['SIP:+15551234567@GATEWAY.example;transport=tls', 'right'],
    ['sips:+15551234567@gateway.example', 'wrong'],
    ['sip:+15551234567@gateway.example:5061', 'wrong'],
    ['sip:gateway.example', 'wrong'],
    ['', 'wrong'],
  ])('for the URI %s is %s', (uri, expected) => {
    expect(verdict(answered({ uri }))).toBe(expected);
  });

  it('for another method is wrong', () => {
    expect(verdict(answered({ method: 'BYE' }))).toBe('wrong');
  });

  it.each([
    'Digest',
    'Basic Zm9vOmJhcg==',
    answered().replace('qop=auth', 'qop=auth-int'),
    answered().replace(/, qop=.*/, ''),
    answered().replace('SHA-256', 'SHA-512-256'),
    answered().replace(/response="[^"]*"/, 'response=""'),
    answered().replace(/response="[^"]*"/, 'response="é"'),
    `${answered()}, opaque="${'x'.repeat(8_192)}"`,
  ])('is wrong as %s', (value) => {
    expect(verdict(value)).toBe('wrong');
  });

  it('is not looked for behind many others', () => {
    expect(verdict(...Array<string>(7).fill('Digest realm="other"'), answered())).toBe('right');
    expect(verdict(...Array<string>(8).fill('Digest realm="other"'), answered())).toBe('wrong');
  });

  it('is missing without the header', () => {
    expect(verdict()).toBe('missing');
  });
});
