import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readSnapshot, snapshotOf } from '../../../../src/gateway/call/call-snapshot.js';
import type { CallSnapshot } from '../../../../src/gateway/model/call-snapshot.js';
import { callFrom } from '../../../support/call-data.js';
import { ANSWER, CALL, play } from '../../../support/call-machine.js';
import { RunnerBench, turns } from '../../../support/runner-bench.js';
import { ROUTE } from '../../../support/route.js';

type Json = Readonly<Record<string, unknown>>;

/** What the version of 30 November 2026 kept of a call in progress. */
const BEFORE = JSON.parse(readFileSync('test/fixtures/call-snapshots/form-9.json', 'utf8')) as CallSnapshot & { readonly state: Json };

async function keptCall(): Promise<CallSnapshot & { readonly state: Json }> {
  const bench = new RunnerBench(false);
  await bench.connect(ANSWER);
  return bench.kept as CallSnapshot & { readonly state: Json };
}

/** Each object in a value, by its path. */
function objects(value: unknown, path = ''): [string, Json][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return [[path, value as Json], ...Object.entries(value).flatMap(([key, inner]) => objects(inner, `${path}/${key}`))];
}

async function resumed(snapshot: CallSnapshot): Promise<string> {
  const bench = new RunnerBench(false);
  await bench.connect(ANSWER);
  const runner = bench.restart(snapshot);
  await turns();
  while (bench.pending.length > 0) await bench.settle(0, true);
  return runner.stateName;
}

describe('versions of the gateway beside each other', () => {
  it('a call goes on that the version before kept', async () => {
    expect(await resumed(BEFORE)).toBe('Talking');
  });

  it('the version before finds each field that it reads in what this one keeps', async () => {
    const fields = objects(BEFORE).flatMap(([path, object]) => Object.keys(object).map((key) => `${path}/${key}`));
    const kept = new Set(objects(await keptCall()).flatMap(([path, object]) => Object.keys(object).map((key) => `${path}/${key}`)));
    expect(fields.filter((field) => !kept.has(field))).toEqual([]);
    expect(BEFORE.state['form']).toBe((await keptCall()).state['form']);
  });

  it('a call goes on that a later version kept with fields of its own', async () => {
    const kept = await keptCall();
    for (const [, object] of objects(kept.state)) (object as Record<string, unknown>)['addedLater'] = { deep: [1] };
    expect(readSnapshot(kept)).toHaveProperty('state.addedLater');
    expect(await resumed(kept)).toBe('Talking');
  });

  it('a field that an earlier version did not have yet gets its default', async () => {
    const { state } = await keptCall();
    const { legsLost: _, wantedSide: _2, ...call } = state['call'] as Json;
    const { legs: _3, answeredBy: _4, ...progress } = state['progress'] as Json;
    const read = readSnapshot({ state: { ...state, call, progress } });
    expect(read?.state).toMatchObject({ legsLost: 0, wantedSide: null });
    expect(read?.progress).toMatchObject({ legs: [], answeredBy: null });
  });

  it.each(['origin', 'own', 'call', 'progress', 'notes', 'form', 'dialog'])(
    'a call is not taken up of which %s is missing or is something else',
    async (name) => {
      const { state } = await keptCall();
      const { [name]: _, ...rest } = state;
      expect(readSnapshot({ state: rest })).toBeUndefined();
      expect(readSnapshot({ state: { ...state, [name]: 7 } })).toBeUndefined();
    },
  );
});

it('what is read is what was kept', async () => {
  const kept = await keptCall();
  const read = readSnapshot(kept);
  expect(read === undefined ? null : (JSON.parse(JSON.stringify(snapshotOf(read))) as CallSnapshot)).toEqual(kept);
});

it('the snapshot keeps the analysis but no transcript when the organization keeps none', () => {
  const said = { transcript: [{ speaker: 'caller', text: 'My card number is…', at_ms: 0 }], state: 'complete', cause: null } as const;
  const kept = (transcript_days: number | null): string => {
    const call = callFrom('+15550100999');
    const route = { ...ROUTE, org: { ...ROUTE.org, transcript_days } };
    const notes = { ...call.notes, said, analysis: { guests: 2 } };
    const dialog = { id: 'd', invite: '', localTag: 't', contact: '<sip:gw>' };
    return JSON.stringify(snapshotOf({ ...call, state: { ...play(CALL).state, route }, dialog, notes }));
  };
  expect(kept(0)).not.toContain('My card number');
  expect(kept(0)).toContain('"guests":2');
  expect(kept(null)).toContain('My card number');
});
