import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { headerOf, NOTHING_LEFT, Scenario, SDP } from '../support/scenario.js';

const TO_CALLER = 'sip:a@caller:6000;transport=tls';

let directory: string;
let serial = 0;
let call: Scenario;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-crash-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

beforeEach(async () => {
  call = await Scenario.start(['invite'], 'TLS', join(directory, String((serial += 1))));
  call.bench.identify(['gw:a']);
});

/** kill -9; the caller has another connection, and the application is back. */
async function crash(awayMs = 0): Promise<void> {
  await call.bench.settle();
  call.bench.crash(awayMs);
  call.forget();
  call.bench.callAgainFrom('127.0.0.1');
  await call.bench.connectAgain(['gw:a']);
}

const cseqOf = (text: string): number => Number(headerOf(text, 'CSeq').split(' ')[0]);

describe('a SIP server that took over the dialogs of one that was killed', () => {
  it('[3261 §12.2.1.1] leaves one gap in its CSeq numbers, and none later', async () => {
    await call.connected();
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    const before = cseqOf(call.lastSent('OPTIONS '));
    await crash();
    const after: number[] = [];
    for (let request = 0; request < 3; request += 1) {
      await call.send('INFO sip:placeholder', call.dialogId);
      after.push(cseqOf(call.lastSent('INFO ')));
      await call.answer(call.lastSent('INFO '), '200 OK');
    }
    const [first = 0] = after;
    expect(first).toBeGreaterThan(before + 1);
    expect(after).toEqual([first, first + 1, first + 2]);
  });

  it('[3261 §12.2.1.1] uses no number again after any number of requests and kills', async () => {
    await call.connected();
    const seen: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      for (let request = 0; request < 130; request += 1) {
        await call.send('INFO sip:placeholder', call.dialogId);
        seen.push(cseqOf(call.lastSent('INFO ')));
        await call.answer(call.lastSent('INFO '), '200 OK');
      }
      await crash();
    }
    expect(seen).toEqual([...new Set(seen)].sort((one, other) => one - other));
  });

  it('[3261 §13.2.2.4] acknowledges the repeated 2xx to a re-INVITE that the other one sent', async () => {
    await call.connected();
    await call.send('INVITE sip:placeholder', call.dialogId, '', SDP);
    const reinvite = call.lastSent('INVITE ');
    await crash();
    await call.answer(reinvite, '200 OK', { body: SDP });
    expect([call.sent, cseqOf(call.lastSent('ACK '))]).toEqual([[`ACK ${TO_CALLER} SIP/2.0`], cseqOf(reinvite)]);
    await call.answer(reinvite, '200 OK', { body: SDP });
    expect(call.sent).toEqual([`ACK ${TO_CALLER} SIP/2.0`, `ACK ${TO_CALLER} SIP/2.0`]);
  });

  it('[3261 §13.2.2.4] acknowledges that 2xx as the other one did, with the answer to its offer', async () => {
    await call.connected();
    await call.send('INVITE sip:placeholder', call.dialogId);
    const reinvite = call.lastSent('INVITE ');
    await call.answer(reinvite, '200 OK', { body: SDP });
    await call.send('ACK sip:placeholder', call.dialogId, '', SDP);
    await crash();
    await call.answer(reinvite, '200 OK', { body: SDP });
    expect(call.lastSent('ACK ').endsWith(SDP)).toBe(true);
  });

  it('[3261 §13.2.2.4] acknowledges that 2xx even after a re-INVITE of its own', async () => {
    await call.connected();
    await call.send('INVITE sip:placeholder', call.dialogId, '', SDP);
    const reinvite = call.lastSent('INVITE ');
    await crash();
    await call.send('INVITE sip:placeholder', call.dialogId, '', SDP);
    const next = call.lastSent('INVITE ');
    await call.answer(reinvite, '200 OK', { body: SDP });
    expect(cseqOf(call.lastSent('ACK '))).toBe(cseqOf(reinvite));
    await call.answer(next, '200 OK', { body: SDP });
    await call.send('ACK sip:placeholder', call.dialogId);
    expect(cseqOf(call.lastSent('ACK '))).toBe(cseqOf(next));
  });

  it('[3261 §13.2.2.4] acknowledges that 2xx without the answer that went with the ACK to an earlier 2xx', async () => {
    await call.connected();
    await call.send('INVITE sip:placeholder', call.dialogId);
    await call.answer(call.lastSent('INVITE '), '200 OK', { body: SDP });
    await call.send('ACK sip:placeholder', call.dialogId, '', SDP);
    await call.send('INVITE sip:placeholder', call.dialogId, '', SDP);
    const reinvite = call.lastSent('INVITE ');
    await crash();
    await call.answer(reinvite, '200 OK', { body: SDP });
    const ack = call.lastSent('ACK ');
    expect([cseqOf(ack), ack.endsWith('Content-Length: 0\r\n\r\n')]).toEqual([cseqOf(reinvite), true]);
  });

  describe('[3261 §13.2.2.4] when it gets the 2xx to an INVITE that the other one sent,', () => {
    const ELSEWHERE = 'sip:peer@elsewhere.example:5061;transport=tls';
    const answered = async (change: (invite: string) => string, contact = `Contact: <${ELSEWHERE}>`): Promise<string> => {
      await call.send('INVITE sip:peer@10.0.0.9:5060', '', '', SDP);
      const invite = call.lastSent('INVITE ');
      await crash();
      await call.answer(change(invite), '200 OK', { tag: 'peer', extra: [contact], body: SDP });
      return invite;
    };

    it('ends the call with ACK and BYE over the connection that the answer came by', async () => {
      const invite = await answered((text) => text);
      expect(call.sent).toEqual([`ACK ${ELSEWHERE} SIP/2.0`, `BYE ${ELSEWHERE} SIP/2.0`]);
      const [ack, bye] = [call.lastSent('ACK '), call.lastSent('BYE ')];
      expect([cseqOf(ack), cseqOf(bye)]).toEqual([cseqOf(invite), cseqOf(invite) + 1]);
      for (const name of ['From', 'Call-ID']) expect(headerOf(bye, name)).toBe(headerOf(invite, name));
      expect(headerOf(bye, 'To')).toContain('tag=peer');
      expect(call.shown).toEqual([]);
      await call.answer(bye, '200 OK');
      await call.bench.pass(40_000);
      expect(call.bench.left).toEqual(NOTHING_LEFT);
    });

    it.each([
      ['another’s Via', (text: string) => text.replace(/^Via: SIP\/2.0\/TLS [^;]+/m, 'Via: SIP/2.0/TLS other.example:5061')],
      ['a second Via', (text: string) => text.replace(/^(Via: .*)\r$/m, '$1\r\nVia: SIP/2.0/TLS other.example:5061;branch=z9hG4bKx\r')],
    ])('sends nothing to a 2xx with %s', async (_what, change) => {
      await answered(change);
      expect(call.sent).toEqual([]);
    });

    it('sends nothing to a 2xx without a Contact', async () => {
      await answered((text) => text, 'Server: x');
      expect(call.sent).toEqual([]);
    });
  });

  it('[3261 §13.3.1.4] retransmits the 200 until its ACK comes, and gives the ACK to the application', async () => {
    await call.respond(await call.offered(), '200 OK', '', SDP);
    const ok = call.lastSent('SIP/2.0 200');
    await crash();
    await call.bench.pass(500);
    expect(call.lastSent('SIP/2.0 200')).toBe(ok);
    await call.receive(call.request('ACK', { to: headerOf(ok, 'To') }));
    expect(call.shown).toEqual(['ACK sip:b@server SIP/2.0']);
    call.forget();
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    await call.answer(call.lastSent('OPTIONS '), '200 OK');
    call.forget();
    await call.bench.pass(40_000);
    expect(call.sent).toEqual([]);
  });

  it('[3261 §13.3.1.4] waits the full 64·T1 again for that ACK, then sends BYE', async () => {
    await call.respond(await call.offered(), '200 OK', '', SDP);
    await call.bench.pass(31_000);
    await crash();
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    await call.answer(call.lastSent('OPTIONS '), '200 OK');
    await call.bench.pass(31_999);
    expect(call.sent.filter((start) => start.startsWith('BYE'))).toEqual([]);
    await call.bench.pass(1);
    expect(headerOf(call.lastSent('BYE '), 'Reason')).toContain('ACK timeout');
  });

  it('[3261 §17.2.1] answers a repeated INVITE with the same 200, and takes an INVITE with another branch as a new call', async () => {
    await call.respond(await call.offered(), '200 OK', '', SDP);
    const ok = call.lastSent('SIP/2.0 200');
    await crash();
    await call.receive(call.invite());
    expect([call.bench.toCaller, call.shown]).toEqual([[ok], []]);
    for (const branch of ['z9hG4bKanother', 'z9hG4bK']) expect(await call.receive(call.invite({ branch }))).not.toMatch(/200|482/);
  });

  it('[3261 §17.2.1] answers a repeated re-INVITE with the same 200', async () => {
    const to = await call.connected();
    const reinvite = call.invite({ to, cseq: 2, branch: 'z9hG4bKre' });
    await call.receive(reinvite);
    await call.respond(call.transactionId, '200 OK', '', SDP);
    const ok = call.lastSent('SIP/2.0 200');
    await crash();
    await call.receive(reinvite);
    expect([call.bench.toCaller, call.shown]).toEqual([[ok], []]);
  });

  const RELIABLE = 'Require: 100rel\r\n';
  const prack = (to: string, rseq: string, branch = 'z9hG4bKprack'): string =>
    call.request('PRACK', { to, cseq: 2, branch, extra: [`RAck: ${rseq} 1 INVITE`] });

  it('[3262 §3] answers 481 to the PRACK and the CANCEL of an INVITE without a final response, and leaves nothing of it', async () => {
    await call.respond(await call.offered({ extra: ['Supported: 100rel'] }), '183 Session Progress', RELIABLE, SDP);
    const progress = call.lastSent('SIP/2.0 183');
    await crash();
    const gone = 'SIP/2.0 481 Call/Transaction Does Not Exist';
    expect(await call.receive(prack(headerOf(progress, 'To'), headerOf(progress, 'RSeq')))).toBe(gone);
    expect(await call.receive(call.request('CANCEL', { branch: 'z9hG4bKinvite' }))).toBe(gone);
    await call.bench.pass(40_000);
    expect([call.sent, call.shown, call.bench.left]).toEqual([[gone, gone], [], NOTHING_LEFT]);
  });

  it('[3262 §3] keeps an answered call when a PRACK is repeated because its 200 was lost', async () => {
    const id = await call.offered({ extra: ['Supported: 100rel'] });
    await call.respond(id, '183 Session Progress', RELIABLE, SDP);
    const progress = call.lastSent('SIP/2.0 183');
    const repeated = prack(headerOf(progress, 'To'), headerOf(progress, 'RSeq'));
    await call.receive(repeated);
    await call.respond(call.transactionId, '200 OK');
    await call.respond(id, '200 OK');
    await crash();
    // Not 481, which would end it (RFC 3261 §12.2.1.2).
    expect(await call.receive(repeated)).toBe('SIP/2.0 500 CSeq Out Of Order');
    expect(call.bench.dialogCount).toBe(1);
  });

  it('shows the 200 to no other address', async () => {
    await call.respond(await call.offered(), '200 OK', '', SDP);
    await crash();
    call.bench.callAgainFrom('192.0.2.66');
    expect(await call.receive(call.invite())).not.toContain('200');
  });

  it('answers 403 to a request in the dialog from another address', async () => {
    const to = await call.connected();
    await crash();
    call.bench.callAgainFrom('192.0.2.66');
    expect(await call.receive(call.request('BYE', { to, cseq: 2 }))).toBe('SIP/2.0 403 Forbidden');
    call.bench.callAgainFrom('127.0.0.1');
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    expect(call.shown).toEqual(['BYE sip:b@server SIP/2.0']);
  });

  it('frees everything at the end of the call', async () => {
    const to = await call.connected();
    await crash();
    await call.receive(call.request('BYE', { to, cseq: 2 }));
    await call.respond(call.transactionId, '200 OK');
    await call.bench.pass(40_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
    call.bench.crash();
    expect(call.bench.dialogCount).toBe(0);
  });

  it('[3261 §12.2.1.2] forgets a dialog when its OPTIONS gets 481', async () => {
    await call.connected();
    await crash();
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    await call.answer(call.lastSent('OPTIONS '), '481 Call/Transaction Does Not Exist');
    expect(call.bench.dialogCount).toBe(0);
  });
});

describe('a call whose SIP server was killed', () => {
  it('ends with BYE when its application comes back after more than calls.park_ms', async () => {
    await call.connected();
    await crash(300_001);
    expect(call.sent).toEqual([`BYE ${TO_CALLER} SIP/2.0`]);
    await call.answer(call.lastSent('BYE '), '200 OK');
    expect(await call.send('OPTIONS sip:placeholder', call.dialogId)).toMatch(/unable to find dialog/);
    await call.bench.pass(40_000);
    expect(call.bench.left).toEqual(NOTHING_LEFT);
  });

  it('goes on when its application comes back a little before calls.park_ms is over', async () => {
    await call.connected();
    await crash(290_000);
    expect(await call.send('OPTIONS sip:placeholder', call.dialogId)).toBe('OK');
    expect(call.sent).toEqual([`OPTIONS ${TO_CALLER} SIP/2.0`]);
  });
});

describe('the session timer of a call whose SIP server was killed', () => {
  const timer = (refresher: string): string[] => ['Supported: timer', `Session-Expires: 90;refresher=${refresher}`];

  /** Of 90 s: the caller refreshes until 60 s, or we do at 45 s. */
  async function connected(refresher: 'uac' | 'uas'): Promise<void> {
    const to = await call.connected({ extra: timer(refresher) });
    expect(to).toContain('tag');
  }

  async function acted(): Promise<void> {
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    await call.answer(call.lastSent('OPTIONS '), '200 OK');
    call.forget();
  }

  it('goes on, and sends a refresh that is ours when it is due', async () => {
    await connected('uas');
    await call.bench.pass(20_000);
    await crash();
    await acted();
    await call.bench.pass(24_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(1);
    expect(call.sent).toEqual([`INVITE ${TO_CALLER} SIP/2.0`]);
    expect(call.lastSent('INVITE ').endsWith(SDP)).toBe(true);
  });

  it('sends a refresh of ours that fell due meanwhile within 10 s', async () => {
    await connected('uas');
    await call.bench.settle();
    call.bench.crash(60_000);
    call.bench.callAgainFrom('127.0.0.1');
    await call.bench.connectAgain(['gw:a']);
    call.forget();
    await call.bench.pass(10_000);
    expect(call.sent).toEqual([`INVITE ${TO_CALLER} SIP/2.0`]);
  });

  it('gives the caller 32 s for a refresh that fell due meanwhile', async () => {
    await connected('uac');
    await call.bench.settle();
    call.bench.crash(120_000);
    call.bench.callAgainFrom('127.0.0.1');
    await call.bench.connectAgain(['gw:a']);
    await acted();
    await call.bench.pass(31_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(1);
    expect(headerOf(call.lastSent('BYE '), 'Reason')).toContain('Session timer expired');
  });

  it('waits for a refresh of the caller until the time that was set before', async () => {
    await connected('uac');
    await call.bench.pass(10_000);
    await crash();
    await acted();
    await call.bench.pass(49_999);
    expect(call.sent).toEqual([]);
    await call.bench.pass(1);
    expect(call.sent).toEqual([`BYE ${TO_CALLER} SIP/2.0`]);
  });
});

describe('a SIP server whose dialogs another host may have', () => {
  it('sends no request in them but BYE, and puts off the refresh', async () => {
    await call.connected({ extra: ['Supported: timer', 'Session-Expires: 90;refresher=uas'] });
    call.forget();
    call.bench.isOwner = false;
    await call.send('OPTIONS sip:placeholder', call.dialogId);
    expect(call.sent).toEqual([]);
    await call.bench.pass(60_000);
    expect(call.sent).toEqual([]);
    call.bench.isOwner = true;
    await call.bench.pass(2_000);
    expect(call.sent).toEqual([`INVITE ${TO_CALLER} SIP/2.0`]);
    await call.answer(call.lastSent('INVITE '), '200 OK', { body: SDP });
    call.forget();
    call.bench.isOwner = false;
    await call.send('BYE sip:placeholder', call.dialogId);
    expect(call.sent).toEqual([`BYE ${TO_CALLER} SIP/2.0`]);
  });
});

describe('a SIP server that stood still while another host may have taken its dialogs', () => {
  it('sends no BYE, neither its own nor one of the application, before it knows who has them', async () => {
    await call.respond(await call.offered(), '200 OK', '', SDP);
    call.bench.isAwake = false;
    call.forget();
    await call.bench.pass(64_000);
    expect(call.sent.filter((start) => start.startsWith('BYE'))).toEqual([]);
    expect(await call.send('BYE sip:placeholder', call.dialogId)).toBe('NOK|another cell may have the dialog');
    call.bench.isAwake = true;
    await call.bench.pass(500);
    expect(headerOf(call.lastSent('BYE '), 'Reason')).toContain('ACK timeout');
  });

  it('keeps the calls of an application that is gone until it knows who has them', async () => {
    await call.connected();
    call.bench.isAwake = false;
    call.bench.dropApp();
    await call.bench.settle();
    call.forget();
    await call.bench.pass(20_000);
    expect(call.sent).toEqual([]);
    call.bench.isAwake = true;
    await call.bench.pass(500);
    expect(call.sent).toEqual([`BYE ${TO_CALLER} SIP/2.0`]);
  });
});
