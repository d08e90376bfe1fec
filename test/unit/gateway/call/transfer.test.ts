import { describe, expect, it } from 'vitest';
import { DEFAULT_AGENT_SETTINGS } from '../../../../src/gateway/model/agent-record.js';
import type { CallEvent } from '../../../../src/gateway/call/state.js';
import { NO_USAGE } from '../../../../src/gateway/admission/admission.js';
import { hostOf } from '../../../../src/gateway/call/invite.js';
import { readTarget } from '../../../../src/gateway/admission/target.js';
import { doubtfulNumbers, listedNumbers } from '../../../../src/gateway/model/transfer-list.js';
import { readReferProgress } from '../../../../src/gateway/call/refer-progress.js';
import { CALL, effect, FACTS, kinds, play, playOn } from '../../../support/call-machine.js';
import type { DialLedger, DialRequest } from '../../../../src/gateway/ports/ports.js';
import { err, ok } from '../../../../src/lib/result.js';
import { DIALLING } from '../../../support/doors.js';
import { NO_DIALS } from '../../../support/no-dials.js';
import { ROUTE } from '../../../support/route.js';
import { RunnerBench, turns } from '../../../support/runner-bench.js';

const TARGET = '+15550100300';
const asked = (to = TARGET, requestId: string | null = 't1'): CallEvent => ({ type: 'transfer-asked', requestId, to });
const answered = (status: number | null, referId = 1): CallEvent => ({ type: 'refer-answered', status, referId });
const notified = (status: number | null, isLast = false): CallEvent => ({ type: 'notified', requestId: 7, status, isLast });
const bye: CallEvent = { type: 'bye', reason: 'CALLER_HANGUP' };

const talking = play(CALL).state;
const told = (events: readonly CallEvent[]) =>
  playOn(talking, events).all.flatMap((one) => (one.do === 'notify-agent' ? [one.answer] : []));
const failed = (status: number | null) => ({ type: 'transfer-progress', requestId: 't1', state: 'failed', status });
const refused = (code: string): unknown => expect.objectContaining({ type: 'refused', requestId: 't1', request: 'transfer', code });

describe('a transfer', () => {
  it('sends REFER, and ends the call with TRANSFERRED when the target has answered', () => {
    const refer = effect(playOn(talking, [asked()]), 'refer');
    expect(refer?.target).toEqual({ kind: 'number', number: TARGET });
    expect(told([asked(), answered(202)])).toEqual([{ type: 'transfer-progress', requestId: 't1', state: 'accepted', status: 202 }]);
    const done = playOn(talking, [asked(), answered(202), notified(100), notified(180), notified(200, true)]);
    expect(done.state).toMatchObject({ name: 'Ended', reason: 'TRANSFERRED' });
    expect(kinds(done.effects)).toEqual(expect.arrayContaining(['accept', 'bye', 'finish']));
  });

  it('[3515 §2.4.4] may be over before the REFER is answered', () => {
    expect(playOn(talking, [asked(), notified(100), notified(200, true)]).state.reason).toBe('TRANSFERRED');
    const busy = playOn(talking, [asked(), notified(486, true), answered(202)]);
    expect(busy.state.name).toBe('Talking');
    expect(kinds(busy.effects)).toEqual([]);
  });

  it.each([
    ['the REFER is refused', [answered(603)], 603, false],
    ['the REFER cannot be sent', [answered(null)], null, false],
    ['the target is busy', [answered(202), notified(100), notified(486, true)], 486, true],
    ['the target is busy, which overtakes the 202', [notified(486, true)], 486, true],
    ['the carrier redirects', [answered(202), notified(302)], 302, true],
    ['the carrier ends the subscription without a final status', [answered(202), notified(null, true)], null, true],
    ['the carrier sends nothing', [answered(202), { type: 'timer', timer: 'transfer' } as const], null, true],
  ])(
    'reports its failure when %s, and the call continues, as long as packets come if the caller may be gone',
    (_what, events, status, mayBeGone) => {
      expect(kinds(playOn(talking, [asked(), ...events]).all).includes('need-packets')).toBe(mayBeGone);
      expect(told([asked(), ...events]).at(-1)).toEqual(failed(status));
      const { state } = playOn(talking, [asked(), ...events]);
      expect(state).toMatchObject({ name: 'Talking', transfer: null });
      expect(kinds(playOn(state, [asked()]).effects)).toEqual(['refer']);
    },
  );

  it('waits a minute for each NOTIFY, and no longer', () => {
    const start = { do: 'start-timer', timer: 'transfer', delayMs: 60_000 };
    expect(playOn(talking, [asked(), answered(202)]).effects).toContainEqual(start);
    expect(playOn(talking, [asked(), answered(202), notified(180)]).effects).toContainEqual(start);
  });

  it('[3261 §12.2.1.2] sends a ping when the REFER gets 481 or 408', () => {
    for (const status of [481, 408]) expect(kinds(playOn(talking, [asked(), answered(status)]).effects)).toContain('ping');
    expect(kinds(playOn(talking, [asked(), answered(603)]).effects)).not.toContain('ping');
  });

  it('is the reason when the carrier hangs up after it accepted, and not before', () => {
    expect(playOn(talking, [asked(), answered(202), bye]).state.reason).toBe('TRANSFERRED');
    expect(playOn(talking, [asked(), bye]).state.reason).toBe('CALLER_HANGUP');
    expect(playOn(talking, [asked(), answered(202), notified(486, true), bye]).state.reason).toBe('CALLER_HANGUP');
  });

  it('is refused while another is in progress, before the call is answered, and without a target', () => {
    expect(told([asked(), asked()])).toEqual([refused('TRANSFER_PENDING')]);
    expect(told([asked('nobody')])).toEqual([refused('TRANSFER_BAD_TARGET')]);
    expect(effect(play([...CALL.slice(0, 6), asked()]), 'notify-agent')?.answer).toEqual(refused('TRANSFER_TOO_EARLY'));
  });

  it('is limited to the agent’s transfer_list, when it has one', () => {
    const agent = {
      ...DEFAULT_AGENT_SETTINGS,
      agent_id: 'a',
      org_id: 'o',
      name: '',
      created_at: '',
      updated_at: '',
      transfer_list: [TARGET],
    };
    const { state } = play([
      CALL[0]!,
      { type: 'routed', route: { ...ROUTE, agent }, load: NO_USAGE, isStale: false, identity: null, credentials: null },
      ...CALL.slice(2),
    ]);
    expect(kinds(playOn(state, [asked()]).effects)).toEqual(['refer']);
    expect(effect(playOn(state, [asked('+15550100301')]), 'notify-agent')?.answer).toEqual(refused('TRANSFER_NOT_ALLOWED'));
  });

  it('[3265 §3.2.4] gives a NOTIFY 481 when it does not exist', () => {
    for (const events of [[notified(200, true)], [asked(), answered(603), notified(200, true)]])
      expect(playOn(talking, events).effects).toEqual([{ do: 'reject', requestId: 7, reason: 'NO_DIALOG' }]);
    expect(playOn(talking, [bye, notified(200, true)]).effects).toEqual([{ do: 'reject', requestId: 7, reason: 'NO_DIALOG' }]);
  });
});

it('may go anywhere that the operator says, as a stand-in for an agent that failed', () => {
  const standIn = { ...talking, agent: { choice: 'transfer', isConnected: true }, facts: { ...FACTS, transferPrefixes: [] } } as const;
  expect(effect(playOn(standIn, [asked('+33123456789')]), 'refer')).toMatchObject({ needs: 'nothing' });
  expect(kinds(playOn({ ...talking, facts: { ...FACTS, transferPrefixes: [] } }, [asked('+33123456789')]).effects)).toEqual([
    'notify-agent',
  ]);
});

describe('a REFER that counts as a call of the organization', () => {
  const org = { ...ROUTE.org, dialling: DIALLING };

  async function refer(
    reserve: DialLedger['reserve'],
    answer: number,
  ): Promise<{ readonly bench: RunnerBench; readonly withdrawn: string[] }> {
    const withdrawn: string[] = [];
    const dials = { ...NO_DIALS, reserve, withdraw: (callId: string) => void withdrawn.push(callId) };
    const bench = new RunnerBench(false, null, { route: { ...ROUTE, org }, services: { dials } });
    await bench.connect('');
    bench.answersWith = answer;
    bench.agentSays({ type: 'transfer', requestId: 't', to: '+4930123456' });
    await turns();
    if (bench.pending.some(({ name }) => name === 'REFER')) await bench.settle(0, true);
    return { bench, withdrawn };
  }

  it('is reserved without a trunk, and released when the carrier refuses it', async () => {
    const asked: DialRequest[] = [];
    const { withdrawn } = await refer((request) => {
      asked.push(request);
      return Promise.resolve(ok({ org, number: ROUTE.number, permit: { microsPerMinute: 1, reservedMicros: 1, day: '2026-01-01' } }));
    }, 603);
    expect(asked).toMatchObject([{ to: '+4930123456', endpoint: null, isReferred: true }]);
    expect(withdrawn).toEqual([asked[0]?.call.call_id]);
  });

  it('is not sent without a reservation, and the agent gets the failure', async () => {
    const { bench } = await refer(() => Promise.resolve(err({ reason: 'DIAL_NOT_ALLOWED', detail: 'a limit is reached' })), 202);
    expect(bench.told).toEqual([{ type: 'transfer-progress', requestId: 't', state: 'failed', status: 403 }]);
    expect(bench.runner.trace.map(({ summary }) => summary)).toContainEqual(
      expect.stringContaining('the REFER is not sent: a limit is reached'),
    );
  });
});

describe('the target of a transfer in an inbound call', () => {
  const hosts = ['PBX.example', '[2001:db8::1]'];
  const answerTo = (to: string, transferHosts: readonly string[] = hosts): string | undefined => {
    const { effects } = playOn({ ...talking, facts: { ...talking.facts, transferHosts } }, [asked(to)]);
    return effects.map((one) => (one.do === 'notify-agent' && one.answer.type === 'refused' ? one.answer.code : one.do))[0];
  };

  it.each([
    'sip:sales@pbx.example',
    'sips:pbx.example:5061;transport=tcp',
    'sip:x@[2001:db8::1]',
    'sip:+4930123456@pbx.example;user=phone',
  ])('may be %s where the operator listed its host, and nowhere else', (to) => {
    expect(answerTo(to)).toBe('refer');
    expect(answerTo(to, [])).toBe('TRANSFER_NOT_ALLOWED');
    expect(answerTo(to, ['other.example', 'example', 'sip.pbx.example'])).toBe('TRANSFER_NOT_ALLOWED');
  });

  it.each([
    ...['sip:+49(0)3019988001@pbx.example', 'sip:03019988001@pbx.example', 'sip:004930123456@pbx.example', 'sip:*7212345678@pbx.example'],
    ...['sip:%EF%BC%91%EF%BC%91%EF%BC%92@pbx.example', 'sip:%D9%A1%D9%A1%D9%A2@pbx.example', 'sip:%E0%A4%@pbx.example'],
    ...['sip:112@pbx.example', 'sip:9-1-1@pbx.example', 'sip:%31%31%32@pbx.example', 'sip:116117;phone-context=+49@pbx.example'],
    ...[
      'sip:+1911@pbx.example',
      'sip:+49110@pbx.example;user=phone',
      'sip:+12025551234@pbx.example;maddr=10.0.0.1',
      '+49110112',
      '+12113456789',
    ],
  ])('may never be %s', (to) => {
    expect(answerTo(to)).toBe('TRANSFER_NOT_ALLOWED');
  });
});

describe('the target of a transfer', () => {
  const NUMBER = { kind: 'number', number: TARGET };

  it.each([
    [TARGET, NUMBER],
    ['15550100300', NUMBER],
    ['+1 (555) 010-0300'.replaceAll(' ', ''), NUMBER],
    ['tel:+1-555-010-0300', NUMBER],
    ['tel:5550100300;phone-context=+1', NUMBER],
    ['sip:sales@pbx.example', { kind: 'uri', uri: 'sip:sales@pbx.example' }],
    ['sips:pbx.example:5061;transport=tcp', { kind: 'uri', uri: 'sips:pbx.example:5061;transport=tcp' }],
    ['sip:7@[2001:db8::1]', { kind: 'uri', uri: 'sip:7@[2001:db8::1]' }],
  ])('is read from %s', (to, target) => {
    expect(readTarget(to)).toEqual(target);
  });

  it.each([
    '',
    'sales',
    '+1',
    'tel:',
    'tel:sales',
    'http://pbx.example',
    'sip:',
    'sip:a@b>;x=<sip:c@d',
    'sip:a@b\r\nX-Evil: 1',
    'sip:a@b?Replaces=x',
    `sip:${'a'.repeat(260)}@b`,
    '+49(0)3019988001',
    'tel:+49(0)3019988001',
    'tel:03019988001;phone-context=+49',
    '\uff0b\uff14\uff19\uff13\uff10\uff11\uff12\uff13\uff14\uff15\uff16',
    'sip:\uff11\uff11\uff12@pbx.example',
  ])('is not read from %j', (to) => {
    expect(readTarget(to)).toBeUndefined();
  });

  it.each([
    ['a list of numbers', [TARGET]],
    ['a list of objects', [{ name: 'Sales', phone_number: '1-555-010-0300' }]],
    ['numbers by name', { sales: TARGET }],
    ['objects by name', { sales: { number: TARGET } }],
  ])('is named by %s', (_what, list) => {
    expect(listedNumbers(list)).toEqual([TARGET]);
  });

  it('is limited only by a list with entries, and to nothing by one without a number', () => {
    for (const list of [null, undefined, [], {}]) expect(listedNumbers(list)).toBeNull();
    expect(listedNumbers(['sales', '+49(0)3019988001'])).toEqual([]);
    expect(doubtfulNumbers(['sales', '12', TARGET, { name: 'Desk', number: '+49(0)3019988001' }, '+49 30 123456'])).toEqual([
      '+49(0)3019988001',
      '+49 30 123456',
    ]);
  });
});

describe('a NOTIFY of a transfer', () => {
  const notify = { contentType: 'message/sipfrag;version=2.0', subscriptionState: 'active;expires=60', body: 'SIP/2.0 180 Ringing\r\n' };

  it.each([
    [{}, { status: 180, isLast: false }],
    [{ body: 'SIP/2.0 200 OK' }, { status: 200, isLast: false }],
    [
      { body: 'SIP/2.0 486', subscriptionState: 'Terminated;reason=noresource' },
      { status: 486, isLast: true },
    ],
    [{ body: 'SIP/2.0 200 OK\r\nTo: <sip:x>\r\n' }, { status: 200, isLast: false }],
    [
      { body: '', contentType: undefined, subscriptionState: 'terminated' },
      { status: null, isLast: true },
    ],
  ])('is read with %j', (change, value) => {
    expect(readReferProgress({ ...notify, ...change })).toEqual({ ok: true, value });
  });

  it.each([
    [{ contentType: 'text/plain' }, 'BAD_BODY'],
    [{ body: '', contentType: undefined }, 'BAD_BODY'],
    [{ body: 'INVITE sip:x SIP/2.0' }, 'MALFORMED_REQUEST'],
    [{ body: 'SIP/2.0 2000 OK' }, 'MALFORMED_REQUEST'],
  ])('is rejected with %j', (change, error) => {
    expect(readReferProgress({ ...notify, ...change })).toEqual({ ok: false, error });
  });
});

it.each([
  ['sip:carrier.example', 'carrier.example'],
  ['sips:a:b@192.0.2.1:5061;transport=tls', '192.0.2.1'],
  ['sip:a@[2001:db8::1]:5061', '[2001:db8::1]'],
  ['tel:+15550100300', undefined],
])('hostOf reads the host of %s', (uri, host) => {
  expect(hostOf(uri)).toBe(host);
});
