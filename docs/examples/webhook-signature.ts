// Whether a webhook came from a Trunkline that knows the secret, as x-trunkline-signature says.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Older ones may be somebody's copy. */
const MAX_AGE_S = 300;

/**
 * @param body the request's body, byte for byte as it came: before any JSON parser
 * @param signature the header `x-trunkline-signature`; `undefined`: there is none
 * @param secret `trunkline org webhook-secret <org>`
 */
export function isWebhookOfTrunkline(body: string, signature: string | undefined, secret: string): boolean {
  const [, t = '', v1 = ''] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(signature ?? '') ?? [];
  if (Math.abs(Date.now() / 1_000 - Number(t)) > MAX_AGE_S) return false;
  const expected = createHmac('sha256', secret).update(`${t}.${body}`).digest();
  const given = Buffer.from(v1, 'hex');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
