import { describe, expect, it } from 'vitest';
import { TimerQueue } from '../../../../src/lib/timers.js';
import { header, type SipRequest, type SipResponse } from '../../../../src/sip/message/message.js';
import type { Flow } from '../../../../src/sip/transport/flow.js';
import { RegisteredFlows } from '../../../../src/sip/user-agent/registered-flows.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const WEEK_SECONDS = 604_800;
const PHONE = 'sip:phone@10.0.0.9:5062';

type Headers = readonly (readonly [string, string])[];

function flowOf(more: Partial<Flow> = {}): Flow {
  const end = { address: '10.0.0.9', port: 40_000 };
  const quiet = { send: () => undefined, close: () => undefined };
  return { transport: 'TLS', reliable: true, remote: end, local: end, isOpen: true, ...quiet, ...more };
}

function site() {
  const clock = new VirtualClock();
  const flows = new RegisteredFlows(new TimerQueue(clock));
  const lines = (headers: Headers) => headers.map(([name, value]) => header(name, value));
  const grant = (asked: Headers, answered: Headers, flow = flowOf()): Flow => {
    const request: SipRequest = { kind: 'request', method: 'REGISTER', uri: 'sip:gw.example', headers: lines(asked), body: '' };
    const response: SipResponse = { kind: 'response', status: 200, reason: 'OK', headers: lines(answered), body: '' };
    flows.granted(request, response, flow);
    return flow;
  };
  return { clock, flows, grant };
}

const contact = (parameters = '', uri = PHONE): readonly [string, string] => ['Contact', `<${uri}>${parameters}`];

describe('registered flows', () => {
  it('[5626] find the connection of a Contact by user, host and port, whatever else is in the URI', () => {
    const { flows, grant } = site();
    const flow = grant([contact()], []);
    expect(flows.find(`${PHONE};transport=tls`)).toBe(flow);
    for (const other of ['sip:other@10.0.0.9:5062', 'sip:phone@10.0.0.8:5062', 'sip:phone@10.0.0.9', 'tel:+15550100100']) {
      expect(flows.find(other)).toBeUndefined();
    }
  });

  it.each<readonly [string, Headers, Headers, number]>([
    [
      'what the registrar granted this Contact',
      [contact(';expires=600'), ['Expires', '500']],
      [
        ['Contact', `<sip:other@10.0.0.9>;expires=5, <${PHONE}>;expires=60`],
        ['Expires', '70'],
      ],
      60,
    ],
    ['what the Contact asked for', [contact(';expires=600'), ['Expires', '500']], [['Expires', '70']], 600],
    ['the Expires of the response', [contact(), ['Expires', '500']], [['Expires', '70']], 70],
    ['the Expires of the request', [contact(), ['Expires', '500']], [], 500],
    ['an hour', [contact()], [], 3_600],
    ['a week at most', [contact(';expires=4294967295')], [], WEEK_SECONDS],
  ])('[3261 §10.2.4] keep a Contact for %s', (_what, asked, answered, seconds) => {
    const { clock, flows, grant } = site();
    grant(asked, answered);
    clock.advance(seconds * 1_000 - 1);
    expect(flows.size).toBe(1);
    clock.advance(1);
    expect([flows.size, flows.find(PHONE)]).toEqual([0, undefined]);
  });

  it('[3261 §10.2.2] remove a Contact for 0 seconds, and for an invalid time', () => {
    for (const seconds of ['0', 'soon', '-1']) {
      const { flows, grant } = site();
      grant([contact()], []);
      grant([contact(`;expires=${seconds}`)], []);
      expect(flows.size).toBe(0);
    }
  });

  it('[3261 §10.2.2] remove all Contacts of the To by *, and no other', () => {
    const { flows, grant } = site();
    const of = (user: string): readonly [string, string] => ['To', `<sip:${user}@gw.example>;tag=1`];
    grant([of('phone'), contact(), contact('', 'sip:phone@10.0.0.9:5064')], []);
    const other = grant([of('other'), contact('', 'sip:other@10.0.0.9')], []);
    grant([of('phone'), ['Contact', '*'], ['Expires', '0']], []);
    expect([flows.size, flows.find('sip:other@10.0.0.9')]).toEqual([1, other]);
    // A To that is no SIP URI is that of others, too.
    grant([['To', '<tel:+15550100100>'], contact('', 'sip:caller@10.0.0.9')], []);
    grant(
      [
        ['To', '<tel:+15550100200>'],
        ['Contact', '*'],
        ['Expires', '0'],
      ],
      [],
    );
    expect(flows.size).toBe(2);
  });

  it('replace the connection at the next registration, for a time of its own', () => {
    const { clock, flows, grant } = site();
    grant([contact(';expires=60')], []);
    clock.advance(59_000);
    const later = grant([contact(';expires=60')], []);
    clock.advance(59_000);
    expect(flows.find(PHONE)).toBe(later);
    expect(flows.size).toBe(1);
  });

  it('remove a connection that is closed', () => {
    const { clock, flows, grant } = site();
    grant([contact()], [], flowOf({ isOpen: false }));
    expect([flows.size, flows.find(PHONE), flows.size]).toEqual([1, undefined, 0]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('store none of UDP, none that cannot be read, and ten of one request', () => {
    const { flows, grant } = site();
    grant([contact()], [], flowOf({ transport: 'UDP', reliable: false }));
    grant([['Contact', '*'], contact('', 'tel:+15550100100')], []);
    expect(flows.size).toBe(0);
    const many = Array.from({ length: 11 }, (_, n) => `<sip:phone-${String(n)}@10.0.0.9>`);
    grant([['Contact', many.join(', ')]], []);
    expect(flows.size).toBe(10);
    expect(flows.find('sip:phone-9@10.0.0.9')).toBeDefined();
  });
});
