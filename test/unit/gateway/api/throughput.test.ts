import { describe, expect, it } from 'vitest';
import { adviceOn } from '../../../../src/gateway/model/advice.js';
import { REASONS, type Reason } from '../../../../src/gateway/model/reasons.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { begun } from '../../../support/begun-call.js';
import { callOf, endedCall, freshNumber, inboundSetting } from '../store/store-contract.js';
import { openApi } from './api-fixture.js';

interface Answer {
  readonly step_seconds: number;
  readonly in_progress: number;
  readonly intervals: readonly { readonly at: string; readonly begun: number; readonly ended: number; readonly refused: number }[];
}

describe('GET /v1/throughput', () => {
  it('has 15 minutes in intervals of 10 s, of the own organization only', async () => {
    const api = await openApi();
    const { stores, clock, orgId } = api;
    const number = freshNumber();
    await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
    await stores.routes.lookup(number, begun(newUuid()));
    await stores.calls.write(endedCall(callOf(newUuid(), 0)));
    clock.advance(10_000);
    await stores.calls.write(endedCall(callOf(orgId, 0, { answered_at: null })));
    const answer = JSON.parse((await api.get('/v1/throughput')).text) as Answer;
    expect(answer).toMatchObject({ step_seconds: 10, in_progress: 1 });
    expect(answer.intervals).toHaveLength(90);
    expect(answer.intervals.slice(-2)).toEqual([
      { at: '2026-01-01T00:00:00.000Z', begun: 1, ended: 0, refused: 0 },
      { at: '2026-01-01T00:00:10.000Z', begun: 0, ended: 0, refused: 1 },
    ]);
  });
});

describe('GET /v1/reasons', () => {
  it('has every code with its explanation and advice', async () => {
    const api = await openApi();
    const { reasons } = JSON.parse((await api.get('/v1/reasons')).text) as {
      reasons: { code: Reason; explanation: string; advice: string }[];
    };
    expect(reasons.map(({ code }) => code)).toEqual(Object.keys(REASONS));
    for (const { code, explanation, advice } of reasons) {
      expect(explanation).toBe(REASONS[code].explanation);
      expect(advice).toBe(adviceOn(code));
      expect(advice).toMatch(/^[A-Z].*\.$/);
    }
  });
});
