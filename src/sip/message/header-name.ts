// RFC 3261 §7.3.3 and the IANA registry: the one-letter forms.
const COMPACT: Readonly<Record<string, string>> = {
  a: 'accept-contact',
  b: 'referred-by',
  c: 'content-type',
  d: 'request-disposition',
  e: 'content-encoding',
  f: 'from',
  i: 'call-id',
  j: 'reject-contact',
  k: 'supported',
  l: 'content-length',
  m: 'contact',
  n: 'identity-info',
  o: 'event',
  r: 'refer-to',
  s: 'subject',
  t: 'to',
  u: 'allow-events',
  v: 'via',
  x: 'session-expires',
  y: 'identity',
};

/** Names whose usual spelling is not one capital a word. */
const SPELLED: Readonly<Record<string, string>> = {
  'call-id': 'Call-ID',
  cseq: 'CSeq',
  'www-authenticate': 'WWW-Authenticate',
  'mime-version': 'MIME-Version',
  rack: 'RAck',
  rseq: 'RSeq',
  'min-se': 'Min-SE',
  'sip-etag': 'SIP-ETag',
  'sip-if-match': 'SIP-If-Match',
};

const cache = new Map<string, string>();
const CACHE_LIMIT = 1_000;

/** The long form of a header name in lower case: what headers are compared by. */
export function headerId(name: string): string {
  const known = cache.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const id = COMPACT[lower] ?? lower;
  // Names come from outside: the cache has a bound.
  if (cache.size < CACHE_LIMIT) cache.set(name, id);
  return id;
}

const canonical = new Map<string, string>(Object.entries(SPELLED));

/** `my-header` as it is usually written: `My-Header`. */
export function canonicalHeaderName(id: string): string {
  const known = canonical.get(id);
  if (known !== undefined) return known;
  const name = id.replace(/(^|-)([a-z])/g, (_all, dash: string, letter: string) => dash + letter.toUpperCase());
  if (canonical.size < CACHE_LIMIT) canonical.set(id, name);
  return name;
}

/**
 * Without the spaces and tabs around it. Not `String.trim`: that takes the byte A0 for a no-break space, and it is the last byte
 * of `à` in UTF-8.
 */
export function trimLws(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isLws(text.charCodeAt(start))) start += 1;
  while (end > start && isLws(text.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

export function isLws(code: number): boolean {
  return code === 32 || code === 9;
}
