import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { VerifiedIdentity } from '../../../../src/gateway/model/verified-identity.js';
import { CertificateRepository } from '../../../../src/gateway/stir/certificate-repository.js';
import { certificatesOf } from '../../../../src/gateway/stir/credential.js';
import { StirVerifier } from '../../../../src/gateway/stir/verifier.js';
import { NUMBER } from '../../../support/route.js';
import {
  CALLED,
  CALLER,
  identityHeader,
  oneNumber,
  signatureOf,
  SPC,
  StirAuthority,
  type Said,
  type Signer,
} from '../../../support/stir.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// Certificates by OpenSSL, signatures by Node.js, a real HTTP server; time is the test's own.

const URIS = [`sip:+${CALLER}@carrier.example;user=phone`];

let authority: StirAuthority;
let signer: Signer;
let clock: VirtualClock;
let verifier: StirVerifier;

beforeAll(async () => {
  authority = await StirAuthority.create();
  signer = await authority.signer();
});

afterAll(() => authority.close());

beforeEach(async () => {
  clock = new VirtualClock();
  // A certificate that is issued during the test is valid from that second on.
  clock.advance(Date.now() + 5_000 - clock.wallMs());
  authority.asked.length = 0;
  authority.serve(() => ({ status: 200, body: signer.chain }));
  verifier = await verifierOf();
});

async function verifierOf(allowPrivate = true): Promise<StirVerifier> {
  const roots = certificatesOf(await readFile(authority.rootsFile, 'utf8'));
  return new StirVerifier({
    certificates: new CertificateRepository({ roots, allowPrivate, caPem: null, timeoutMs: 2_000, clock }),
    maxAgeMs: 60_000,
    clock,
  });
}

function verified(header: string | undefined, more: { callers?: string[]; date?: string } = {}): Promise<VerifiedIdentity | null> {
  return verifier.verify({ header, date: more.date, callers: more.callers ?? URIS, called: NUMBER });
}

const signed = (said: Said = {}, by = signer): string => identityHeader(by.key, authority.url('cert.pem'), clock.wallMs(), said);

async function verdictOf(header: string | undefined, more: { callers?: string[]; date?: string } = {}): Promise<string | undefined> {
  return (await verified(header, more))?.verdict;
}

describe('[8224 §6.2] an Identity header', () => {
  it('from a trusted signer for this call is valid, with attestation, origid and signer', async () => {
    const origid = '7c7a2c9b-7bb6-4e29-8f3f-1d8cb9a3a001';
    expect(await verified(signed({ claims: { attest: 'B', origid } }))).toEqual({
      verdict: 'valid',
      detail: null,
      attestation: 'B',
      origid,
      signer: expect.stringContaining('CN=signer-1') as unknown,
    });
  });

  it('counts when it is SHAKEN among several, and unknown types do not count', async () => {
    const other = 'a.b.c;info=<https://x/>;ppt="div"';
    expect(await verdictOf(`${other}, ${signed()}`)).toBe('valid');
    expect(await verdictOf(other)).toBe('missing');
    expect(await verdictOf(undefined)).toBe('missing');
    expect(await verdictOf('rubbish')).toBe('invalid');
  });

  it('from more than a minute ago, or a minute ahead, is stale, and nothing is fetched', async () => {
    for (const awayMs of [-62_000, 62_000]) {
      const header = identityHeader(signer.key, authority.url('cert.pem'), clock.wallMs() + awayMs);
      expect(await verdictOf(header)).toBe('stale');
    }
    expect(authority.asked).toEqual([]);
    expect(await verdictOf(identityHeader(signer.key, authority.url('cert.pem'), clock.wallMs() - 58_000))).toBe('valid');
  });

  it.each<[string, Said]>([
    ['another caller', { claims: { orig: { tn: '15550100998' } } }],
    ['another called number', { claims: { dest: { tn: ['15550100101'] } } }],
    ['no attestation', { claims: { attest: undefined } }],
    ['an unknown attestation', { claims: { attest: 'D' } }],
    ['an invalid origid', { claims: { origid: 'x' } }],
    ['a certificate other than the one that it names', { head: { x5u: 'https://elsewhere.example/' } }],
    ['another algorithm', { head: { alg: 'none' } }],
    ['another type', { head: { ppt: 'div' } }],
    ['no passport type', { head: { typ: 'JWT' } }],
    ['no time', { claims: { iat: 'now' } }],
  ])('with %s is invalid', async (_what, said) => {
    expect(await verdictOf(signed(said))).toBe('invalid');
  });

  it('for one of several called numbers, and for one of the callers of P-Asserted-Identity and From, is valid', async () => {
    expect(await verdictOf(signed({ claims: { dest: { tn: ['15550100101', `+${CALLED}`] } } }))).toBe('valid');
    expect(await verdictOf(signed(), { callers: ['sip:anonymous@anonymous.invalid', `tel:+1-555-010-0999;ext=1`] })).toBe('valid');
    expect(await verdictOf(signed(), { callers: ['sip:anonymous@anonymous.invalid'] })).toBe('invalid');
  });

  it('that was changed after it was signed is invalid', async () => {
    const [head = '', , signature = ''] = signed().split(';')[0]!.split('.');
    const claims = Buffer.from(
      JSON.stringify({
        attest: 'A',
        dest: { tn: [CALLED] },
        iat: Math.floor(clock.wallMs() / 1_000),
        orig: { tn: CALLER },
        origid: crypto.randomUUID(),
      }),
    ).toString('base64url');
    const rest = `;info=<${authority.url('cert.pem')}>;alg=ES256;ppt="shaken"`;
    expect(await verdictOf(`${head}.${claims}.${signature}${rest}`)).toBe('invalid');
    const stranger = await authority.signer();
    expect(await verdictOf(identityHeader(stranger.key, authority.url('cert.pem'), clock.wallMs()))).toBe('invalid');
  });

  it('[8225 §7] in the compact form has the claims of the request, with its Date', async () => {
    const url = authority.url('cert.pem');
    const iat = Math.floor(clock.wallMs() / 1_000);
    const parts = [
      { alg: 'ES256', typ: 'passport', x5u: url },
      { dest: { tn: [CALLED] }, iat, orig: { tn: CALLER } },
    ];
    const input = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const header = `..${signatureOf(signer.key, input)};info=<${url}>;alg=ES256`;
    const date = new Date(iat * 1_000).toUTCString();
    expect(await verified(header, { date })).toMatchObject({ verdict: 'valid', attestation: null });
    expect(await verdictOf(header, { date: new Date(iat * 1_000 + 1_000).toUTCString() })).toBe('invalid');
    expect(await verdictOf(header)).toBe('invalid');
    expect(await verdictOf(`${header};ppt=shaken`, { date })).toBe('invalid');
  });
});

describe('[8226] a certificate', () => {
  it.each<[string, readonly string[] | null, string]>([
    ['of the number', [oneNumber(CALLER)], 'valid'],
    ['of another number', [oneNumber('15550100998')], 'credential'],
    ['of a range with the number in it', ['EXPLICIT:1,SEQUENCE:tn_range'], 'valid'],
    ['of a service provider', [SPC], 'valid'],
    ['of one of several', [oneNumber('15550100998'), oneNumber(CALLER)], 'valid'],
    ['without a TN authorization list', null, 'credential'],
  ])('[8226 §9] is judged by its TN authorization list: %s', async (_what, tnAuthList, verdict) => {
    const other = await authority.signer({ tnAuthList });
    authority.serve(() => ({ status: 200, body: other.chain }));
    expect(await verdictOf(signed({}, other))).toBe(verdict);
  });

  it.each<[string, Parameters<StirAuthority['signer']>[0]]>([
    ['that has expired', { days: 0 }],
    ['of a CA', { isCa: true }],
    ['with a key of another curve', { curve: 'secp384r1' }],
  ])('%s is not accepted', async (_what, options) => {
    const other = await authority.signer(options);
    authority.serve(() => ({ status: 200, body: other.chain }));
    expect(await verdictOf(signed({}, other))).toBe('credential');
  });

  it('of an untrusted CA, or of a certificate that may not be one, is not accepted', async () => {
    const stranger = await StirAuthority.create();
    const strange = await stranger.signer();
    await stranger.close();
    authority.serve(() => ({ status: 200, body: strange.chain }));
    expect(await verdictOf(signed({}, strange))).toBe('credential');
    // The intermediate allows no CA below it.
    const below = await authority.signer({ isCa: true });
    const deep = await authority.signer({}, (below as { name: string }).name);
    authority.serve(() => ({ status: 200, body: deep.chain }));
    expect(await verdictOf(identityHeader(deep.key, authority.url('deep.pem'), clock.wallMs()))).toBe('credential');
  });

  it('is fetched once for many calls, again when its time is over, and not again at once after a failure', async () => {
    authority.serve(() => ({ status: 200, body: signer.chain, headers: { 'cache-control': 'public, max-age=100' } }));
    expect(await Promise.all([verdictOf(signed()), verdictOf(signed()), verdictOf(signed())])).toEqual(['valid', 'valid', 'valid']);
    clock.advance(99_000);
    expect(await verdictOf(signed())).toBe('valid');
    expect(authority.asked).toEqual(['/cert.pem']);
    clock.advance(2_000);
    authority.serve(() => ({ status: 500, body: 'no' }));
    expect(await verified(signed())).toMatchObject({ verdict: 'bad-info', detail: 'The certificate repository answered 500.' });
    expect(await verdictOf(signed())).toBe('bad-info');
    expect(authority.asked).toHaveLength(2);
    clock.advance(30_000);
    authority.serve(() => ({ status: 200, body: signer.chain }));
    expect(await verdictOf(signed())).toBe('valid');
  });

  it('is not accepted when it is malformed, a redirect or too long', async () => {
    for (const [answer, verdict] of [
      [{ status: 200, body: 'hello' }, 'credential'],
      [{ status: 302, body: '', headers: { location: authority.url('other.pem') } }, 'bad-info'],
      [{ status: 200, body: 'x'.repeat(100_000) }, 'bad-info'],
    ] as const) {
      authority.serve(() => answer);
      expect(await verdictOf(identityHeader(signer.key, authority.url(crypto.randomUUID()), clock.wallMs()))).toBe(verdict);
    }
    expect(authority.asked).toHaveLength(3);
  });

  it('at a private address, by plain http, or with a password in its URL is not fetched', async () => {
    verifier = await verifierOf(false);
    for (const url of [
      authority.url('a'),
      'https://127.0.0.1:1/',
      'https://[::1]/',
      'https://localhost/',
      'https://u:p@example.com/',
      'ftp://x/',
    ])
      expect(await verdictOf(identityHeader(signer.key, url, clock.wallMs()))).toBe('bad-info');
    expect(authority.asked).toEqual([]);
  });

  it('is not fetched without roots: a claim is reported as unverified, and no header as null', async () => {
    verifier = new StirVerifier({ certificates: null, maxAgeMs: 60_000, clock });
    expect(await verified(signed())).toMatchObject({ verdict: 'unverified', attestation: 'A', signer: null });
    expect(await verified(undefined)).toBeNull();
    expect(authority.asked).toEqual([]);
  });
});
