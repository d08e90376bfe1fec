import { X509Certificate, type KeyObject } from 'node:crypto';
import {
  fromBER,
  Constructed,
  IA5String,
  Integer,
  ObjectIdentifier,
  OctetString,
  Sequence,
  Boolean as Asn1Boolean,
  type BaseBlock,
} from 'asn1js';
import { err, ok, type Result } from '../../lib/result.js';

/** A signer's certificate whose chain ends at a configured root. */
export interface Credential {
  readonly key: KeyObject;
  readonly subject: string;
  /** The time in which every certificate of the chain is valid, in Unix milliseconds. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Whether it may sign for a number, digits without the plus (RFC 8226 §9). */
  readonly maySignFor: (number: string) => boolean;
}

const MAX_CHAIN = 6;
const BASIC_CONSTRAINTS = '2.5.29.19';
/** RFC 8226 §9 */
const TN_AUTHORIZATION_LIST = '1.3.6.1.5.5.7.1.26';
const EXTENSIONS_TAG = 3;

/** The certificates in a PEM text. Throws if one is unreadable, or if the text has none. */
export function certificatesOf(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error('it contains no PEM certificate');
  return found.map((text) => new X509Certificate(text));
}

/** Reads a certificate repository's response: the signer's certificate first, then others of its chain. An error is a sentence. */
export function credentialOf(pem: string, roots: readonly X509Certificate[], nowMs: number): Result<Credential, string> {
  let given: X509Certificate[];
  try {
    given = certificatesOf(pem);
  } catch {
    return err('The URL in the Identity header returned no certificate.');
  }
  const [leaf, ...others] = given;
  if (leaf === undefined || given.length > MAX_CHAIN) return err('The URL in the Identity header returned no certificate chain.');
  // RFC 8225 §8.1: ES256 is the only algorithm.
  if (leaf.publicKey.asymmetricKeyType !== 'ec' || leaf.publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    return err("The signer's key is not an ES256 key.");
  const list = tnAuthorizationList(leaf);
  if (leaf.ca || list === null) return err('The certificate has no TN authorization list.');
  const path = pathTo(roots, leaf, others, nowMs);
  if (path === null) return err('The certificate does not chain to a trusted root, or is not valid at this time.');
  return ok({
    key: leaf.publicKey,
    subject: leaf.subject.replaceAll('\n', ', '),
    notBeforeMs: Math.max(...path.map(({ validFrom }) => Date.parse(validFrom))),
    notAfterMs: Math.min(...path.map(({ validTo }) => Date.parse(validTo))),
    maySignFor: (number) => list.some((entry) => entry(number)),
  });
}

/** RFC 5280 §6.1, without policies and revocation: the next certificate issued each one, and the last is a root or issued by one. */
function pathTo(
  roots: readonly X509Certificate[],
  certificate: X509Certificate,
  others: readonly X509Certificate[],
  nowMs: number,
  below = 0,
): X509Certificate[] | null {
  if (!isValidAt(certificate, nowMs)) return null;
  if (roots.some(({ raw }) => raw.equals(certificate.raw))) return [certificate];
  for (const issuer of [...roots, ...others]) {
    if (!issuer.ca || !certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey)) continue;
    if (below > longestPathBelow(issuer)) continue;
    const rest = pathTo(
      roots,
      issuer,
      others.filter((other) => other !== issuer),
      nowMs,
      below + 1,
    );
    if (rest !== null) return [certificate, ...rest];
  }
  return null;
}

function isValidAt({ validFrom, validTo }: X509Certificate, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}

/** RFC 5280 §4.2.1.9: the number of CAs allowed between this one and the signer. */
function longestPathBelow(certificate: X509Certificate): number {
  const constraints = extensionOf(certificate, BASIC_CONSTRAINTS);
  const parts = constraints instanceof Sequence ? constraints.valueBlock.value : [];
  const length = parts.find((part) => part instanceof Integer && !(part instanceof Asn1Boolean));
  return length instanceof Integer ? length.valueBlock.valueDec : Infinity;
}

type Covers = (number: string) => boolean;

/** `null`: missing or unreadable. */
function tnAuthorizationList(certificate: X509Certificate): Covers[] | null {
  const list = extensionOf(certificate, TN_AUTHORIZATION_LIST);
  if (!(list instanceof Sequence) || list.valueBlock.value.length === 0) return null;
  const entries = list.valueBlock.value.map(coverageOf);
  return entries.every((entry) => entry !== null) ? entries : null;
}

/** One TNEntry: a service provider code, a range of numbers, or a number; explicitly tagged. */
function coverageOf(entry: BaseBlock): Covers | null {
  if (!(entry instanceof Constructed)) return null;
  const [inner] = entry.valueBlock.value;
  switch (entry.idBlock.tagNumber) {
    case 0:
      // A service provider signs for its customers' numbers, which no certificate lists.
      return inner instanceof IA5String ? () => true : null;
    case 1: {
      const [start, count] = inner instanceof Sequence ? inner.valueBlock.value : [];
      if (!(start instanceof IA5String) || !(count instanceof Integer)) return null;
      const [first, text] = [BigInt(digitsOf(start) || '0'), digitsOf(start)];
      const length = text.length;
      return (number) => number.length === length && BigInt(number) >= first && BigInt(number) < first + count.toBigInt();
    }
    case 2:
      return inner instanceof IA5String ? (number) => number === digitsOf(inner) : null;
    default:
      return null;
  }
}

function digitsOf(text: IA5String): string {
  return text.getValue().replace(/\D/g, '');
}

/** An extension's value; `null`: missing. */
function extensionOf(certificate: X509Certificate, oid: string): BaseBlock | null {
  const { result } = fromBER(new Uint8Array(certificate.raw));
  const [body] = result instanceof Sequence ? result.valueBlock.value : [];
  const fields = body instanceof Sequence ? body.valueBlock.value : [];
  const extensions = fields.find(({ idBlock }) => idBlock.tagClass === 3 && idBlock.tagNumber === EXTENSIONS_TAG);
  const [list] = extensions instanceof Constructed ? extensions.valueBlock.value : [];
  for (const extension of list instanceof Sequence ? list.valueBlock.value : []) {
    const parts = extension instanceof Sequence ? extension.valueBlock.value : [];
    const [id] = parts;
    const value = parts.at(-1);
    if (!(id instanceof ObjectIdentifier) || id.getValue() !== oid || !(value instanceof OctetString)) continue;
    const { result: inner, offset } = fromBER(value.getValue());
    return offset === -1 ? null : inner;
  }
  return null;
}
