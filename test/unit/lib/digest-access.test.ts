import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { chooseChallenges, digestAnswer, type DigestChallenge } from '../../../src/lib/digest-access.js';

const partsOf = (answer: string): Record<string, string> =>
  Object.fromEntries(
    [...answer.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,]+))/g)].map(([, name = '', text, token]) => [name, text ?? token ?? '']),
  );

const RFC7616 = {
  credentials: { username: 'Mufasa', password: 'Circle of Life' },
  request: { method: 'GET', uri: '/dir/index.html', count: 1, cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ' },
  headers: [
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"',
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"',
  ],
};

const challengeOf = (...values: string[]): DigestChallenge => {
  const challenge = chooseChallenges(values)[0];
  if (challenge === undefined) throw new Error('there is no challenge that can be answered');
  return challenge;
};

describe('an answer to a challenge', () => {
  it('[7616 §3.9.1] equals the example, with SHA-256 and with MD5', () => {
    const [sha256 = '', md5 = ''] = RFC7616.headers;
    const answer = digestAnswer(challengeOf(sha256), RFC7616.credentials, RFC7616.request);
    expect(partsOf(answer)).toEqual({
      username: 'Mufasa',
      realm: 'http-auth@example.org',
      uri: '/dir/index.html',
      algorithm: 'SHA-256',
      nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
      nc: '00000001',
      cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
      qop: 'auth',
      response: '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1',
      opaque: 'FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS',
    });
    expect(partsOf(digestAnswer(challengeOf(md5), RFC7616.credentials, RFC7616.request))['response']).toBe(
      '8ca523f5e9506fed4657c9700eebdbec',
    );
  });

  it('[2617 §3.5] equals the older example', () => {
    const challenge = challengeOf(
      'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"',
    );
    const answer = digestAnswer(
      challenge,
      { username: 'Mufasa', password: 'Circle Of Life' },
      { method: 'GET', uri: '/dir/index.html', count: 1, cnonce: '0a4f113b' },
    );
    expect(partsOf(answer)).toMatchObject({ response: '6629fae49393a05397450978507c4ef1', algorithm: 'MD5' });
  });

  it('[2069 §2.4] has no cnonce where the challenge has no qop', () => {
    // RFC 2069, with the response of its erratum 749.
    const challenge = challengeOf('Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"');
    const answer = digestAnswer(
      challenge,
      { username: 'Mufasa', password: 'CircleOfLife' },
      { method: 'GET', uri: '/dir/index.html', count: 1, cnonce: 'x' },
    );
    expect(partsOf(answer)).toMatchObject({ response: '1949323746fe6a43ef61f9606e7febea' });
    expect(answer).not.toMatch(/cnonce|nc=|qop/);
  });

  it('[7616 §3.4] counts in hex, and escapes what is quoted', () => {
    const answer = digestAnswer(
      challengeOf('Digest realm="a \\"b\\"", nonce="n", qop=auth'),
      { username: 'back\\slash', password: 'p' },
      { method: 'INVITE', uri: 'sip:a@b', count: 27, cnonce: 'c' },
    );
    expect(answer).toContain('username="back\\\\slash", realm="a \\"b\\""');
    expect(answer).toContain('nc=0000001b');
  });
});

describe('the challenge that is answered', () => {
  it('[8760 §2.4] is the topmost that is supported, in one header or several', () => {
    expect(challengeOf(...RFC7616.headers).algorithm).toBe('SHA-256');
    expect(challengeOf(...[...RFC7616.headers].reverse()).algorithm).toBe('MD5');
    expect(challengeOf('Digest realm="a", nonce="1", algorithm=SHA3, Digest realm="b", nonce="2", algorithm=md5').realm).toBe('b');
    expect(challengeOf('Basic realm="x", Digest realm="a", nonce="1"').realm).toBe('a');
    expect(challengeOf('Negotiate abc, DIGEST realm="a",nonce="1"').realm).toBe('a');
  });

  it('has the realm of the trunk, if one is set', () => {
    const values = ['Digest realm="a", nonce="1"', 'Digest realm="b", nonce="2"'];
    expect(chooseChallenges(values, 'b')[0]?.nonce).toBe('2');
    expect(chooseChallenges(values, 'c')).toEqual([]);
  });

  it.each([
    ['no nonce', 'Digest realm="a"'],
    ['no realm', 'Digest nonce="a"'],
    ['qop auth-int alone', 'Digest realm="a", nonce="1", qop="auth-int"'],
    ['a session key without a cnonce', 'Digest realm="a", nonce="1", algorithm=MD5-sess'],
    ['another scheme', 'Basic realm="a"'],
    ['nothing', ''],
    ['a line break', 'Digest realm="a\nX-Evil: 1", nonce="1"'],
    ['a quote that never ends', 'Digest realm="a, nonce="1'],
    ['too many characters', `Digest realm="${'a'.repeat(9_000)}", nonce="1"`],
  ])('is missing with %s', (_what, value) => {
    expect(chooseChallenges([value])).toEqual([]);
  });

  it('[7616 §3.3] reports when only the nonce is stale', () => {
    expect(challengeOf('Digest realm="a", nonce="2", stale=TRUE').isStale).toBe(true);
    expect(challengeOf('Digest realm="a", nonce="2"').isStale).toBe(false);
  });

  it('[7616 §3.4.2] may have a session key', () => {
    const challenge = challengeOf('Digest realm="a", nonce="n", algorithm=SHA-256-sess, qop="auth"');
    expect(challenge).toMatchObject({ algorithm: 'SHA-256', isSession: true });
    expect(digestAnswer(challenge, { username: 'u', password: 'p' }, { method: 'M', uri: 'u', count: 1, cnonce: 'c' })).toContain(
      'algorithm=SHA-256-sess',
    );
  });

  it('[3261 §22.3] is one of each realm, four at most', () => {
    const values = ['a', 'b', 'a', 'c', 'd', 'e'].map((realm, index) => `Digest realm="${realm}", nonce="${String(index)}"`);
    expect(chooseChallenges(values).map(({ realm, nonce }) => `${realm}${nonce}`)).toEqual(['a0', 'b1', 'c3', 'd4']);
  });

  it.each([
    ['spaces around the equals sign', 'Digest realm = "a" ,  nonce\t=\t"1"', {}],
    ['values without quotes', 'Digest realm=a, nonce=1, opaque=o', { opaque: 'o' }],
    ['names in capitals', 'Digest REALM="a", Nonce="1", QOP="AUTH"', { hasQop: true }],
    ['a name that occurs twice: the first counts', 'Digest realm="a", realm="b", nonce="1", nonce="2"', {}],
    ['a scheme without parameters before it', 'Negotiate, Digest realm="a", nonce="1"', {}],
    ['parameters of another scheme behind it', 'Digest realm="a", nonce="1", Basic realm="b", opaque="c"', {}],
    ['an empty opaque', 'Digest realm="a", nonce="1", opaque=""', { opaque: '' }],
    ['more than one qop', 'Digest realm="a", nonce="1", qop="auth-int, auth"', { hasQop: true }],
    ['an algorithm in small letters', 'Digest realm="a", nonce="1", algorithm=sha-512-256', { algorithm: 'SHA-512-256' }],
    ['a length of 8192', 'Digest realm="a", nonce="1"'.padEnd(8_192), {}],
  ] as const)('is read with %s', (_what, value, more) => {
    expect(chooseChallenges([value])).toEqual([
      { realm: 'a', nonce: '1', algorithm: 'MD5', isSession: false, hasQop: false, opaque: null, isStale: false, ...more },
    ]);
  });

  it.each([
    ['another scheme that looks like it', 'Digestive realm="a", nonce="1"'],
    ['a parameter before its scheme', 'realm="a", nonce="1"'],
    ['a length of 8193', 'Digest realm="a", nonce="1"'.padEnd(8_193)],
    ['an algorithm that begins like one', 'Digest realm="a", nonce="1", algorithm=MD5x'],
    ['an algorithm that ends like one', 'Digest realm="a", nonce="1", algorithm=xMD5'],
    ['a carriage return', 'Digest realm="a\rb", nonce="1"'],
  ])('is not read with %s', (_what, value) => {
    expect(chooseChallenges([value])).toEqual([]);
  });

  it('[7616 §3.4.2] makes another key of its nonce and ours where it requests a session', () => {
    const hash = (text: string): string => createHash('md5').update(text).digest('hex');
    const key = hash(`${hash('u:a:p')}:n:c`);
    const challenge = challengeOf('Digest realm="a", nonce="n", algorithm=MD5-sess, qop="auth"');
    const answer = digestAnswer(challenge, { username: 'u', password: 'p' }, { method: 'M', uri: 'sip:b', count: 1, cnonce: 'c' });
    expect(partsOf(answer)['response']).toBe(hash(`${key}:n:00000001:c:auth:${hash('M:sip:b')}`));
    expect(answer).not.toContain('opaque');
  });
});
