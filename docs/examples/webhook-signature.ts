// Whether a webhook came from a Trunkline that knows the secret: Standard Webhooks, without a library.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Older ones may be somebody's copy. */
const MAX_AGE_S = 300;

/**
 * @param body the request's body, byte for byte as it came: before any JSON parser
 * @param headers the request's headers, their names in lower case
 * @param secret `trunkline org webhook-secret <org>`
 */
export function isWebhookOfTrunkline(body: string, headers: Readonly<Record<string, unknown>>, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= MAX_AGE_S)) return false;
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const expected = createHmac('sha256', key)
    .update(`${String(id)}.${String(timestamp)}.${body}`)
    .digest();
  return String(signatures)
    .split(' ')
    .map((signature) => Buffer.from(signature.replace('v1,', ''), 'base64'))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}
