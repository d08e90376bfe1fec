import { describe, expect, it } from 'vitest';
import { maskSecrets } from '../../../../src/gateway/call/secrets.js';

describe('the text of a trace', () => {
  it.each([
    ['Authorization: Digest username="a", response="s3cret"\r\nTo: x', 'Authorization: ***\r\nTo: x'],
    ['Proxy-Authorization : Digest response="s3cret",\r\n nonce="s3cret"\r\nTo: x', 'Proxy-Authorization : ***\r\nTo: x'],
    ['Identity: s3cret;info=<https://x>\r\nTo: x', 'Identity: ***\r\nTo: x'],
    ['y: s3cret\r\nTo: x', 'y: ***\r\nTo: x'],
    ['X-Token: Bearer s3cret', 'X-Token: Bearer ***'],
    ['X-Token: Bearer s3cretinline: s3cret', 'X-Token: Bearer ***inline: ***'],
    ['k=base64:s3cret\r\na=x', 'k= ***\r\na=x'],
    ['a=key-mgmt:mikey s3cret\r\na=x', 'a=key-mgmt: ***\r\na=x'],
    ['a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:s3cret\r\na=x', 'a=crypto:1 AES_CM_128_HMAC_SHA1_80 ***\r\na=x'],
    ['To: x\u0000\u001b', 'To: x??'],
    ['authentication-info: rspauth="s3cret"\nTo: x', 'authentication-info: ***\nTo: x'],
    [' a = crypto : 2 AEAD_AES_256_GCM inline : s3cret\na=x', ' a = crypto : 2 AEAD_AES_256_GCM ***\na=x'],
    // Not a suite that is known: all of the line goes.
    ['a=crypto:1 s3cret inline:s3cret\na=x', 'a=crypto: ***\na=x'],
    ['c=x\nb=inline:s3cret|2^20', 'c=x\nb=inline: ***'],
    ['v=0\nk\t=s3cret\na=x', 'v=0\nk\t= ***\na=x'],
    // No secrets.
    ['To: y\r\nX-Identity: a', 'To: y\r\nX-Identity: a'],
    ['say inline or crypto', 'say inline or crypto'],
  ])('hides the secrets of %j', (text, shown) => {
    expect(maskSecrets(text)).toBe(shown);
  });
});
