import { randomInt } from 'node:crypto';
import { header, type Header } from '../sip/message/message.js';

/** 1 to 10 s, so that refused callers do not return together. */
export function retryAfter(): Header {
  return header('Retry-After', String(randomInt(1, 11)));
}
