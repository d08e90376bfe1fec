import { beforeEach, describe, expect, it } from 'vitest';
import { headerOf, NOTHING_LEFT, Scenario, startOf } from '../support/scenario.js';

let call: Scenario;

describe('a SUBSCRIBE from the network', () => {
  beforeEach(async () => {
    call = await Scenario.start(['subscribe']);
  });

  async function subscribed(expires = 60): Promise<string> {
    await call.receive(call.request('SUBSCRIBE', { extra: ['Event: presence', `Expires: ${String(expires)}`] }));
    await call.respond(call.transactionId, '202 Accepted', `Expires: ${String(expires)}\r\n`);
    return headerOf(call.lastSent('SIP/2.0 202'), 'To');
  }

  it('[6665 §4.2.1] makes a dialog with its 2xx, which has a Contact', async () => {
    expect(await subscribed()).toContain(';tag=');
    expect(headerOf(call.lastSent('SIP/2.0 202'), 'Contact')).toContain('127.0.0.1:25061');
    expect(await call.send('NOTIFY sip:placeholder', call.dialogId, 'Event: presence\r\nSubscription-State: active\r\n')).toBe('OK');
    const notify = call.lastSent('NOTIFY sip:a@caller:6000');
    expect(headerOf(notify, 'From')).toContain('<sip:b@server>');
    await call.answer(notify, '200 OK');
    expect(call.sipFrames.at(-1)?.split('|')[9]).toBe(call.dialogId);
  });

  it('[6665 §4.4.1] ends with a NOTIFY that says terminated, once that is answered', async () => {
    await subscribed();
    await call.send('NOTIFY sip:placeholder', call.dialogId, 'Subscription-State: terminated;reason=timeout\r\n');
    await call.answer(call.lastSent('NOTIFY '), '200 OK');
    expect(await call.send('NOTIFY sip:placeholder', call.dialogId)).toMatch(/unable to find dialog/);
    // So long the way back to the Contact is kept.
    await call.bench.pass(60_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('goes on when it is refreshed, and ends without a message when nobody refreshes it', async () => {
    const to = await subscribed(60);
    await call.bench.pass(50_000);
    await call.receive(call.request('SUBSCRIBE', { to, cseq: 2, extra: ['Expires: 60'] }));
    await call.respond(call.transactionId, '200 OK', 'Expires: 60\r\n');
    await call.bench.pass(91_999);
    expect(call.bench.dialogCount).toBe(1);
    call.forget();
    await call.bench.pass(1);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
    expect(call.sent).toEqual([]);
  });

  it('gets no BYE when its application is gone', async () => {
    await subscribed();
    call.forget();
    call.bench.dropApp();
    await call.bench.settle();
    expect(call.sent).toEqual([]);
    expect(call.bench.dialogCount).toBe(0);
  });

  it.each(['x', '-1', '1.5'])('lasts for the default time when its Expires is %s', async (expires) => {
    await call.receive(call.request('SUBSCRIBE', { extra: [`Expires: ${expires}`] }));
    await call.respond(call.transactionId, '200 OK');
    await call.bench.pass(3_600_000);
    expect(call.bench.dialogCount).toBe(1);
    await call.bench.pass(32_000);
    expect(call.bench.dialogCount).toBe(0);
  });
});

describe('a SUBSCRIBE of the application', () => {
  beforeEach(async () => {
    call = await Scenario.start([]);
    await call.send('SUBSCRIBE sip:peer@10.0.0.9', '', 'Event: presence\r\nExpires: 60\r\n');
  });

  it('[6665 §4.1] makes a dialog that takes the NOTIFYs of the peer until the last one ends it', async () => {
    const subscribe = call.lastSent('SUBSCRIBE ');
    await call.answer(subscribe, '200 OK', { tag: 'peer', extra: ['Expires: 60', 'Contact: <sip:peer@10.0.0.9>'] });
    const callId = headerOf(subscribe, 'Call-ID');
    const notify = (cseq: number, state: string): string =>
      call.request('NOTIFY', {
        callId,
        cseq,
        from: `${headerOf(subscribe, 'To')};tag=peer`,
        to: headerOf(subscribe, 'From'),
        extra: [`Subscription-State: ${state}`],
      });
    await call.receive(notify(1, 'active;expires=60'));
    expect(call.shown.at(-1)).toBe('NOTIFY sip:b@server SIP/2.0');
    expect(call.sipFrames.at(-1)?.split('|')[9]).toBe(`${callId};from-tag=${/tag=(.*)$/.exec(headerOf(subscribe, 'From'))?.[1] ?? ''}`);
    expect(await call.respond(call.transactionId, '200 OK')).toBe('OK');
    await call.receive(notify(2, 'terminated'));
    await call.respond(call.transactionId, '200 OK');
    expect(await call.receive(notify(3, 'active'))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('leaves nothing when it is refused', async () => {
    await call.answer(call.lastSent('SUBSCRIBE '), '489 Bad Event', { tag: 'peer' });
    expect(call.shown.at(-1)).toBe('SIP/2.0 489 Bad Event');
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it.each([
    ['200 OK', 'NOTIFY sip:b@server SIP/2.0'],
    ['403 Forbidden', 'SIP/2.0 403 Forbidden'],
  ])('[6665 §4.1.2.4] keeps a NOTIFY that overtakes the %s until that comes', async (status, last) => {
    const subscribe = call.lastSent('SUBSCRIBE ');
    const from = `${headerOf(subscribe, 'To')};tag=peer`;
    const early = { callId: headerOf(subscribe, 'Call-ID'), from, to: headerOf(subscribe, 'From'), extra: ['Subscription-State: active'] };
    await call.receive(call.request('NOTIFY', early));
    expect(call.shown).toEqual([]);
    await call.answer(subscribe, status, { tag: 'peer', extra: ['Expires: 60', 'Contact: <sip:peer@10.0.0.9>'] });
    expect(call.shown[0]).toBe(`SIP/2.0 ${status}`);
    expect(call.shown.at(-1)).toBe(last);
    expect(call.sent.at(-1)).toBe(status === '200 OK' ? startOf(subscribe) : 'SIP/2.0 481 Call/Transaction Does Not Exist');
  });

  it('keeps eight NOTIFYs that overtake the answer, and refuses the ninth', async () => {
    const subscribe = call.lastSent('SUBSCRIBE ');
    const from = `${headerOf(subscribe, 'To')};tag=peer`;
    const early = { callId: headerOf(subscribe, 'Call-ID'), from, to: headerOf(subscribe, 'From'), extra: ['Subscription-State: active'] };
    for (let cseq = 1; cseq <= 8; cseq += 1) await call.receive(call.request('NOTIFY', { ...early, cseq }));
    expect(call.sent.at(-1)).toBe(startOf(subscribe));
    expect(await call.receive(call.request('NOTIFY', { ...early, cseq: 9 }))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    await call.answer(subscribe, '200 OK', { tag: 'peer', extra: ['Expires: 60', 'Contact: <sip:peer@10.0.0.9>'] });
    expect(call.shown.filter((line) => line.startsWith('NOTIFY '))).toHaveLength(8);
  });
});
