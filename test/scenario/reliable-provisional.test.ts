import { beforeEach, describe, expect, it } from 'vitest';
import { headerOf, NOTHING_LEFT, Scenario, SDP } from '../support/scenario.js';

let call: Scenario;

beforeEach(async () => {
  call = await Scenario.start();
});

const RELIABLE = 'Require: 100rel\r\n';
const supported = { extra: ['Supported: 100rel'] };

async function progressed(): Promise<{ readonly id: string; readonly to: string; readonly rseq: number }> {
  const id = await call.offered(supported);
  expect(await call.respond(id, '183 Session Progress', RELIABLE, SDP)).toBe('OK');
  const text = call.lastSent('SIP/2.0 183');
  return { id, to: headerOf(text, 'To'), rseq: Number(headerOf(text, 'RSeq')) };
}

const prack = (to: string, rack: string, cseq = 2): string => call.request('PRACK', { to, cseq, extra: [`RAck: ${rack}`] });

describe('a SIP server that sends a reliable provisional response of the application', () => {
  it('[3262 §3] gives it RSeq and Contact, and repeats it after T1, doubling, until its PRACK comes', async () => {
    const { to, rseq } = await progressed();
    expect(rseq).toBeGreaterThan(0);
    expect(headerOf(call.lastSent('SIP/2.0 183'), 'Contact')).toBe('<sips:127.0.0.1:25061;transport=tls>');
    call.forget();
    const counts: number[] = [];
    for (const gap of [499, 1, 999, 1, 2_000, 4_000, 8_000]) {
      await call.bench.pass(gap);
      counts.push(call.sent.length);
    }
    expect(counts).toEqual([0, 1, 1, 2, 3, 4, 5]);
    await call.receive(prack(to, `${String(rseq)} 1 INVITE`));
    call.forget();
    await call.bench.pass(15_000);
    expect(call.sent.filter((line) => line.includes('183'))).toEqual([]);
  });

  it('[3262 §3] shows the PRACK to the application in its dialog, and returns the answer to it', async () => {
    const { to, rseq } = await progressed();
    await call.receive(prack(to, `${String(rseq)} 1 INVITE`));
    expect(call.shown.at(-1)).toBe('PRACK sip:b@server SIP/2.0');
    expect(call.sipFrames.at(-1)?.split('|')[9]).toBe(call.dialogId);
    await call.respond(call.transactionId, '200 OK');
    expect(headerOf(call.bench.toCaller.at(-1) ?? '', 'CSeq')).toBe('2 PRACK');
  });

  it.each([
    ['another RSeq', (rseq: number) => `${String(rseq + 1)} 1 INVITE`],
    ['another CSeq number', (rseq: number) => `${String(rseq)} 7 INVITE`],
    ['another method', (rseq: number) => `${String(rseq)} 1 UPDATE`],
    ['no numbers', () => 'x'],
  ])('[3262 §3] answers 481 to a PRACK that names %s, and takes nothing for acknowledged', async (_what, rack) => {
    const { to, rseq } = await progressed();
    expect(await call.receive(prack(to, rack(rseq)))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
    expect(call.shown.at(-1)).toBe('INVITE sip:b@server SIP/2.0');
    call.forget();
    await call.bench.pass(500);
    expect(call.sent).toEqual(['SIP/2.0 183 Session Progress']);
  });

  it("takes a RAck with more text after the method, as drachtio-srf's own SIPp scenario sends it", async () => {
    const { to, rseq } = await progressed();
    await call.receive(prack(to, `${String(rseq)} 1 INVITE INVITE`));
    expect(call.shown.at(-1)).toBe('PRACK sip:b@server SIP/2.0');
  });

  it('[3262 §3] answers 481 to a second PRACK for the same response', async () => {
    const { to, rseq } = await progressed();
    await call.receive(prack(to, `${String(rseq)} 1 INVITE`));
    expect(await call.receive(prack(to, `${String(rseq)} 1 INVITE`, 3))).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
  });

  it('[3262 §3] holds a 2xx back until the PRACK, and tells the application when it has sent it', async () => {
    const { id, to, rseq } = await progressed();
    expect(await call.respond(id, '200 OK', '', SDP)).toBe('');
    expect(call.sent).not.toContain('SIP/2.0 200 OK');
    await call.receive(prack(to, `${String(rseq)} 1 INVITE`));
    expect(headerOf(call.lastSent('SIP/2.0 200'), 'CSeq')).toBe('1 INVITE');
    const echo = call.bench.toApp.findLastIndex((frame) => frame.includes('|Msg sent:|\r\nSIP/2.0 200 OK'));
    const shown = call.bench.toApp.findLastIndex((frame) => frame.includes('PRACK sip:b@server'));
    expect(echo).toBeGreaterThan(shown);
  });

  it('[3262 §3] holds a second one back until the PRACK for the first, and gives it the next RSeq', async () => {
    const { id, to, rseq } = await progressed();
    expect(await call.respond(id, '180 Ringing', RELIABLE)).toBe('');
    await call.receive(prack(to, `${String(rseq)} 1 INVITE`));
    expect(headerOf(call.lastSent('SIP/2.0 180'), 'RSeq')).toBe(String(rseq + 1));
  });

  it('[3262 §3] sends an error response at once, and drops the response that waited', async () => {
    const { id } = await progressed();
    await call.command(`late|sip|${id}|\r\nSIP/2.0 180 Ringing\r\n${RELIABLE}\r\n`);
    expect(await call.respond(id, '486 Busy Here')).toBe('OK');
    expect(call.sent.at(-1)).toBe('SIP/2.0 486 Busy Here');
    const late = call.bench.toApp.find((frame) => frame.split('|')[2] === 'late');
    expect(late?.split('|').slice(3)).toEqual(['NOK', 'Response not sent due to unknown transaction']);
  });

  it('[3262 §3] refuses the INVITE and tells the application when no PRACK comes within 64·T1', async () => {
    await progressed();
    await call.bench.pass(32_000);
    expect(call.sent.at(-1)).toBe('SIP/2.0 504 Server Time-out');
    expect(call.shown.at(-1)).toBe('CANCEL sip:b@server SIP/2.0');
    await call.receive(call.request('ACK', { branch: 'z9hG4bKinvite', to: headerOf(call.lastSent('SIP/2.0 504'), 'To') }));
    await call.bench.pass(1);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('[3262 §3] refuses it when the caller does not support 100rel', async () => {
    const id = await call.offered();
    expect(await call.respond(id, '183 Session Progress', RELIABLE, SDP)).toBe('NOK|Remote endpoint does not support 100rel');
    expect(call.sent).toEqual(['SIP/2.0 100 Trying']);
  });

  it('[3261 §15.1.2] answers a BYE on the early dialog, and the INVITE with 487', async () => {
    const { to } = await progressed();
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    expect(call.sent).toContain('SIP/2.0 487 Request Terminated');
    expect(call.shown.at(-1)).toBe('CANCEL sip:b@server SIP/2.0');
    expect([call.sent.at(-1), headerOf(call.bench.toCaller.at(-1) ?? '', 'CSeq')]).toEqual(['SIP/2.0 200 OK', '2 BYE']);
  });

  it('[3311 §5.1] shows an UPDATE of the caller to the application before the INVITE is answered', async () => {
    const { to, rseq } = await progressed();
    await call.receive(prack(to, `${String(rseq)} 1 INVITE`));
    await call.respond(call.transactionId, '200 OK');
    await call.receive(call.request('UPDATE', { to, cseq: 3 }));
    expect(call.shown.at(-1)).toBe('UPDATE sip:b@server SIP/2.0');
  });

  it('[3261 §14.2] answers a second INVITE before the first is answered with 500 and Retry-After', async () => {
    const { to } = await progressed();
    expect(await call.receive(call.invite({ to, cseq: 2, branch: 'z9hG4bKsecond' }))).toBe('SIP/2.0 500 Server Internal Error');
    expect(headerOf(call.bench.toCaller.at(-1) ?? '', 'Retry-After')).toMatch(/^\d+$/);
  });
});

describe('a SIP server that gets a reliable provisional response', () => {
  async function invited(): Promise<string> {
    await call.send('INVITE sip:peer@10.0.0.9:5060', '', '', SDP);
    return call.lastSent('INVITE ');
  }
  const reliable = (rseq: number): { tag: string; extra: string[]; body: string } => ({
    tag: 'peer',
    extra: ['Require: 100rel', `RSeq: ${String(rseq)}`, 'Contact: <sip:peer@10.0.0.9>', 'Content-Type: application/sdp'],
    body: SDP,
  });

  it('[3262 §4] lets the application send PRACK in the early dialog, and keeps the CSeq of the INVITE for the ACK', async () => {
    const invite = await invited();
    await call.answer(invite, '183 Session Progress', reliable(5));
    const dialogId = call.sipFrames.at(-1)?.split('|')[9] ?? '';
    const number = Number(headerOf(invite, 'CSeq').split(' ')[0]);
    expect(await call.send('PRACK sip:placeholder', dialogId, `RAck: 5 ${String(number)} INVITE\r\n`)).toBe('OK');
    expect(headerOf(call.lastSent('PRACK sip:peer@10.0.0.9'), 'CSeq')).toBe(`${String(number + 1)} PRACK`);
    await call.answer(invite, '200 OK', { tag: 'peer', extra: ['Contact: <sip:peer@10.0.0.9>'] });
    await call.send('ACK sip:placeholder', dialogId);
    expect(headerOf(call.lastSent('ACK sip:peer@10.0.0.9'), 'CSeq')).toBe(`${String(number)} ACK`);
  });

  it('[3262 §4] shows it once, and not out of order', async () => {
    const invite = await invited();
    for (const rseq of [5, 5, 7, 6]) await call.answer(invite, '183 Session Progress', reliable(rseq));
    expect(call.sipFrames.map((frame) => headerOf(frame, 'RSeq'))).toEqual(['5', '6']);
  });

  it('keeps nothing of the early dialog when the peer refuses', async () => {
    const invite = await invited();
    await call.answer(invite, '183 Session Progress', reliable(5));
    await call.answer(invite, '486 Busy Here', { tag: 'peer' });
    await call.bench.pass(32_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });
});
