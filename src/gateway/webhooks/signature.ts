import { createHmac } from 'node:crypto';

/**
 * The value of `x-trunkline-signature`: `t=<seconds>,v1=<hex HMAC-SHA256 of "t.body">`.
 * @param atMs milliseconds since the Unix epoch
 */
export function webhookSignature(secret: string, body: string, atMs: number): string {
  const t = String(Math.floor(atMs / 1_000));
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`;
}
