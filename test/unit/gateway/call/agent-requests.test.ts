import { beforeEach, describe, expect, it } from 'vitest';
import type { AgentAnswer, TranscriptEntry } from '../../../../src/gateway/model/agent.js';
import { DEFAULT_AGENT_SETTINGS, type AgentSettings, type ToolRecord } from '../../../../src/gateway/model/agent-record.js';
import type { ToolDefinition } from '../../../../src/gateway/model/tool-definition.js';
import type { Route } from '../../../../src/gateway/model/records.js';
import { CallData, type CallNotes } from '../../../../src/gateway/call/call.js';
import { callFrom } from '../../../support/call-data.js';
import { AgentRequests } from '../../../../src/gateway/call/agent-requests.js';
import { StoreUnavailableError, type ToolOutcome } from '../../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../../src/lib/log.js';
import { ok } from '../../../../src/lib/result.js';
import { ROUTE } from '../../../support/route.js';
import { toolOf } from '../../../support/tool.js';
import { turn } from '../../../support/turn.js';

const STORED = toolOf('o');
const INLINE: ToolDefinition = { ...STORED.tool, name: 'inline' };

let told: AgentAnswer[];
let stored: readonly ToolRecord[];
let isAway: boolean;
let running: { readonly tool: ToolDefinition; readonly ended: AbortSignal; readonly settle: (outcome: ToolOutcome) => void }[];

let listed: string[][];
let changes = 0;

beforeEach(() => {
  [told, stored, isAway, running, listed] = [[], [STORED], false, [], []];
  changes = 0;
});

type Requests = AgentRequests & { readonly notes: CallNotes };

function requests(settings: Partial<AgentSettings> = {}, person = '+15550100999', kept?: CallNotes): Requests {
  const agent = { ...DEFAULT_AGENT_SETTINGS, ...settings, agent_id: 'a', org_id: 'o', name: '', created_at: '', updated_at: '' };
  const route: Route = { ...ROUTE, agent };
  const find = (_org: string, ids: readonly string[]): Promise<readonly ToolRecord[]> =>
    isAway ? Promise.reject(new StoreUnavailableError('away')) : Promise.resolve(stored.filter(({ tool_id: id }) => ids.includes(id)));
  const add = (orgId: string, numbers: readonly string[]): Promise<number> => {
    if (isAway) return Promise.reject(new StoreUnavailableError('away'));
    listed.push([orgId, ...numbers]);
    return Promise.resolve(1);
  };
  const run = (_orgId: string, tool: ToolDefinition, _input: unknown, ended: AbortSignal): Promise<ToolOutcome> =>
    new Promise((settle) => running.push({ tool, ended, settle }));
  const call = callFrom(person, route);
  const data = new CallData(kept === undefined ? call : { ...call, notes: kept });
  const made = new AgentRequests(
    { tools: { find }, toolRunner: { run }, doNotCall: { add } },
    data,
    (answer) => void told.push(answer),
    () => (changes += 1),
    silentLog,
  );
  return Object.defineProperty(made, 'notes', { get: () => data.now.notes }) as Requests;
}

/** Lets promises that are settled be heard. */
const ask = (to: AgentRequests, name: string, requestId = 'r'): Promise<void> => {
  to.take({ type: 'tool', requestId, name, input: { day: '2026-01-01' } });
  return turn();
};
const codes = (): (string | undefined)[] => told.map((answer) => (answer.type === 'refused' ? answer.code : answer.type));
const said = (text: string): TranscriptEntry => ({ speaker: 'caller', text, at_ms: 0 });

describe('a caller who wants no more calls', () => {
  it('is added to the do-not-call list, and an agent that gave an id gets an answer', async () => {
    const call = requests();
    call.take({ type: 'do_not_call', requestId: null });
    await turn();
    expect(told).toEqual([]);
    call.take({ type: 'do_not_call', requestId: 'r' });
    await turn();
    expect(told).toMatchObject([{ type: 'tool-result', requestId: 'r', result: 'The number is never dialled again.' }]);
    expect(listed).toEqual(Array.from({ length: 2 }, () => [ROUTE.org.org_id, '+15550100999']));
  });

  it('is not added by national digits, since the gateway guesses no country code', async () => {
    requests({}, '2125551234').take({ type: 'do_not_call', requestId: 'r' });
    await turn();
    expect([codes(), listed]).toEqual([['NO_NUMBER'], []]);
  });

  it('stays off the list while the store is away, and the agent gets STORE_UNAVAILABLE', async () => {
    isAway = true;
    requests().take({ type: 'do_not_call', requestId: 'r' });
    await turn();
    expect(codes()).toEqual(['STORE_UNAVAILABLE']);
  });
});

describe('the notes of a call', () => {
  it('are kept at each change, and continue in another process, with a gap possible', () => {
    const before = requests({ analysis_schema: { guests: 'number' } });
    before.begin(1_000);
    before.take({ type: 'transcript', entries: [said('Hello?')] });
    before.take({ type: 'analysis', requestId: null, analysis: { guests: 2, wine: 'red' } });
    before.keepMarks(['end']);
    expect(changes).toBe(3);
    const after = requests({}, '+15550100999', JSON.parse(JSON.stringify(before.notes)) as CallNotes);
    after.restore(1_000);
    // Its agent begins 9 s after the first one.
    after.begin(10_000);
    after.take({ type: 'transcript', entries: [{ ...said('Still there?'), at_ms: 500 }] });
    expect(after.notes).toEqual({
      said: {
        transcript: [said('Hello?'), { ...said('Still there?'), at_ms: 9_500 }],
        state: 'partial',
        cause: 'the gateway was restarted during the call',
      },
      analysis: { guests: 2 },
      rejected: { wine: 'red' },
      marks: ['end'],
    });
  });
});

describe('the transcript of a call', () => {
  it('keeps its order', () => {
    const call = requests();
    call.take({ type: 'transcript', entries: [said('Hello?'), said('Anybody?')] });
    call.take({ type: 'transcript', entries: [said('Bye.')] });
    expect(call.notes.said.transcript.map(({ text }) => text)).toEqual(['Hello?', 'Anybody?', 'Bye.']);
    expect(call.notes.said).toMatchObject({ state: 'complete', cause: null });
  });

  it('holds 2000 entries and 200000 characters', () => {
    const many = requests();
    for (let index = 0; index < 2_100; index += 1) many.take({ type: 'transcript', entries: [said('x')] });
    expect(many.notes.said.transcript).toHaveLength(2_000);
    const long = requests();
    for (let index = 0; index < 30; index += 1) long.take({ type: 'transcript', entries: [said('x'.repeat(9_999))] });
    expect(long.notes.said.transcript).toHaveLength(20);
    expect(long.notes.said).toMatchObject({ state: 'partial', cause: 'the transcript is full' });
  });

  it('is stored with each message that changes it and the first that finds it full, and not again', () => {
    const call = requests();
    const before = changes;
    for (let index = 0; index < 30; index += 1) call.take({ type: 'transcript', entries: [said('x'.repeat(9_999))] });
    expect(changes - before).toBe(21);
  });
});

describe('the analysis of a call', () => {
  const found = (call: AgentRequests, analysis: object): void =>
    call.take({ type: 'analysis', requestId: 'r', analysis: analysis as Readonly<Record<string, unknown>> });

  it('is merged from all messages, and names the fields that the schema refuses', () => {
    const call = requests({ analysis_schema: { name: 'string', age: 'integer' } });
    found(call, { name: 'Ann', age: 'old', shoes: 40 });
    found(call, { age: 40 });
    expect(call.notes.analysis).toEqual({ name: 'Ann', age: 40 });
    expect(codes()).toEqual(['ANALYSIS_INVALID']);
    expect(call.notes.rejected).toEqual({ shoes: 40 });
    expect(told[0]).toMatchObject({ requestId: 'r', request: 'analysis', message: expect.stringMatching(/: age, shoes\.$/) as unknown });
  });

  it('keeps values that do not fit apart, within the same bound, until they fit', () => {
    const call = requests({
      analysis_schema: { mail: 'email', when: 'YYYY-MM-DD HH:mm', ok: 'boolean', n: 'number', i: 'integer', s: 'string' },
    });
    const wrong = { mail: 'nobody', when: '2026-02-30 10:00', ok: 'yes', n: '1', i: 1.5, s: { a: 1 } };
    found(call, wrong);
    expect([call.notes.analysis, call.notes.rejected]).toEqual([{}, wrong]);
    found(call, { mail: 'a@b.example', when: '2026-02-28 10:00', ok: false, n: 1.5, i: 2, s: '' });
    expect(call.notes.rejected).toBeNull();
    found(call, { other: 'x'.repeat(70_000) });
    expect([call.notes.rejected, codes().at(-1)]).toEqual([null, 'ANALYSIS_TOO_LARGE']);
  });

  it('holds 64 KiB in all', () => {
    const call = requests();
    found(call, { a: 'x'.repeat(40_000) });
    found(call, { b: 'x'.repeat(40_000) });
    expect(Object.keys(call.notes.analysis ?? {})).toEqual(['a']);
    expect(codes()).toEqual(['ANALYSIS_TOO_LARGE']);
  });
});

describe('the tools of an agent', () => {
  it('are those of the store that it names and its inline ones, in its order', async () => {
    const call = requests({ tools: [STORED.tool_id, INLINE, 'TL-gone'] });
    expect((await call.tools()).map(({ name }) => name)).toEqual(['book', 'inline']);
  });

  it('are only the inline ones without the store, until it is back', async () => {
    isAway = true;
    const call = requests({ tools: [STORED.tool_id, INLINE] });
    expect((await call.tools()).map(({ name }) => name)).toEqual(['inline']);
    isAway = false;
    expect((await call.tools()).map(({ name }) => name)).toEqual(['book', 'inline']);
  });

  it('run and return their results', async () => {
    const call = requests({ tools: [STORED.tool_id] });
    await ask(call, 'book');
    running[0]?.settle(ok({ result: { id: 7 }, httpStatus: 200 }));
    await turn();
    expect(told).toEqual([{ type: 'tool-result', requestId: 'r', result: { id: 7 }, httpStatus: 200 }]);
  });

  it('are refused by an unknown name, and report a failure', async () => {
    const call = requests({ tools: [INLINE] });
    await ask(call, 'book');
    await ask(call, 'inline');
    running[0]?.settle({ ok: false, error: { code: 'TOOL_TIMEOUT', message: '' } });
    await turn();
    expect(codes()).toEqual(['TOOL_UNKNOWN', 'TOOL_TIMEOUT']);
  });

  it('run eight at a time', async () => {
    const call = requests({ tools: [INLINE] });
    for (let index = 0; index < 9; index += 1) await ask(call, 'inline', String(index));
    expect(told).toMatchObject([{ code: 'TOO_MANY', requestId: '8' }]);
    running[0]?.settle(ok({ result: null, httpStatus: 204 }));
    await turn();
    await ask(call, 'inline', '9');
    expect(running).toHaveLength(9);
  });

  it('are aborted at the end of the call, and the agent gets nothing', async () => {
    const call = requests({ tools: [INLINE] });
    await ask(call, 'inline');
    call.close();
    expect(running[0]?.ended.aborted).toBe(true);
    running[0]?.settle(ok({ result: null, httpStatus: 200 }));
    await turn();
    expect(told).toEqual([]);
  });
});
