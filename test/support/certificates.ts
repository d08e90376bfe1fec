import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export interface TestCertificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly caFile: string;
}

const FIXTURES = new URL('../fixtures/tls/', import.meta.url);

/** A CA and a certificate of it for localhost and 127.0.0.1, good for a hundred years. */
export async function testCertificates(): Promise<TestCertificates> {
  const [ca, cert, key] = await Promise.all(['ca', 'cert', 'key'].map((name) => readFile(new URL(`${name}.pem`, FIXTURES), 'utf8')));
  return { ca: ca!, cert: cert!, key: key!, caFile: fileURLToPath(new URL('ca.pem', FIXTURES)) };
}
