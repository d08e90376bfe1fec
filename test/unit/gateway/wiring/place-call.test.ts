import { expect, it } from 'vitest';
import { callPlacer } from '../../../../src/gateway/wiring/place-call.js';
import type { Refusal } from '../../../../src/gateway/admission/admission.js';
import { REASONS } from '../../../../src/gateway/model/reasons.js';

const placer = (isConnected: boolean, notReady: Refusal | null) =>
  callPlacer({ isConnected, notReady, place: () => null, kept: () => Promise.resolve(), trunkRefusal: () => null });

it('says that it is overload, with its figure, when the gateway places no calls', () => {
  const refusal = placer(true, { reason: 'OVERLOADED', detail: 'calls in progress: 40, limit 40' }).refusal({} as never);
  expect(refusal?.code).toBe('NOT_READY');
  expect(refusal?.message).toContain(`OVERLOADED. ${REASONS.OVERLOADED.explanation}`);
  expect(refusal?.message).toContain('calls in progress: 40, limit 40');
});

it('says that the SIP server is missing when the gateway places no calls for that', () => {
  expect(placer(false, null).refusal({} as never)?.message).toContain('SIP server');
});
