import { describe, expect, it } from 'vitest';
import type { AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import { completionOf } from '../../../../src/gateway/call/call-record.js';
import { agentOf, callOf } from '../store/store-contract.js';

const agent: AgentRecord = { ...agentOf('org'), webhook: 'https://example.com/hook', metadata: { campaign: 7 } };

describe('completionOf', () => {
  it('reports an answered call, in exactly the fields of the interface', () => {
    const record = callOf('org', 0, { transcript: [{ speaker: 'agent', text: 'Hello.', at_ms: 0 }], analysis: { name: 'Ann' } });
    expect(completionOf(record, agent)).toEqual({
      url: 'https://example.com/hook',
      payload: {
        call_id: record.call_id,
        transcript: [{ speaker: 'agent', text: 'Hello.', at_ms: 0 }],
        analysis: { name: 'Ann' },
        metadata: { campaign: 7 },
        from: record.from,
        to: record.to,
        reason: 'CALLER_HANGUP',
        started_at: record.started_at,
        answered_at: record.answered_at,
        ended_at: record.ended_at,
        quality: record.quality,
      },
      analysisSchema: null,
    });
  });

  it('reports a placed call whether or not it was answered, with its direction', () => {
    const record = callOf('org', 0, { direction: 'outbound', answered_at: null, reason: 'NO_ANSWER' });
    expect(completionOf(record, agent)?.payload).toMatchObject({
      direction: 'outbound',
      reason: 'NO_ANSWER',
      answered_at: null,
      transcript: [],
    });
  });

  it('has the schema of a pending analysis, with or without a webhook', () => {
    const record = callOf('org', 0, { analysis_error: 'A text model reads the transcript.' });
    const analysed = { ...agent, analysis_schema: { guests: 'integer' } };
    expect(completionOf(record, analysed)).toMatchObject({ url: agent.webhook, analysisSchema: { guests: 'integer' } });
    expect(completionOf(record, { ...analysed, webhook: null })).toMatchObject({ url: null, analysisSchema: { guests: 'integer' } });
    expect(completionOf(callOf('org', 0), { ...analysed, webhook: null })).toBeNull();
  });

  it.each([
    ['a call that was not answered', callOf('org', 0, { answered_at: null }), agent],
    ['an agent without a webhook', callOf('org', 0), { ...agent, webhook: null }],
    ['a number without an agent', callOf('org', 0), null],
  ])('is null for %s', (_what, record, of) => {
    expect(completionOf(record, of)).toBeNull();
  });
});
