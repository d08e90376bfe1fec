import { describe, expect, it } from 'vitest';
import { FunctionCalls } from '../../../../../src/gateway/agents/provider/function-calls.js';
import { DO_NOT_CALL, HANG_UP, TRANSFER } from '../../../../../src/gateway/agents/provider/tools.js';
import type { AgentHost } from '../../../../../src/gateway/media/leg-agent.js';
import { VirtualClock } from '../../../../support/virtual-clock.js';

function opened() {
  const asked: unknown[] = [];
  const given: unknown[] = [];
  const left: unknown[] = [];
  const host: AgentHost = { emit: (event) => void asked.push(event), sendDtmf: () => true, speak: () => true, view: () => null };
  const calls = new FunctionCalls({ mayTransfer: true, headersFromAgent: ['X-*', 'User-to-User'] }, host, new VirtualClock(), {
    give: (_callId, output) => void given.push(output),
    inform: () => undefined,
    leave: (sipHeaders) => void left.push(sipHeaders),
    say: () => undefined,
  });
  return { calls, asked, given, left };
}

describe('a function that a model calls', () => {
  it('hangs up, with the headers that it names', () => {
    const { calls, given, left } = opened();
    calls.run('1', HANG_UP, {});
    calls.run('2', HANG_UP, { sip_headers: 'X-Outcome: solved: yes\n\nUser-to-User: 00c8;encoding=hex' });
    expect(left).toEqual([null, { 'X-Outcome': 'solved: yes', 'User-to-User': '00c8;encoding=hex' }]);
    expect(given).toEqual([{ result: 'The call ends now.' }, { result: 'The call ends now.' }]);
  });

  it.each([
    ['Subject: x', 'SIP_HEADER_NOT_ALLOWED'],
    ['Via: x', 'SIP_HEADER_NOT_ALLOWED'],
    ['no header', 'BAD_SIP_HEADERS'],
    ['X-A: a\rVia: b', 'BAD_SIP_HEADERS'],
    ['X-A: a\nX-A: b', 'BAD_SIP_HEADERS'],
  ])('does not hang up with %j, and the model gets %s', (text, error) => {
    const { calls, given, left } = opened();
    calls.run('1', HANG_UP, { sip_headers: text });
    expect([left, given]).toMatchObject([[], [{ error }]]);
  });

  it('transfers with the headers that it names, and not with what cannot be read', () => {
    const { calls, asked, given } = opened();
    calls.run('1', TRANSFER, { to: '+15550100300', sip_headers: 'X-Ticket: 4711' });
    calls.run('2', TRANSFER, { to: '+15550100300', sip_headers: 'nonsense' });
    const request = { type: 'transfer', requestId: '1', to: '+15550100300', sipHeaders: { 'X-Ticket': '4711' } };
    expect(asked).toEqual([{ type: 'agent-request', request }]);
    expect(given).toMatchObject([{ error: 'BAD_SIP_HEADERS' }]);
    calls.run('3', DO_NOT_CALL, {});
    expect(asked).toHaveLength(2);
  });
});
