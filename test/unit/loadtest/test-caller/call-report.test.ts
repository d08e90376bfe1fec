import { expect, it } from 'vitest';
import { isBotOf } from '../../../../src/cli/call.js';
import { endFault, formatReport, type CallReport } from '../../../../src/loadtest/test-caller/call-report.js';

it.each([
  ['Q.850;cause=41;text="AGENT_LOST"', 'AGENT_LOST'],
  ['Q.850;cause=41', 'cause 41'],
  ['Q.850;cause=16;text="AGENT_HANGUP"', null],
  ['SIP;cause=200;text="Call completed elsewhere"', null],
  [null, null],
])('a BYE with Reason %j says what went wrong', (header, fault) => {
  expect(endFault(header)).toBe(fault);
});

it.each([
  [{}, null],
  [{ digits: '#' }, null],
  [{ digits: '1#' }, false],
  [{ digits: '#', bot: true }, true],
])('what answers a call with %j is recognised, unless keys are to be read back', (flags, isBot) => {
  expect(isBotOf(flags)).toBe(isBot);
});

const REPORT: CallReport = {
  ok: false,
  outcome: 'refused with 404 Not Found',
  called: '+15550100100',
  sip_call_id: 'a@b',
  answered_by: null,
  checks: { answered: false },
  tls: null,
  sip: [],
  final_status: 404,
  warning: null,
  codec: null,
  crypto: null,
  answer_ms: null,
  media: null,
  agent_audio: { heard: false, level_dbfs: null },
  digits: [],
  echo_heard: null,
  hung_up_by: null,
  duration_ms: 10,
};

it('a failed call says by which id it is found', () => {
  expect(formatReport(REPORT).split('\n')).toEqual(
    expect.arrayContaining(['Call-ID           a@b', 'More: trunkline calls list --sip-call-id a@b']),
  );
});
