// Whether a WebSocket upgrade came from a Trunkline that knows the key, as X-Twilio-Signature says.
import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * @param url the address as the agent has it, word for word: `wss://bot.example.com/stream`
 * @param signature the header of the upgrade; `undefined`: there is none
 * @param key `trunkline org twilio-token <org>`
 */
export function isFromTrunkline(url: string, signature: string | undefined, key: string): boolean {
  const expected = createHmac('sha1', key).update(url).digest();
  const given = Buffer.from(signature ?? '', 'base64');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
