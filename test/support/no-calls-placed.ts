import type { LiveCalls } from '../../src/gateway/model/live-calls.js';
import type { PlaceCall } from '../../src/gateway/ports/place-call.js';

/** An API that places no calls. */
export const NO_CALLS_PLACED: PlaceCall = {
  refusal: () => ({ code: 'NOT_READY', message: 'not part of this test' }),
  kept: () => Promise.resolve(),
  priceOf: () => ({ ok: false, error: 'not part of this test' }),
  fromRefusal: () => 'not part of this test',
  place: () => ({ ok: false, error: 'DRAINING' }),
};

/** An API of a gateway without calls. */
export const NO_LIVE_CALLS: LiveCalls = {
  find: () => null,
  stop: () => false,
  redirect: () => false,
  trace: () => null,
  transcript: () => null,
  quality: () => Promise.resolve(null),
};
