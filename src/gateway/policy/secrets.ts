const MASK = '***';

// A text may be cut anywhere: what comes before a secret stands in it, and all of the rest of the line goes.
const SECRETS: readonly RegExp[] = [
  // RFC 4568 §9.1: the key, its lifetime and MKI. Behind a suite that is not known nothing is sure to be one.
  /^([ \t]*a[ \t]*=[ \t]*crypto[ \t]*:(?:[ \t]*\d+[ \t]+(?:AES|AEAD|F8|ARIA|SEED|NULL)\w*)?)[^\r\n]+/gim,
  /(inline[ \t]*:)[^\r\n]+/gi,
  // RFC 8866 §5.12, RFC 4567.
  /^([ \t]*(?:k|a[ \t]*=[ \t]*key-mgmt)[ \t]*[=:])[^\r\n]+/gim,
  // With their folded lines (RFC 3261 §7.3.1); `y` is Identity (RFC 8224 §4).
  /^((?:proxy-)?authorization|(?:proxy-)?authentication-info|identity|y)([ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*/gim,
  /\b(bearer[ \t]+)[^\s"',;]+/gi,
];
const UNPRINTABLE = /[^\t\r\n\x20-\x7e\x80-\uffff]/g;

/** A text without keys of media, credentials and tokens, nor anything that does not print. */
export function maskSecrets(text: string): string {
  const masked = SECRETS.reduce(
    (rest, secret) =>
      rest.replace(secret, (_all, name: string, colon: unknown) => `${name.trimEnd()}${typeof colon === 'string' ? colon : ''} ${MASK}`),
    text,
  );
  return masked.replace(UNPRINTABLE, '?');
}
