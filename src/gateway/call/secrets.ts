const MASK = '***';

// A text may be cut anywhere: what comes before a secret stands in it, and all of the rest of the line goes.
const SECRETS = [
  // RFC 4568 §9.1: the key, its lifetime and MKI. Behind a suite that is not known nothing is sure to be one.
  /^([ \t]*a[ \t]*=[ \t]*crypto[ \t]*:(?:[ \t]*\d+[ \t]+(?:AES|AEAD|F8|ARIA|SEED|NULL)\w*)?)[^\r\n]+/,
  /(inline[ \t]*:)[^\r\n]+/,
  // RFC 8866 §5.12, RFC 4567.
  /^([ \t]*(?:a[ \t]*=[ \t]*key-mgmt|k)[ \t]*[=:])[^\r\n]+/,
  // With their folded lines (RFC 3261 §7.3.1); `y` is Identity (RFC 8224 §4).
  /^((?:(?:proxy-)?(?:authorization|authentication-info)|identity|y)[ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*/,
  /\b(bearer[ \t]+)(?:(?!inline[ \t]*:)[^\s"',;])+/,
];
const UNPRINTABLE = /[^\t\r\n\x20-\x7e\x80-\uffff]/;
/** In one pass: all messages of each call go through it. */
const HIDDEN = new RegExp([...SECRETS, UNPRINTABLE].map(({ source }) => source).join('|'), 'gim');

type Name = string | undefined;

/** A text without keys of media, credentials and tokens, nor anything that does not print. */
export function maskSecrets(text: string): string {
  return text.replace(HIDDEN, (_all, attribute: Name, inline: Name, key: Name, header: Name, token: Name) => {
    const name = attribute ?? inline ?? key ?? header ?? token;
    return name === undefined ? '?' : `${name.trimEnd()} ${MASK}`;
  });
}
