import type { DialLedger } from '../../src/gateway/ports/ports.js';
import { StoreUnavailableError } from '../../src/gateway/ports/ports.js';

/** A gateway that dials nothing. */
export const NO_DIALS: DialLedger = {
  reserve: () => Promise.reject(new StoreUnavailableError('not part of this test')),
  settle: () => undefined,
  withdraw: () => undefined,
  disown: () => undefined,
  trunkOf: () => Promise.resolve(null),
};
