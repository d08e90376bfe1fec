import { signal } from '@preact/signals';
import type { Schemas } from '../../src/client/index.js';

export type ReasonFacts = Schemas['Reason'];

/** By code; empty until they are here. */
export const reasons = signal<ReadonlyMap<string, ReasonFacts>>(new Map());

export function keepReasons(all: readonly ReasonFacts[]): void {
  reasons.value = new Map(all.map((one) => [one.code, one]));
}
