import { describe, expect, it } from 'vitest';
import { TimerQueue } from '../../../../src/lib/timers.js';
import type { Dialog } from '../../../../src/sip/dialog/dialog.js';
import type { DialogRecord, DialogStore } from '../../../../src/sip/dialog/dialog-record.js';
import { DialogTable, type DialogEntry } from '../../../../src/sip/dialog/dialog-table.js';
import { parseVia, type CoreHeaders } from '../../../../src/sip/message/core-headers.js';
import { header, type SipRequest } from '../../../../src/sip/message/message.js';
import type { ServerTransaction } from '../../../../src/sip/transaction/transaction-runner.js';
import { DEFAULT_TIMERS } from '../../../../src/sip/transaction/timers.js';
import { PeerFlow } from '../../../support/user-agent-bench.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const STATE: Dialog = {
  role: 'uas',
  callId: 'c',
  localTag: 'ours',
  remoteTag: 'theirs',
  local: '<sip:us>;tag=ours',
  remote: '<sip:them>;tag=theirs',
  remoteTarget: 'sip:them@198.51.100.1',
  routeSet: ['<sip:198.51.100.2;lr>'],
  localSeq: 1,
  remoteSeq: 1,
};
const KEY = 'c|ours|theirs';
const ANSWER = { cseq: 1, text: 'SIP/2.0 200 OK\r\nVia: SIP/2.0/TLS them:5061;branch=z9hG4bK1\r\n\r\n', isInitial: true };
const CORE: CoreHeaders = {
  topVia: parseVia('SIP/2.0/TLS them:5061;branch=z9hG4bK1')!,
  callId: 'c',
  cseq: { number: 1, method: 'INVITE' },
  from: STATE.remote,
  fromTag: 'theirs',
  to: STATE.local,
  toTag: undefined,
};
const HOUR_S = 3_600;

class Store implements DialogStore {
  readonly done: (readonly unknown[])[] = [];
  isOwner = true;
  isAwake = true;

  write(key: string, changes: Partial<DialogRecord>, when: string): void {
    this.done.push(['write', key, changes, when]);
  }

  end(key: string): void {
    this.done.push(['end', key]);
  }

  isElsewhere(key: string): Promise<boolean> | false {
    return key === KEY && Promise.resolve(true);
  }
}

class Bench {
  readonly clock = new VirtualClock();
  readonly timers = new TimerQueue(this.clock);
  readonly store = new Store();
  readonly ended: string[] = [];
  readonly flow = new PeerFlow('192.0.2.1');
  readonly table: DialogTable;

  constructor(store?: null) {
    const ends = { onAckTimeout: () => this.ended.push('no ACK'), onSubscriptionExpired: () => this.ended.push('expired') };
    this.table = new DialogTable(this.timers, DEFAULT_TIMERS, ends, store === null ? null : this.store);
  }

  add(over: Partial<Dialog> = {}, merge: string | null = null): DialogEntry {
    return this.table.add({ ...STATE, ...over }, this.flow, 'invite', merge);
  }

  /** A dialog with a record. */
  written(): DialogEntry {
    const dialog = this.add();
    Object.assign(dialog, { isConfirmed: true, userData: 'mine' });
    this.table.save(dialog);
    return dialog;
  }

  restored(over: Partial<DialogRecord> = {}): DialogEntry {
    return this.table.restore({ ...new Bench().written().record, ...over }, this.flow);
  }

  /** What was done in the store since the last look. */
  get done(): (readonly unknown[])[] {
    return this.store.done.splice(0);
  }
}

const flowFrom = (address: string, tlsIdentity?: string): PeerFlow => Object.assign(new PeerFlow(address), { tlsIdentity });
const invite = (contact: string | null, body: string): SipRequest => ({
  kind: 'request',
  method: 'INVITE',
  uri: 'sip:a@b',
  body,
  headers: contact === null ? [] : [header('Contact', contact)],
});

describe('the table of dialogs', () => {
  it('finds a dialog by all of its id', () => {
    const { table, ...bench } = new Bench();
    const dialog = table.add(STATE, bench.flow, 'invite', null);
    expect([table.find('c', 'ours', 'theirs'), table.byKey(KEY), table.of({ ...CORE, toTag: 'ours' })]).toEqual([dialog, dialog, dialog]);
    expect([table.find('d', 'ours', 'theirs'), table.find('c', 'theirs', 'ours'), table.of(CORE), table.size]).toEqual([
      ...[undefined, undefined, undefined, 1],
    ]);
  });

  it('finds the dialog of a peer without a tag', () => {
    const bench = new Bench();
    const dialog = bench.add({ remoteTag: '' });
    expect(bench.table.of({ ...CORE, fromTag: undefined, toTag: 'ours' })).toBe(dialog);
  });

  it('removes a dialog that ends, and not the one that replaced it', () => {
    const bench = new Bench();
    const [first, second] = [bench.add(), bench.add()];
    bench.table.forget(first);
    expect([bench.table.size, first.isEnded, bench.table.byKey(KEY)]).toEqual([1, true, second]);
    bench.table.forget(second);
    expect(bench.table.size).toBe(0);
  });

  it('notifies the INVITE that waits in a dialog of its end, once', () => {
    const bench = new Bench();
    const dialog = bench.add();
    let ends = 0;
    dialog.invite = { reliable: undefined, onDialogEnded: () => (ends += 1) };
    bench.table.close(dialog);
    bench.table.close(dialog);
    expect([ends, dialog.invite]).toEqual([1, null]);
  });

  it('detects a merged copy of a request while that is in progress, and of an INVITE while its dialog is there', () => {
    const bench = new Bench();
    const { table } = bench;
    const transaction = (): ServerTransaction => ({ mergeKey: 'm' }) as unknown as ServerTransaction;
    const [first, copy] = [transaction(), transaction()];
    expect([table.claim(first), table.claim(copy)]).toEqual([true, false]);
    table.release(copy, null);
    expect(table.claim(copy)).toBe(false);
    table.release(first, null);
    expect(table.claim(copy)).toBe(true);
    table.release(copy, bench.add({ localTag: 'other' }, 'another'));
    expect(table.claim(first)).toBe(true);
    const dialog = bench.add({}, 'm');
    table.release(first, dialog);
    expect(table.claim(copy)).toBe(false);
    table.close(dialog);
    expect(table.claim(copy)).toBe(true);
  });
});

describe('the record of a dialog', () => {
  it('is written whole first, then what changed', () => {
    const bench = new Bench();
    const dialog = bench.written();
    expect(bench.done).toEqual([
      [
        ...['write', KEY],
        {
          role: 'uas',
          callId: 'c',
          localTag: 'ours',
          remoteTag: 'theirs',
          local: STATE.local,
          remote: STATE.remote,
          remoteTarget: 'sip:them@198.51.100.1',
          routeSet: STATE.routeSet,
          remoteSeq: 1,
          reservedSeq: 101,
          userData: 'mine',
          transport: 'TLS',
          sourceAddress: '192.0.2.1',
          sourcePort: 5_061,
          actors: ['192.0.2.1'],
          lastSdp: '',
          lastContact: null,
          sessionTimer: null,
          sessionDueMs: 0,
          unacknowledged: null,
          ownInviteSeq: 0,
          ackBody: '',
          isPublicOnly: false,
        },
        'now',
      ],
    ]);
    bench.table.save(dialog, 'soon');
    expect(bench.done).toEqual([]);
    dialog.state = { ...dialog.state, remoteSeq: 2 };
    bench.table.save(dialog, 'soon');
    expect(bench.done).toEqual([['write', KEY, { remoteSeq: 2 }, 'soon']]);
  });

  it.each([
    ['is not confirmed', { isConfirmed: false }],
    ['has ended', { isEnded: true }],
    ['ends with the process', { userData: null }],
  ])('does not exist for a dialog that %s', (_what, over) => {
    const bench = new Bench();
    const dialog = bench.add();
    Object.assign(dialog, { isConfirmed: true, userData: 'mine', ...over });
    bench.table.save(dialog);
    expect([bench.done, dialog.isWritten, bench.table.records(), bench.table.writtenKeys()]).toEqual([[], false, [], []]);
  });

  it('does not exist for a subscription', () => {
    const bench = new Bench();
    const dialog = bench.table.add(STATE, bench.flow, 'subscribe', null);
    Object.assign(dialog, { isConfirmed: true, userData: 'mine' });
    bench.table.save(dialog);
    expect(bench.done).toEqual([]);
  });

  it('reserves a hundred CSeq numbers at a time', () => {
    const bench = new Bench();
    const dialog = bench.written();
    const reservedAt = (localSeq: number): number => {
      dialog.state = { ...dialog.state, localSeq };
      return dialog.record.reservedSeq;
    };
    expect([1, 100, 101, 200, 201].map(reservedAt)).toEqual([101, 101, 201, 201, 301]);
  });

  it('goes with its dialog, unless the dialog is only closed', () => {
    const bench = new Bench();
    const dialog = bench.written();
    expect([bench.table.records(), bench.table.writtenKeys(), dialog.written]).toEqual([[dialog.record], [KEY], dialog.record]);
    bench.store.done.splice(0);
    bench.table.close(dialog);
    expect(bench.done).toEqual([]);
    bench.table.erase(dialog);
    bench.table.erase(dialog);
    expect(bench.done).toEqual([['end', KEY]]);
    bench.table.forget(bench.add());
    expect(bench.done).toEqual([]);
    bench.table.forget(bench.written());
    expect(bench.done.map(([what]) => what)).toEqual(['write', 'end']);
  });

  it('is written whole again where it came from elsewhere', () => {
    const bench = new Bench();
    const dialog = bench.restored();
    bench.table.saveWhole(dialog);
    expect(bench.done).toEqual([['write', KEY, dialog.record, 'now']]);
  });

  it('is not read where there is no store', () => {
    const { table } = new Bench(null);
    expect([table.isOwner, table.isAwake, table.isElsewhere({ ...CORE, toTag: 'ours' })]).toEqual([true, true, false]);
  });

  it('may belong to another host', async () => {
    const { table, store } = new Bench();
    expect(await table.isElsewhere({ ...CORE, toTag: 'ours' })).toBe(true);
    expect(table.isElsewhere(CORE)).toBe(false);
    expect([table.isOwner, table.isAwake]).toEqual([true, true]);
    Object.assign(store, { isOwner: false, isAwake: false });
    expect([table.isOwner, table.isAwake]).toEqual([false, false]);
  });
});

describe('a dialog', () => {
  it('repeats in its refreshes the last SDP that we sent, and the last Contact', () => {
    const dialog = new Bench().add();
    dialog.describes(invite('<sip:us>', 'v=0'));
    dialog.describes(invite(null, ''));
    expect([dialog.lastSdp, dialog.lastContact]).toEqual(['v=0', undefined]);
    dialog.describes(invite('<sip:we>', 'v=1'));
    expect([dialog.lastSdp, dialog.lastContact]).toEqual(['v=1', '<sip:we>']);
  });

  it('uses the latest way to the peer, and remembers sixteen sources that may act in it', () => {
    const dialog = new Bench().add();
    const closed = Object.assign(flowFrom('192.0.2.2'), { isOpen: false });
    dialog.heardBy(closed);
    expect([dialog.flow.remote.address, dialog.record.sourceAddress]).toEqual(['192.0.2.1', '192.0.2.1']);
    dialog.heardBy(flowFrom('192.0.2.2', 'them.example'));
    dialog.heardBy(flowFrom('192.0.2.1'));
    expect(dialog.record).toMatchObject({ sourceAddress: '192.0.2.1', actors: ['192.0.2.1', '192.0.2.2', 'them.example'] });
    for (let host = 1; host <= 16; host += 1) dialog.heardBy(flowFrom(`198.51.100.${String(host)}`));
    expect(dialog.record.actors).toHaveLength(16);
    expect([dialog.record.actors[0], dialog.record.actors.at(-1)]).toEqual(['198.51.100.1', '198.51.100.16']);
  });

  it.each([
    ['192.0.2.1', undefined, true],
    ['198.51.100.1', undefined, true],
    ['198.51.100.2', undefined, true],
    ['203.0.113.9', 'them.example', true],
    ['203.0.113.9', 'other.example', false],
    ['203.0.113.9', undefined, false],
  ])('of an earlier process admits %s with the certificate of %s: %s', (address, tlsIdentity, admitted) => {
    const dialog = new Bench().restored({ actors: ['192.0.2.1', 'them.example'] });
    expect(dialog.admits(flowFrom(address, tlsIdentity))).toBe(admitted);
    expect(dialog.admits(dialog.flow)).toBe(true);
    expect(new Bench().add().admits(flowFrom(address))).toBe(true);
  });

  it('of an earlier process is unchanged, and continues behind the reserved CSeq numbers', () => {
    const own = { userData: 'mine', lastSdp: 'v=0', lastContact: '<sip:us>', ownInviteSeq: 7, isPublicOnly: true, reservedSeq: 101 };
    const bench = new Bench();
    const dialog = bench.restored(own);
    expect(dialog).toMatchObject({
      isConfirmed: true,
      wasAcknowledged: true,
      isRestored: true,
      userData: 'mine',
      lastSdp: 'v=0',
      lastContact: '<sip:us>',
      ownInviteSeq: 7,
      isPublicOnly: true,
      isWritten: true,
      usage: 'invite',
      mergeKey: null,
      key: KEY,
    });
    expect(dialog.state).toEqual({ ...STATE, localSeq: 101 });
    expect([bench.table.byKey(KEY), dialog.record.reservedSeq]).toEqual([dialog, 201]);
    const other = new Bench().restored({ lastContact: null, isPublicOnly: false });
    expect([other.lastContact, other.isPublicOnly]).toEqual([undefined, false]);
  });
});

describe('a 2xx that we sent', () => {
  it('is retransmitted until its ACK, and is in the record', () => {
    const bench = new Bench();
    const dialog = bench.add();
    let sent = 0;
    dialog.answered(ANSWER, () => (sent += 1));
    expect([dialog.awaitsAck, dialog.record.unacknowledged]).toEqual([true, ANSWER]);
    bench.clock.advance(1_500);
    expect([sent, dialog.acknowledged(2), dialog.awaitsAck]).toEqual([2, false, true]);
    expect([dialog.acknowledged(1), dialog.acknowledged(1), dialog.awaitsAck, dialog.record.unacknowledged]).toEqual([
      ...[true, false, false, null],
    ]);
    bench.clock.advance(60_000);
    expect([sent, bench.ended, bench.timers.size]).toEqual([2, [], 0]);
  });

  it('without an ACK within 64 T1 ends the dialog', () => {
    const bench = new Bench();
    const dialog = bench.add();
    dialog.answered(ANSWER, () => undefined);
    bench.clock.advance(31_999);
    expect(bench.ended).toEqual([]);
    bench.clock.advance(1);
    expect([bench.ended, dialog.awaitsAck]).toEqual([['no ACK'], false]);
  });

  it('is not retransmitted in a dialog that ended', () => {
    const bench = new Bench();
    const dialog = bench.add();
    dialog.answered(ANSWER, () => expect.unreachable());
    dialog.subscribedFor(HOUR_S);
    dialog.sessionTimerHandle = bench.timers.start(1_000, () => expect.unreachable());
    dialog.end();
    expect([dialog.isEnded, dialog.awaitsAck, bench.timers.size]).toEqual([true, false, 0]);
    bench.clock.advance(60_000);
    expect(bench.ended).toEqual([]);
  });

  it('of an earlier process answers its INVITE that comes again, by the same branch and address', () => {
    const bench = new Bench();
    const dialog = bench.restored({ unacknowledged: ANSWER });
    dialog.answered(ANSWER, () => undefined);
    const text = (core: Partial<CoreHeaders>, flow = bench.flow) => bench.table.answerTo({ ...CORE, ...core }, flow);
    const via = (value: string) => ({ topVia: parseVia(value)! });
    expect([text({}), dialog.wasAcknowledged]).toEqual([ANSWER.text, false]);
    expect([
      text({ callId: 'd' }),
      text({ fromTag: 'd' }),
      text({ cseq: { number: 2, method: 'INVITE' } }),
      text(via('SIP/2.0/TLS them:5061;branch=z9hG4bK2')),
      text(via('SIP/2.0/TLS they:5061;branch=z9hG4bK1')),
      text(via('SIP/2.0/TLS them:5062;branch=z9hG4bK1')),
      text({}, flowFrom('203.0.113.9')),
    ]).toEqual(Array.from({ length: 7 }, () => undefined));
    bench.table.close(dialog);
    expect(text({})).toBeUndefined();
  });

  it('of an earlier process to a re-INVITE answers no INVITE outside dialogs', () => {
    const bench = new Bench();
    const dialog = bench.restored({ unacknowledged: { ...ANSWER, isInitial: false } });
    dialog.answered(ANSWER, () => undefined);
    expect([bench.table.answerTo(CORE, bench.flow), dialog.wasAcknowledged, dialog.answerTo(CORE, bench.flow)]).toEqual([
      ...[undefined, true, ANSWER.text],
    ]);
  });

  it('of this process belongs to its transaction alone', () => {
    const bench = new Bench();
    const dialog = bench.add();
    dialog.answered(ANSWER, () => undefined);
    expect(dialog.answerTo(CORE, bench.flow)).toBeUndefined();
  });
});

describe('an ACK that we sent', () => {
  it('is sent again for each 2xx that comes again', () => {
    const bench = new Bench();
    const dialog = bench.add({ role: 'uac' });
    dialog.repeatAck(1);
    dialog.keepAck(1, 'ACK 1', '');
    dialog.keepAck(2, 'ACK 2', '');
    for (const cseq of [2, 1, 3]) dialog.repeatAck(cseq);
    expect(bench.flow.sent).toEqual(['ACK 2', 'ACK 1']);
  });

  it('has its body in the record, until our next INVITE is sent', () => {
    const dialog = new Bench().add({ role: 'uac' });
    dialog.beginsInvite(5);
    dialog.keepAck(4, 'ACK', 'old');
    expect(dialog.record).toMatchObject({ ownInviteSeq: 5, ackBody: '' });
    dialog.keepAck(5, 'ACK', 'v=0');
    expect(dialog.record.ackBody).toBe('v=0');
    dialog.beginsInvite(6);
    expect(dialog.record).toMatchObject({ ownInviteSeq: 6, ackBody: '' });
  });

  it('to an INVITE of an earlier process has the last known body', () => {
    const dialog = new Bench().restored({ role: 'uac', ownInviteSeq: 5, ackBody: 'v=0' });
    expect([dialog.record.ackBody, ...[4, 5, 6].map((cseq) => dialog.ackBodyFor(cseq))]).toEqual(['v=0', '', 'v=0', null]);
    dialog.keepAck(5, 'ACK', 'v=0');
    expect([4, 5].map((cseq) => dialog.ackBodyFor(cseq))).toEqual(['', null]);
    expect(new Bench().add().ackBodyFor(0)).toBeNull();
  });

  it.each([
    [{}, 'invite', true, true],
    [{ role: 'uas' }, 'invite', true, false],
    [{}, 'subscribe', true, false],
    [{}, 'invite', false, false],
  ] as const)('is owed to the first 2xx: %j, %s, confirmed %s: %s', (over, usage, isConfirmed, owed) => {
    const bench = new Bench();
    const dialog = bench.table.add({ ...STATE, role: 'uac', ...over }, bench.flow, usage, null);
    dialog.isConfirmed = isConfirmed;
    expect(dialog.owesFirstAck).toBe(owed);
    dialog.keepAck(1, 'ACK', '');
    expect(dialog.owesFirstAck).toBe(false);
  });

  it('is not owed in a dialog of an earlier process', () => {
    expect(new Bench().restored({ role: 'uac' }).owesFirstAck).toBe(false);
  });
});

it('a subscription ends 64 T1 after its time, unless it is refreshed', () => {
  const bench = new Bench();
  const dialog = bench.table.add(STATE, bench.flow, 'subscribe', null);
  dialog.subscribedFor(60);
  bench.clock.advance(91_999);
  dialog.subscribedFor(60);
  bench.clock.advance(91_999);
  expect(bench.ended).toEqual([]);
  bench.clock.advance(1);
  expect([bench.ended, bench.timers.size]).toEqual([['expired'], 0]);
});
