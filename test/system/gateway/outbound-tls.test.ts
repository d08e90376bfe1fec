import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureCertificates } from '../../../src/tls/certificates.js';
import { testCertificates } from '../../support/certificates.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { OutboundTrunk } from '../../support/outbound-trunk.js';
import { respond } from '../../support/sip-message.js';

let site: OutboundSite;
/** A carrier with a CA of its own, which wants to see a certificate of another one. */
let carrier: OutboundTrunk;
let pem: { readonly carrierCa: string; readonly certificate: string; readonly key: string };
/** Names in the certificates that it was shown. */
const shown: (string | undefined)[] = [];

beforeAll(async () => {
  const [theirs, ours] = await Promise.all(
    ['carrier.example', 'customer.example'].map(async (name) => {
      const files = await ensureCertificates(await mkdtemp(join(tmpdir(), 'trunkline-test-')), [name], Date.now());
      const [ca, cert, key] = await Promise.all([files.caFile, files.certFile, files.keyFile].map((file) => readFile(file, 'utf8')));
      return { ca: ca!, cert: cert!, key: key! };
    }),
  );
  pem = { carrierCa: theirs!.ca, certificate: ours!.cert, key: ours!.key };
  carrier = await OutboundTrunk.open({
    cert: theirs!.cert,
    key: theirs!.key,
    ca: ours!.ca,
    requestCert: true,
    rejectUnauthorized: true,
    onConnection: (socket: TLSSocket) => void shown.push(socket.getPeerCertificate().subjectaltname),
  });
  site = await OutboundSite.start(true, { TRUNKLINE_TRUNKS_TRUSTED_HOSTS: '[127.0.0.1]' });
});
afterAll(async () => {
  await site.destroy();
  await carrier.close();
});

const update = (options: object): Promise<{ status: number; json: Record<string, unknown> }> =>
  site.gateway.api('POST', '/sip/update', {
    phone_number: FROM,
    updates: { type: 'outbound', sip_endpoint: carrier.endpoint, ...options },
  });

const ownCertificate = (): object => ({ client_certificate: { certificate: pem.certificate, key: pem.key } });

async function failedCall(): Promise<object> {
  const { json } = await site.place();
  return await site.ended(String(json['call_id']));
}

const unreachable = (why: RegExp): object => ({
  reason: 'TRUNK_UNREACHABLE',
  signalling_error: expect.stringMatching(new RegExp(`^INVITE: 127\\.0\\.0\\.1:\\d+ .*${why.source}`)) as unknown,
});
const CERTIFICATE = /; its subject is .*carrier\.example.*, its issuer .+, valid until 20\d\d-/;

describe('a trunk with a private CA', () => {
  it.each([
    ['without its CA', /self-signed.*\(SELF_SIGNED_CERT_IN_CHAIN\)/, CERTIFICATE, () => ownCertificate()],
    [
      'without the name in its certificate',
      /not match.*\(ERR_TLS_CERT_ALTNAME_INVALID\)/,
      CERTIFICATE,
      () => ({ ca: pem.carrierCa, ...ownCertificate() }),
    ],
    [
      'with another name',
      /other\.example.*\(ERR_TLS_CERT_ALTNAME_INVALID\)/,
      CERTIFICATE,
      () => ({ ca: pem.carrierCa, tls_names: ['other.example'], ...ownCertificate() }),
    ],
    [
      'without a certificate of ours',
      /ended TLS with alert 116/,
      /: it wants a certificate of ours$/,
      () => ({ ca: pem.carrierCa, tls_names: ['carrier.example'] }),
    ],
  ])('[5922 §7] gets no call %s, and the record says what failed', async (_what, check, certificate, options) => {
    expect((await update({ ca: null, tls_names: null, client_certificate: null, ...options() })).status).toBe(200);
    expect(await failedCall()).toMatchObject(unreachable(new RegExp(check.source + '.*' + certificate.source)));
    expect(carrier.invited).toEqual([]);
  });

  it('[5922 §7] gets calls with CA, name and client certificate, whose key appears nowhere', async () => {
    const { json } = await update({ ca: pem.carrierCa, tls_names: ['other.example', 'carrier.example'], ...ownCertificate() });
    expect(json['data']).toMatchObject({ outbound: { ca: pem.carrierCa, client_certificate: { certificate: pem.certificate } } });
    const answer = await site.place();
    const callId = String(answer.json['call_id']);
    const call = await carrier.call();
    expect(shown).toEqual(['DNS:customer.example']);
    expect(call.invite.text).not.toMatch(/X-Trunkline/i);
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await site.gateway.api('POST', `/v1/calls/${callId}/stop`, {});
    const bye = await call.request('BYE');
    expect(bye.text).not.toMatch(/X-Trunkline/i);
    respond(call.peer, bye, '200 OK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED' });
    const { json: trace } = await site.gateway.api('GET', `/v1/calls/${callId}/trace`);
    const { json: number } = await site.gateway.api('GET', `/sip?inbound_id=${FROM.slice(1)}`);
    const { json: audit } = await site.gateway.api('GET', '/v1/audit?take=100');
    const logs = await Promise.all(['gateway', 'sip-server'].map((name) => site.gateway.log(name)));
    const secret = pem.key.split('\n')[3]!;
    for (const text of [JSON.stringify([json, trace, number, audit]), ...logs]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(4, 40));
    }
    await end.close();
  });

  it('keeps its options when another changes, and loses those set to null', async () => {
    const { json } = await update({ username: 'acme', tls_names: null });
    expect(json['data']).toMatchObject({ outbound: { username: 'acme', ca: pem.carrierCa, client_certificate: {} } });
    expect((json['data'] as { outbound: object }).outbound).not.toHaveProperty('tls_names');
    expect(await failedCall()).toMatchObject(unreachable(CERTIFICATE));
  });

  it('gets 400 for a certificate that is none, and for the key of another', async () => {
    const { key } = await testCertificates();
    const bad = { ca: 'none', tls_names: ['a b'], client_certificate: { certificate: pem.certificate, key }, caller_id_header: 'X' };
    const { status, json } = await update(bad);
    const paths = (json['errors'] as { path: string }[]).map(({ path }) => path);
    expect([status, paths.sort()]).toEqual([
      400,
      ['updates.ca', 'updates.caller_id_header', 'updates.client_certificate.key', 'updates.tls_names[0]'],
    ]);
  });
});

describe('[3325 §5] the header P-Asserted-Identity', () => {
  const asserted = async (endpoint: string, options: object): Promise<string | undefined> => {
    await update({ sip_endpoint: endpoint, ca: null, tls_names: null, client_certificate: null, username: null, ...options });
    const { callId, call } = await site.placed();
    call.respond('486 Busy Here');
    await site.ended(callId);
    return call.invite.header('P-Asserted-Identity');
  };

  it('is sent when the trunk is set to it', async () => {
    expect(await asserted(site.trunk.endpoint, {})).toBeUndefined();
    expect(await asserted(site.trunk.endpoint, { caller_id_header: 'P-Asserted-Identity' })).toBe(`<sip:${FROM}@127.0.0.1>`);
    expect(await asserted(site.trunk.endpoint, { caller_id_header: 'From' })).toBeUndefined();
  });

  it('is refused for a trunk that the operator does not trust', async () => {
    await update({ sip_endpoint: 'other.example', caller_id_header: 'P-Asserted-Identity' });
    const { status, json } = await site.place();
    expect([status, json['message']]).toEqual([403, expect.stringMatching(/trunks\.trusted_hosts/)]);
  });
});
