import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureCertificates } from '../../src/tls/certificates.js';

export interface TestCertificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly caFile: string;
}

/** A CA and a certificate for localhost and 127.0.0.1, made once a day for all tests of a machine's user. */
export async function testCertificates(): Promise<TestCertificates> {
  const directory = join(
    tmpdir(),
    `trunkline-test-certificates-${String(process.getuid?.() ?? 0)}-${String(process.env['VITEST_POOL_ID'] ?? 0)}`,
  );
  const files = await ensureCertificates(directory, ['localhost', '127.0.0.1'], Date.now());
  const [ca, cert, key] = await Promise.all([files.caFile, files.certFile, files.keyFile].map((file) => readFile(file, 'utf8')));
  return { ca: ca!, cert: cert!, key: key!, caFile: files.caFile };
}
