import { expect, it } from 'vitest';
import { answerOf, callRecord, snapshotCall, withRetention } from '../../../../src/gateway/call/call-record.js';
import { callOf } from '../store/store-contract.js';
import { ROUTE } from '../../../support/route.js';
import { CALL, LATE_CALL, LATE_FACTS, play } from '../../../support/call-machine.js';

const PROGRESS = {
  ringingAtMs: null,
  answeredAtMs: 1,
  resumed: 0,
  agentError: null,
  signallingError: null,
  reasonDetail: null,
  reports: 0,
  legs: [],
  answeredBy: null,
};

it('[4568 §5] the record has codec and suite of a call whose late answer has come, before its media is connected', () => {
  const { state } = play(LATE_CALL.slice(0, 6), LATE_FACTS);
  expect([state.name, state.session]).toEqual(['Connecting', null]);
  const media = { codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' };
  expect(answerOf(state, PROGRESS)).toMatchObject(media);
  expect(answerOf(play(CALL).state, PROGRESS)).toMatchObject(media);
  expect(answerOf(play(LATE_CALL.slice(0, 5), LATE_FACTS).state, PROGRESS)).toMatchObject({ codec: null, crypto_suite: null });
});

it('the record keeps a transcript as long as its organization says, or not at all', () => {
  const record = callOf('o', 0, { transcript: [{ speaker: 'agent', text: 'Hello.', at_ms: 0 }], transcript_state: 'complete' });
  const kept = (days: number | null) => withRetention(record, { ...ROUTE, org: { ...ROUTE.org, transcript_days: days } });
  expect(kept(null)).toEqual({ record });
  expect(kept(7)).toEqual({ record, transcriptDays: 7 });
  expect(kept(0).record).toMatchObject({ transcript: [], transcript_error: 'the organization keeps no transcripts' });
  expect(withRetention(record, null)).toEqual({ record });
});

it('the record has the delay of each turn and of the agent’s first audio; p50 and p95 are by nearest rank', () => {
  const { state } = play(CALL);
  const turns = (turnDelaysMs: readonly number[]) => {
    const endpoint = { agentAudioMs: 321.4, turnDelaysMs, firstAudioMs: 12, samples: [], jitterMs: 0, roundTripMs: null } as never;
    const source = { ip: '192.0.2.1', port: 5061, transport: 'tls', tls_version: null, tls_cipher: null };
    const origin = {
      callId: 'c',
      sipCallId: 's',
      direction: 'inbound',
      to: '+1',
      caller: { number: '+2' },
      source,
      startedAtMs: 0,
    } as never;
    const notes = { said: { transcript: [], state: null, cause: null }, analysis: null, rejected: null } as never;
    return callRecord(origin, PROGRESS, state, { endpoint, relay: null }, notes, { reason: 'CALLER_HANGUP', atMs: 9 }).turns;
  };
  expect(turns([])).toEqual({ first_audio_ms: 321.4, delays_ms: [], p50_ms: null, p95_ms: null });
  expect(turns([900, 100, 500])).toEqual({ first_audio_ms: 321.4, delays_ms: [900, 100, 500], p50_ms: 500, p95_ms: 900 });
  const many = Array.from({ length: 40 }, (_none, at) => 10 * (at + 1));
  expect(turns(many)).toMatchObject({ p50_ms: 200, p95_ms: 380 });
});

it('the snapshot keeps the analysis but no transcript when the organization keeps none', () => {
  const { state } = play(CALL);
  const said = { transcript: [{ speaker: 'caller', text: 'My card number is…', at_ms: 0 }], state: 'complete', cause: null } as const;
  const parts = {
    permit: null,
    dialog: {},
    origin: { callId: 'c' },
    progress: PROGRESS,
    notes: { said, analysis: { guests: 2 }, rejected: null },
  };
  const kept = (transcript_days: number | null): string => {
    const route = { ...ROUTE, org: { ...ROUTE.org, transcript_days } };
    return JSON.stringify(
      snapshotCall({ ...state, route }, { ...parts, origin: { ...parts.origin, startedAtMs: 0, caller: {} } } as never),
    );
  };
  expect(kept(0)).not.toContain('My card number');
  expect(kept(0)).toContain('"guests":2');
  expect(kept(null)).toContain('My card number');
});
