import { createHmac } from 'node:crypto';

/**
 * The headers of Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature`.
 *
 * @param secret `whsec_` and the key in base64
 * @param id the same on each attempt
 * @param atMs milliseconds since the Unix epoch
 */
export function signedHeaders(secret: string, id: string, body: string, atMs: number): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1_000));
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
