import { beforeEach, describe, expect, it } from 'vitest';
import { headerOf, NOTHING_LEFT, Scenario } from '../support/scenario.js';

let call: Scenario;
let to: string;

/** Drops the application, and lets what it leaves behind happen. */
async function applicationGone(): Promise<void> {
  call.bench.dropApp();
  await call.bench.settle();
  call.forget();
}

beforeEach(async () => {
  call = await Scenario.start();
  call.bench.identify(['gw:a']);
  to = await call.connected();
});

describe('a SIP server whose application said who it is and is gone', () => {
  it('keeps the calls and lets the application end them with BYE when it is back', async () => {
    await applicationGone();
    await call.bench.pass(9_999);
    expect(call.sent).toEqual([]);
    await call.bench.connectAgain(['gw:a']);
    expect(await call.send('BYE sip:placeholder', call.dialogId)).toBe('OK');
    await call.answer(call.lastSent('BYE sip:a@caller:6000'), '200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('shows the application, when it is back, what the caller does next', async () => {
    await applicationGone();
    await call.bench.connectAgain(['gw:a']);
    await call.receive(call.request('INFO', { to, cseq: 2 }));
    expect(call.shown).toEqual(['INFO sip:b@server SIP/2.0']);
  });

  it('ends the calls when the grace period is over', async () => {
    await applicationGone();
    await call.bench.pass(10_000);
    expect(call.sent).toEqual(['BYE sip:a@caller:6000;transport=tls SIP/2.0']);
    expect(headerOf(call.lastSent('BYE '), 'Reason')).toContain('application gone');
    await call.answer(call.lastSent('BYE '), '200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('does not give the calls to another application', async () => {
    await applicationGone();
    await call.bench.connectAgain(['gw:b']);
    await call.receive(call.request('INFO', { to, cseq: 2 }));
    await call.bench.pass(2_000);
    expect([call.shown, call.sent]).toEqual([[], ['SIP/2.0 500 Server Internal Error']]);
    call.forget();
    await call.bench.pass(8_000);
    expect(call.sent).toEqual(['BYE sip:a@caller:6000;transport=tls SIP/2.0']);
  });

  it('answers 200 to a BYE, and 500 with Retry-After to any other request, when the application is not back within 2 s', async () => {
    await applicationGone();
    await call.receive(call.request('INFO', { to, cseq: 2 }));
    await call.bench.pass(1_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(1);
    expect(call.sent).toEqual(['SIP/2.0 500 Server Internal Error']);
    expect(headerOf(call.bench.toCaller.at(-1) ?? '', 'Retry-After')).toMatch(/^\d+$/);
    await call.receive(call.request('BYE', { to, cseq: 3 }));
    await call.bench.pass(2_000);
    expect(call.sent.at(-1)).toBe('SIP/2.0 200 OK');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('shows the application, when it is back, what the caller sent in the last 2 s, a BYE too', async () => {
    await applicationGone();
    await call.receive(call.request('INFO', { to, cseq: 2 }));
    await call.receive(call.request('BYE', { to, cseq: 3 }));
    await call.bench.pass(1_999);
    await call.bench.connectAgain(['gw:a']);
    expect([call.shown, call.sent]).toEqual([['INFO sip:b@server SIP/2.0', 'BYE sip:b@server SIP/2.0'], []]);
  });

  it('ends the calls when the application is back and sends nothing in them within 32 s, for it does not have them any more', async () => {
    await applicationGone();
    await call.bench.connectAgain(['gw:a']);
    await call.bench.pass(31_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(1);
    expect(call.sent).toEqual(['BYE sip:a@caller:6000;transport=tls SIP/2.0']);
  });

  it('keeps the calls when the application is back and sends a request in them', async () => {
    await applicationGone();
    await call.bench.connectAgain(['gw:a']);
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    await call.answer(call.lastSent('OPTIONS '), '200 OK');
    call.forget();
    await call.bench.pass(32_000);
    expect(call.sent).toEqual([]);
  });

  it('answers 503 at once to an INVITE that the application had not answered, so that another one can take it', async () => {
    await call.offered({ callId: 'call2', branch: 'z9hG4bKother' });
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent.at(-1)).toBe('SIP/2.0 503 Service Unavailable');
  });

  it('answers 500 to a re-INVITE that the application had not answered, because no other one has the call', async () => {
    await call.receive(call.request('INVITE', { to, cseq: 2 }));
    call.forget();
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent).toEqual(['SIP/2.0 500 Server Internal Error']);
  });

  it('[3261 §15.1.2] answers 200 to a BYE that the application had not answered, because the call has ended', async () => {
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    call.forget();
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent).toEqual(['SIP/2.0 200 OK']);
  });

  it('ends the calls at once when the application did not say who it is', async () => {
    call.bench.identify([]);
    call.forget();
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent).toEqual(['BYE sip:a@caller:6000;transport=tls SIP/2.0']);
  });
});

describe('when the only application that had said who it is', () => {
  const next = { callId: 'call2', branch: 'z9hG4bKother' };
  const UNAVAILABLE = 'SIP/2.0 503 Service Unavailable';

  it('is gone, a new call waits 4 s for it', async () => {
    await applicationGone();
    await call.receive(call.invite(next));
    await call.bench.pass(3_900);
    expect(call.sent).toEqual(['SIP/2.0 100 Trying']);
    await call.bench.connectAgain(['gw:a']);
    call.bench.fromApp('r|route|invite');
    await call.bench.settle();
    expect([call.shown, call.sent]).toEqual([['INVITE sip:b@server SIP/2.0'], ['SIP/2.0 100 Trying']]);
  });

  it('is gone for longer, a new call gets 503, and every later one gets it at once', async () => {
    await applicationGone();
    await call.receive(call.invite(next));
    await call.bench.pass(4_000);
    expect(call.sent).toEqual(['SIP/2.0 100 Trying', UNAVAILABLE]);
    await call.receive(call.invite({ callId: 'call3', branch: 'z9hG4bKthird' }));
    expect(call.sent.at(-1)).toBe(UNAVAILABLE);
  });

  it('withdraws from INVITE alone, to be replaced, a new call waits; when it withdraws from OPTIONS too, to drain, it does not', async () => {
    call.bench.fromApp('o|route|options');
    call.bench.fromApp('w|remove_route|invite');
    await call.bench.settle();
    await call.receive(call.invite(next));
    expect(call.sent.at(-1)).toBe('SIP/2.0 100 Trying');
    call.bench.fromApp('v|remove_route|options');
    await call.bench.settle();
    await call.receive(call.invite({ callId: 'call3', branch: 'z9hG4bKthird' }));
    expect(call.sent.at(-1)).toBe(UNAVAILABLE);
    await applicationGone();
    await call.receive(call.invite({ callId: 'call4', branch: 'z9hG4bKfourth' }));
    expect(call.sent.at(-1)).toBe(UNAVAILABLE);
  });

  it('is gone and the caller cancels meanwhile, the application is not shown the call', async () => {
    await applicationGone();
    await call.receive(call.invite(next));
    await call.receive(call.request('CANCEL', { ...next, cseq: 1 }));
    expect(call.sent.at(-1)).toBe('SIP/2.0 487 Request Terminated');
    await call.bench.connectAgain(['gw:a']);
    call.bench.fromApp('r|route|invite');
    await call.bench.settle();
    expect(call.shown).toEqual([]);
  });
});
