import { z } from 'zod';

const MAX_HEADERS = 10;
const MAX_NAME = 64;
/** Bytes; a name and its value count together. */
const MAX_HEADER = 1_024;

const name = z
  .string()
  .max(MAX_NAME)
  .regex(/^[A-Za-z0-9_.!%*+`'~-]+$/, 'must be the name of a header (RFC 3261 §25.1)');
const value = z.string().regex(/^[\x20-\x7e]+$/, 'must be printable ASCII characters, without line breaks');

/** Headers for SIP requests of ours, by name. The number's `headers_from_agent` says which may be set. */
export const sipHeaders = z.record(name, value).check((ctx) => {
  const names = Object.keys(ctx.value);
  const refuse = (message: string, path: string[] = []): void => void ctx.issues.push({ code: 'custom', message, input: ctx.value, path });
  if (names.length > MAX_HEADERS) return refuse(`must have at most ${String(MAX_HEADERS)} headers`);
  for (const [header, text] of Object.entries(ctx.value))
    if (header.length + text.length > MAX_HEADER)
      refuse(`must have at most ${String(MAX_HEADER)} bytes, its name and its value together`, [header]);
  if (new Set(names.map((one) => one.toLowerCase())).size < names.length) refuse('must have each header once, in whichever case');
});

export type SipHeaders = Readonly<z.output<typeof sipHeaders>>;
