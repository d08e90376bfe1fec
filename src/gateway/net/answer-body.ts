import { promisify, TextDecoder } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions } from 'node:zlib';
import { err, ok, type Result } from '../../lib/result.js';

// The body of an answer as its server meant it: without content coding (RFC 9110 §8.4), and as text by its charset.

type Decode = (bytes: Buffer, options: Pick<ZlibOptions, 'maxOutputLength'>) => Promise<Buffer>;

const unzipped: Decode = promisify(gunzip);
const inflated: Decode = promisify(inflate);
const inflatedRaw: Decode = promisify(inflateRaw);
/** Some servers leave the zlib header out. */
const deflated: Decode = async (bytes, options) =>
  inflated(bytes, options).catch((error: unknown) => {
    if (isTooLarge(error)) throw error;
    return inflatedRaw(bytes, options);
  });
const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: unzipped,
  'x-gzip': unzipped,
  deflate: deflated,
  br: promisify(brotliDecompress),
};
const MAX_CODINGS = 2;
/** The characters 0x80 to 0x9f. */
const WINDOWS_1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';
const DECLARATION_BYTES = 200;
const DECLARATION = /^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/u;

/** `too-large`: it has more bytes than it may. A text is what a server did, as a sentence without its subject. */
export type CodingFault = 'too-large' | { readonly text: string };

/** The bytes without their content coding. @param coding the header `Content-Encoding`; '': there is none */
export async function uncoded(bytes: Buffer, coding: string, maxBytes: number): Promise<Result<Buffer, CodingFault>> {
  const codings = coding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (bytes.length === 0) return ok(bytes);
  if (codings.length > MAX_CODINGS) return err({ text: 'answered in too many content codings' });
  let plain = bytes;
  for (const name of codings.toReversed()) {
    const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
    if (decode === undefined) return err({ text: 'answered in a content coding that is none of gzip, deflate, br' });
    try {
      plain = await decode(plain, { maxOutputLength: maxBytes });
    } catch (error) {
      return err(isTooLarge(error) ? 'too-large' : { text: `answered with a body that is not ${name}, as its Content-Encoding says` });
    }
  }
  return ok(plain);
}

function isTooLarge(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_BUFFER_TOO_LARGE';
}

/** The bytes as text: by their byte order mark, the charset of their `Content-Type`, or their XML declaration, else as UTF-8. */
export function textOfBody(bytes: Buffer, contentType: string): string {
  const charset =
    charsetOfBeginning(bytes) ?? known(/;\s*charset\s*=\s*"?([^\s";]+)/iu.exec(contentType)?.[1]) ?? known(declaredCharset(bytes));
  return charset === 'windows-1252' ? ofWindows1252(bytes) : new TextDecoder(charset ?? 'utf-8').decode(bytes);
}

/** What ISO-8859-1 means on the web. Node.js 20 to 24 read it as ISO-8859-1, without quotation marks and the euro sign. */
function ofWindows1252(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[\u0080-\u009f]/gu, (control) => WINDOWS_1252[control.charCodeAt(0) - 0x80] ?? control);
}

/** By a byte order mark, or by how XML in UTF-16 begins without one. */
function charsetOfBeginning([first, second, third]: Buffer): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return 'utf-16le';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c)) return 'utf-16be';
  return undefined;
}

/** A declaration that can be read byte by byte is not in UTF-16, whatever it says. */
function declaredCharset(bytes: Buffer): string | undefined {
  const declared = DECLARATION.exec(bytes.toString('latin1', 0, DECLARATION_BYTES))?.[1];
  return declared !== undefined && /^utf-?16/iu.test(declared) ? undefined : declared;
}

/** Names that nobody knows count as left out. */
function known(charset: string | undefined): string | undefined {
  if (charset === undefined) return undefined;
  try {
    return new TextDecoder(charset).encoding;
  } catch {
    return undefined;
  }
}
