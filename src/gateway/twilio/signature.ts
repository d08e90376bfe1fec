import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * `X-Twilio-Signature`: HMAC-SHA1 in base64 over the URL, without its fragment, which no request carries, and, for a form, each parameter's name and value in the order of the names.
 * https://www.twilio.com/docs/usage/security#validating-requests
 */
export function twilioSignature(token: string, url: string, parameters: Readonly<Record<string, string>> = {}): string {
  const hmac = createHmac('sha1', token).update(url.replace(/#.*$/su, ''));
  for (const name of Object.keys(parameters).sort()) hmac.update(name + (parameters[name] ?? ''));
  return hmac.digest('base64');
}

/** In constant time. */
export function isSameToken(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
