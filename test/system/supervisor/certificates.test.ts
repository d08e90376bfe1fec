import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureCertificates, type CertificateFiles } from '../../../src/tls/certificates.js';

const DAY_MS = 24 * 3_600_000;
const HOSTS = ['localhost', '127.0.0.1'];

let directory: string;
let files: CertificateFiles;
const nowMs = Date.now();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'trunkline-certificates-'));
  files = await ensureCertificates(directory, HOSTS, nowMs);
});

afterAll(() => rm(directory, { recursive: true, force: true }));

const read = async (file: string): Promise<X509Certificate> => new X509Certificate(await readFile(file));

/** The serial numbers after another start at this time, with these names. */
async function again(hosts: readonly string[], atMs: number): Promise<{ ca: string; server: string }> {
  await ensureCertificates(directory, hosts, atMs);
  return { ca: (await read(files.caFile)).serialNumber, server: (await read(files.certFile)).serialNumber };
}

it('the supervisor issues a CA and a server certificate signed by it, for the names, with keys that only the owner can read', async () => {
  const [ca, server] = [await read(files.caFile), await read(files.certFile)];
  expect([ca.ca, server.ca, server.verify(ca.publicKey)]).toEqual([true, false, true]);
  expect(server.subjectAltName).toBe('DNS:localhost, IP Address:127.0.0.1');
  expect((await readFile(files.certFile, 'utf8')).match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  for (const key of ['ca-key.pem', 'server-key.pem']) expect((await stat(join(directory, key))).mode & 0o777).toBe(0o600);
  expect((await readdir(directory)).filter((name) => /\.(csr|ext|crt|new)$/.test(name))).toEqual([]);
});

it('the supervisor keeps CA and server certificate while they are valid', async () => {
  const before = await again(HOSTS, nowMs);
  expect(await again(['localhost'], nowMs + 300 * DAY_MS)).toEqual(before);
});

it.each([
  ['a name is missing', [...HOSTS, 'sip.example.org'], 0],
  ['it expires within 30 days', HOSTS, 370],
])('the supervisor issues a new server certificate of the same CA when %s', async (_what, hosts, days) => {
  const before = await again(HOSTS, nowMs);
  const after = await again(hosts, nowMs + days * DAY_MS);
  expect(after.ca).toBe(before.ca);
  expect(after.server).not.toBe(before.server);
});

it('the supervisor issues new ones when the key of the CA is missing', async () => {
  const before = await again(HOSTS, nowMs);
  await rm(join(directory, 'ca-key.pem'));
  const after = await again(HOSTS, nowMs);
  expect(after.ca).not.toBe(before.ca);
  expect((await read(files.certFile)).verify((await read(files.caFile)).publicKey)).toBe(true);
});

it('the supervisor issues a new server certificate when its key is missing', async () => {
  const before = await again(HOSTS, nowMs);
  await rm(files.keyFile);
  const after = await again(HOSTS, nowMs);
  expect([after.ca === before.ca, after.server === before.server]).toEqual([true, false]);
});
