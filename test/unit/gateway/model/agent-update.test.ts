import { describe, expect, it } from 'vitest';
import type { AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import {
  changedFields,
  decideAgentUpdate,
  decideDelete,
  namedTools,
  type AgentUpdate,
} from '../../../../src/gateway/model/agent-update.js';
import { agentOfCall } from '../../../../src/gateway/model/call-agent-settings.js';
import { revisedAt, type IfMatch } from '../../../../src/gateway/model/revision.js';
import { err, ok } from '../../../../src/lib/result.js';
import { TOOL } from '../../../support/tool.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { agentOf } from '../store/store-contract.js';

const BEFORE = '2026-01-01T00:00:00.000Z';
const BEFORE_MS = Date.parse(BEFORE);
const AGENT: AgentRecord = { ...agentOf('o', { prompt: 'Hello' }), updated_at: BEFORE };

describe('a change of an agent', () => {
  const change = (current: AgentRecord | null, more: Partial<AgentUpdate<string>> = {}, nowMs = BEFORE_MS + 5_000) =>
    decideAgentUpdate(current, { orgId: 'o', ifMatch: undefined, decide: (agent) => ok({ ...agent, prompt: 'Bye' }), ...more }, nowMs);

  it('keeps id and organization, and makes another version', () => {
    expect(change(AGENT)).toEqual(ok({ ...AGENT, prompt: 'Bye', updated_at: '2026-01-01T00:00:05.000Z' }));
  });

  it('may be refused by the decision about it', () => {
    expect(change(AGENT, { decide: () => err('no such tool') })).toEqual(err('no such tool'));
  });

  it.each<readonly [string, AgentRecord | null, IfMatch, string | null]>([
    ['no agent', null, undefined, 'not-found'],
    ['no agent, with any version', null, '*', 'not-found'],
    ['one of another organization', { ...AGENT, org_id: 'p' }, [BEFORE], 'not-found'],
    ['another version', AGENT, ['2025-12-31T00:00:00.000Z'], 'mismatch'],
    ['no version', AGENT, [], 'mismatch'],
    ['this version among others', AGENT, ['2025-12-31T00:00:00.000Z', BEFORE], null],
    ['any version', AGENT, '*', null],
    ['a request without if-match', AGENT, undefined, null],
  ])('like a deletion, follows if-match for %s', (_what, current, ifMatch, refusal) => {
    const [changed, deleted] = [change(current, { ifMatch }), decideDelete(current, 'o', ifMatch)];
    expect([changed.ok, deleted.ok]).toEqual([refusal === null, refusal === null]);
    if (refusal !== null) expect([changed, deleted]).toEqual([err(refusal), err(refusal)]);
    else expect(deleted).toEqual(ok(current));
  });

  it('makes a later version than the one before, whatever the clock says', () => {
    const of = (updatedAt: string, nowMs: number): string => revisedAt(nowMs, { updated_at: updatedAt });
    expect(of(BEFORE, BEFORE_MS)).toBe('2026-01-01T00:00:00.001Z');
    expect(of(BEFORE, BEFORE_MS - 60_000)).toBe('2026-01-01T00:00:00.001Z');
    expect(of('unknown', BEFORE_MS)).toBe(BEFORE);
  });

  it('names the fields that differ, except its time', () => {
    const after = { ...AGENT, prompt: 'Bye', metadata: { a: { b: 1 } }, updated_at: 'later' };
    expect(changedFields(AGENT, after)).toEqual(['prompt', 'metadata']);
    expect(changedFields({ ...AGENT, metadata: { a: { b: 1 } } }, { ...after, prompt: 'Hello' })).toEqual([]);
  });
});

it('the tools that an agent names are their ids, each once', () => {
  expect(namedTools({ ...AGENT, tools: ['TL-1', TOOL, 'TL-2', 'TL-1'] })).toEqual(['TL-1', 'TL-2']);
  expect(namedTools(null)).toEqual([]);
});

describe('the agent of one call', () => {
  const clock = new VirtualClock(BEFORE_MS);
  const of = (agent: AgentRecord | null, given: Partial<Parameters<typeof agentOfCall>[2]> = {}) =>
    agentOfCall(agent, 'o', { metadata: null, max_duration: null, webhook: null, ...given }, { clock, longestMinutes: 120 });

  it('is that of the number, with the settings of the call in their place', () => {
    expect(of(AGENT)).toBe(AGENT);
    expect(of(AGENT, { max_duration: 5, webhook: 'https://a.example' })).toEqual({
      ...AGENT,
      max_duration: 5,
      webhook: 'https://a.example',
    });
  });

  it('is the default of the operator, unless the call has settings, and then it is in no store', () => {
    expect(of(null)).toBeNull();
    expect(of(null, { metadata: { a: 1 } })).toMatchObject({
      agent_id: '',
      org_id: 'o',
      name: '',
      language: 'ENG',
      // Not that of agents: a call without one lasts as long without settings, too.
      max_duration: 120,
      metadata: { a: 1 },
      created_at: BEFORE,
      updated_at: BEFORE,
    });
  });
});
