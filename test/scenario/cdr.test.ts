import { beforeEach, describe, expect, it } from 'vitest';
import { headerOf, Scenario, SDP } from '../support/scenario.js';

let call: Scenario;

beforeEach(async () => {
  call = await Scenario.start(['invite', 'cdr:attempt', 'cdr:start', 'cdr:stop']);
});

/** Verb, source and detail of each event, and the start line that it carries. */
const events = (): string[] =>
  call.bench.toApp
    .filter((frame) => frame.split('|')[1]?.startsWith('cdr:') === true)
    .map((frame) => {
      const [line = '', start = ''] = frame.split('\r\n');
      const [, verb = '', source = '', time = '', ...detail] = line.split('|');
      expect(time).toMatch(/^\d\d:\d\d:\d\d\.\d{6}$/);
      return [verb, source, ...detail, start].join(' ');
    });

describe('the SIP server', () => {
  it('sends the events attempt, start and stop of an answered call that the caller ends', async () => {
    const to = await call.connected();
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    expect(events()).toEqual([
      'cdr:attempt network INVITE sip:b@server SIP/2.0',
      'cdr:start application uas SIP/2.0 200 OK',
      'cdr:stop network normal-release BYE sip:b@server SIP/2.0',
    ]);
  });

  it('names the application as the source of the stop event when the application ends an answered call', async () => {
    await call.connected();
    await call.send('BYE sip:placeholder', call.dialogId);
    expect(events().at(-1)).toBe('cdr:stop application normal-release BYE sip:a@caller:6000;transport=tls SIP/2.0');
  });

  it('sends a stop event with call-rejected and the final response for a call that is refused', async () => {
    await call.respond(await call.offered(), '486 Busy Here');
    expect(events().at(-1)).toBe('cdr:stop application call-rejected SIP/2.0 486 Busy Here');
  });

  it('sends a stop event with call-canceled, from the network, for a call that the caller cancels', async () => {
    await call.offered();
    await call.receive(call.request('CANCEL', { branch: 'z9hG4bKinvite' }));
    expect(events().at(-1)).toBe('cdr:stop network call-canceled INVITE sip:b@server SIP/2.0');
  });

  it('sends the events attempt and start of a call that the application places', async () => {
    await call.send('INVITE sip:peer@10.0.0.9', '', '', SDP);
    const invite = call.lastSent('INVITE ');
    await call.answer(invite, '200 OK', { tag: 'x', extra: ['Contact: <sip:peer@10.0.0.9>'] });
    expect(events()).toEqual(['cdr:attempt application INVITE sip:peer@10.0.0.9 SIP/2.0', 'cdr:start network uac SIP/2.0 200 OK']);
    expect(headerOf(invite, 'Contact')).not.toBe('');
  });

  it('sends a stop event with ackbye for a call that it ends because the ACK never came', async () => {
    await call.respond(await call.offered(), '200 OK', '', SDP);
    await call.bench.pass(32_000);
    expect(events().at(-1)).toMatch(/^cdr:stop application ackbye BYE /);
  });

  it('sends no call detail event that nobody asked for, and does not name these events in the Allow of a 405', async () => {
    const other = await Scenario.start(['options', 'cdr:stop']);
    await other.receive(other.invite());
    expect(headerOf(other.bench.toCaller.at(-1) ?? '', 'Allow')).toBe('OPTIONS, ACK, BYE, CANCEL');
    expect(other.bench.toApp.filter((frame) => frame.includes('|cdr:attempt|'))).toEqual([]);
  });
});
