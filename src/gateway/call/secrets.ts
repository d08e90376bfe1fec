const MASK = '***';

// A text may be cut anywhere: what comes before a secret stands in it, and all of the rest of the line goes.
// The words in lower case without which there is no such secret: to look for them costs a tenth.
const SECRETS: readonly (readonly [secret: RegExp, ...words: readonly string[]])[] = [
  // RFC 4568 §9.1: the key, its lifetime and MKI. Behind a suite that is not known nothing is sure to be one.
  [/^([ \t]*a[ \t]*=[ \t]*crypto[ \t]*:(?:[ \t]*\d+[ \t]+(?:AES|AEAD|F8|ARIA|SEED|NULL)\w*)?)[^\r\n]+/gim, 'crypto'],
  [/(inline[ \t]*:)[^\r\n]+/gi, 'inline'],
  // RFC 8866 §5.12, RFC 4567.
  [/^([ \t]*a[ \t]*=[ \t]*key-mgmt[ \t]*[=:])[^\r\n]+/gim, 'key-mgmt'],
  [/^([ \t]*k[ \t]*[=:])[^\r\n]+/gim, 'k=', 'k:', 'k ', 'k\t'],
  // With their folded lines (RFC 3261 §7.3.1); `y` is Identity (RFC 8224 §4).
  [
    /^((?:proxy-)?authorization|(?:proxy-)?authentication-info|identity)([ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*/gim,
    'authorization',
    'authentication-info',
    '\nidentity',
  ],
  [/^(y)([ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*/gim, '\ny'],
  [/\b(bearer[ \t]+)[^\s"',;]+/gi, 'bearer'],
];
/** One of those words, where a word with a line break before it may also begin the text. */
const MAYBE_SECRET = new RegExp(SECRETS.flatMap(([, ...words]) => words.map((word) => word.replace('\n', '(?:^|\n)'))).join('|'), 'i');
const UNPRINTABLE = /[^\t\r\n\x20-\x7e\x80-\uffff]/g;

/** A text without keys of media, credentials and tokens, nor anything that does not print. */
export function maskSecrets(text: string): string {
  // Most texts have none, and are not copied.
  if (!MAYBE_SECRET.test(text)) return text.replace(UNPRINTABLE, '?');
  // As if a line stood before it: the first line is one like the others.
  const lower = `\n${text.toLowerCase()}`;
  let masked = text;
  for (const [secret, ...words] of SECRETS) {
    if (!words.some((word) => lower.includes(word))) continue;
    masked = masked.replace(
      secret,
      (_all, name: string, colon: unknown) => `${name.trimEnd()}${typeof colon === 'string' ? colon : ''} ${MASK}`,
    );
  }
  return masked.replace(UNPRINTABLE, '?');
}
