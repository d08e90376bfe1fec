import { execFile } from 'node:child_process';
import { createPrivateKey, randomUUID, sign, type KeyObject } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Signer {
  readonly key: KeyObject;
  /** The signer's certificate and its intermediate, in PEM. */
  readonly chain: string;
}

export interface SignerOptions {
  /** Entries of the TN authorization list, as OpenSSL's configuration has them; `null`: there is no list. */
  readonly tnAuthList?: readonly string[] | null;
  readonly curve?: string;
  readonly days?: number;
  readonly isCa?: boolean;
}

export const SPC = 'EXPLICIT:0,IA5STRING:709J';
export const oneNumber = (digits: string): string => `EXPLICIT:2,IA5STRING:${digits}`;

/** A STIR authority of a test's own: a root, an intermediate that may have no CA below it, signers, and a repository of their certificates. */
export class StirAuthority {
  #serial = 0;
  #answer: (path: string) => { status: number; body: string; headers?: Record<string, string> } = () => ({ status: 404, body: '' });
  readonly asked: string[] = [];

  private constructor(
    private readonly directory: string,
    private readonly server: Server,
  ) {
    server.on('request', (request, response) => {
      this.asked.push(request.url ?? '');
      const { status, body, headers } = this.#answer(request.url ?? '');
      response.writeHead(status, headers).end(body);
    });
  }

  static async create(): Promise<StirAuthority> {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-stir-'));
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const authority = new StirAuthority(directory, server);
    await authority.#issue('root', null, ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign']);
    await authority.#issue('middle', 'root', ['basicConstraints=critical,CA:TRUE,pathlen:0', 'keyUsage=critical,keyCertSign,cRLSign']);
    return authority;
  }

  get rootsFile(): string {
    return this.#path('root.pem');
  }

  url(name: string): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}/${name}`;
  }

  /** What the repository answers. */
  serve(answer: (path: string) => { status: number; body: string; headers?: Record<string, string> }): void {
    this.#answer = answer;
  }

  async signer(options: SignerOptions = {}, issuer = 'middle'): Promise<Signer & { readonly name: string }> {
    const name = `signer-${String((this.#serial += 1))}`;
    const list = options.tnAuthList === undefined ? [SPC] : options.tnAuthList;
    const ca =
      options.isCa === true
        ? ['basicConstraints=critical,CA:TRUE', 'keyUsage=keyCertSign,digitalSignature']
        : ['keyUsage=digitalSignature'];
    await this.#issue(name, issuer, ca, list, options.curve, options.days);
    const [leaf, middle] = await Promise.all([readFile(this.#path(`${name}.pem`), 'utf8'), readFile(this.#path('middle.pem'), 'utf8')]);
    const above = issuer === 'middle' ? '' : await readFile(this.#path(`${issuer}.pem`), 'utf8');
    return { name, key: createPrivateKey(await readFile(this.#path(`${name}.key`))), chain: `${leaf}${above}${middle}` };
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
    await rm(this.directory, { recursive: true, force: true });
  }

  async #issue(
    name: string,
    issuer: string | null,
    extensions: readonly string[],
    tnAuthList: readonly string[] | null = null,
    curve = 'prime256v1',
    days = 2,
  ): Promise<void> {
    const list = tnAuthList === null ? [] : ['1.3.6.1.5.5.7.1.26=ASN1:SEQUENCE:tn_list'];
    const sections = [
      '[req]\ndistinguished_name=dn\n[dn]\n[ext]',
      ...extensions,
      ...list,
      '[tn_list]',
      ...(tnAuthList ?? []).map((entry, index) => `entry${String(index)}=${entry}`),
      '[tn_range]\nstart=IA5STRING:15550100000\ncount=INTEGER:1000',
    ];
    await writeFile(this.#path(`${name}.cnf`), `${sections.join('\n')}\n`);
    await run('openssl', ['ecparam', '-name', curve, '-genkey', '-noout', '-out', this.#path(`${name}.key`)]);
    const config = ['-config', this.#path(`${name}.cnf`)];
    await run('openssl', [
      'req',
      '-new',
      ...config,
      '-key',
      this.#path(`${name}.key`),
      '-subj',
      `/O=Test/CN=${name}`,
      '-out',
      this.#path(`${name}.csr`),
    ]);
    const signing =
      issuer === null
        ? ['-signkey', this.#path(`${name}.key`)]
        : ['-CA', this.#path(`${issuer}.pem`), '-CAkey', this.#path(`${issuer}.key`)];
    await run('openssl', [
      ...['x509', '-req', '-in', this.#path(`${name}.csr`), ...signing, '-set_serial', String(Date.now()), '-days', String(days)],
      ...['-extfile', this.#path(`${name}.cnf`), '-extensions', 'ext', '-out', this.#path(`${name}.pem`)],
    ]);
  }

  #path(name: string): string {
    return join(this.directory, name);
  }
}

/** What a SHAKEN PASSporT says; whatever a test changes in it. */
export interface Said {
  readonly head?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
}

export const CALLER = '15550100999';
export const CALLED = '15550100100';

/** An Identity header value, signed by Node.js's own cryptography. */
export function identityHeader(key: KeyObject, url: string, nowMs: number, said: Said = {}): string {
  const head = { alg: 'ES256', ppt: 'shaken', typ: 'passport', x5u: url, ...said.head };
  const claims = {
    attest: 'A',
    dest: { tn: [CALLED] },
    iat: Math.floor(nowMs / 1_000),
    orig: { tn: CALLER },
    origid: randomUUID(),
    ...said.claims,
  };
  const input = [head, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${input}.${signatureOf(key, input)};info=<${url}>;alg=ES256;ppt="shaken"`;
}

export function signatureOf(key: KeyObject, input: string): string {
  return sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');
}
