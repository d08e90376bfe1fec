import { randomInt } from 'node:crypto';
import { header, type Header } from '../message/message.js';

/** 1 to 10 s by chance, so that refused callers do not return together (RFC 3261 §14.2 wants 0 to 10). */
export function retryAfter(): Header {
  return header('Retry-After', String(randomInt(1, 11)));
}
