import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DialogJournal, readJournal } from '../../../src/sip-server/dialog-journal.js';
import type { DialogRecord } from '../../../src/sip/dialog/dialog-record.js';
import { dialogKey } from '../../../src/sip/dialog/dialog.js';
import { EventLog } from '../../support/event-log.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { turn } from '../../support/turn.js';

const record = (callId: string, changes: Partial<DialogRecord> = {}): DialogRecord => ({
  role: 'uas',
  callId,
  localTag: 'ours',
  remoteTag: 'theirs',
  local: '<sip:b@server>;tag=ours',
  remote: '"Zo\xc3\xab" <sip:a@caller>;tag=theirs',
  remoteTarget: 'sip:a@caller;transport=tls',
  routeSet: [],
  remoteSeq: 1,
  reservedSeq: 101,
  userData: 'transaction|gw:a',
  transport: 'TLS',
  sourceAddress: '192.0.2.1',
  sourcePort: 5061,
  actors: ['192.0.2.1'],
  lastSdp: 'v=0\r\n',
  lastContact: null,
  sessionTimer: null,
  sessionDueMs: 0,
  unacknowledged: null,
  ownInviteSeq: 0,
  ackBody: '',
  ...changes,
});
const keyOf = ({ callId, localTag, remoteTag }: DialogRecord): string => dialogKey(callId, localTag, remoteTag);

let directory: string;
let file: string;
let clock: VirtualClock;
let log: EventLog;
let live: Map<string, DialogRecord>;
let restored: readonly DialogRecord[];
let awayMs: number;
let journals: DialogJournal[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-journal-'));
  file = join(directory, 'dialogs.journal');
  clock = new VirtualClock();
  log = new EventLog();
  live = new Map();
  restored = [];
  journals = [];
});

afterEach(() => {
  for (const journal of journals) journal.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The next process. */
function open(maxBytes?: number, left: readonly string[] = []): DialogJournal {
  const journal = new DialogJournal({ file, left, clock, log, ...(maxBytes === undefined ? {} : { maxBytes }) });
  journals.push(journal);
  journal.open({
    records: () => [...live.values()],
    restore: (records, sinceMs) => {
      restored = [...restored, ...records];
      awayMs = sinceMs;
      for (const one of records) live.set(keyOf(one), one);
    },
  });
  return journal;
}

function begin(journal: DialogJournal, one: DialogRecord): void {
  live.set(keyOf(one), one);
  journal.write(keyOf(one), one, 'now');
}

function change(journal: DialogJournal, one: DialogRecord, changes: Partial<DialogRecord>): void {
  live.set(keyOf(one), { ...one, ...changes });
  journal.write(keyOf(one), changes, 'now');
}

function end(journal: DialogJournal, one: DialogRecord): void {
  live.delete(keyOf(one));
  journal.end(keyOf(one));
}

/** kill -9 after this turn: nothing is closed, and the next process knows only the file. */
async function killed(maxBytes?: number): Promise<DialogJournal> {
  await turn();
  live = new Map();
  restored = [];
  return open(maxBytes);
}

describe('the journal of dialogs', () => {
  it('adopts a dialog that no process continues, once', async () => {
    const [own, theirs] = [record('own'), record('theirs')];
    begin(open(), theirs);
    await turn();
    const left = join(directory, 'dialogs-2.journal');
    renameSync(file, left);
    live = new Map();
    begin(open(), own);
    await turn();
    live = new Map();
    restored = [];
    open(undefined, [left]);
    expect(restored).toEqual([own, theirs]);
    expect(existsSync(left)).toBe(false);
    await killed();
    expect(restored).toEqual([own, theirs]);
  });

  it('gives the next process each dialog as it last was, byte for byte, and none that ended', async () => {
    const journal = open();
    const [one, other, third] = [record('one'), record('other'), record('third')];
    for (const each of [one, other, third]) begin(journal, each);
    change(journal, one, { remoteSeq: 7, lastSdp: 'v=0\r\ns=\xff\n\x00"\\\r\n' });
    end(journal, other);
    await killed();
    expect(restored).toEqual([{ ...one, remoteSeq: 7, lastSdp: 'v=0\r\ns=\xff\n\x00"\\\r\n' }, third]);
    expect(log.events).toEqual([]);
  });

  it('gives them to the process after that too', async () => {
    begin(open(), record('one'));
    await killed();
    await killed();
    expect(restored).toEqual([record('one')]);
  });

  it('has how long there was no process, to 5 s', async () => {
    begin(open(), record('one'));
    expect(awayMs).toBe(0);
    clock.advance(12_000);
    journals.at(-1)?.close();
    clock.advance(3_600_000);
    await killed();
    expect([restored, awayMs]).toEqual([[record('one')], 3_602_000]);
    expect(log.events).toEqual([]);
  });

  it('is readable by its owner alone, whatever the file was before', () => {
    writeFileSync(file, '');
    chmodSync(file, 0o644);
    begin(open(), record('one'));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it.each([1, 10, 200])('skips a last line that lacks %i bytes, and logs it', async (bytes) => {
    const journal = open();
    begin(journal, record('one'));
    begin(journal, record('two'));
    const text = readFileSync(file, 'latin1');
    // Without its line feed it is whole.
    writeFileSync(file, text.slice(0, -1 - bytes), 'latin1');
    await killed();
    expect(restored).toEqual([record('one')]);
    expect(log.events.map(({ event }) => event)).toEqual(['sip_server.journal.bad_lines']);
  });

  it.each(['{', '[]', '[1,{}]', '["one|ours|theirs",3]', 'null', '["unknown|a|b",{"remoteSeq":2}]', '\x00\x00\x00'])(
    'skips the damaged line %j, and nothing else',
    async (line) => {
      const journal = open();
      begin(journal, record('one'));
      appendFileSync(file, `${line}\n`, 'latin1');
      begin(journal, record('two'));
      await killed();
      expect(restored).toEqual([record('one'), record('two')]);
      expect(log.events.map(({ event }) => event)).toEqual(['sip_server.journal.bad_lines']);
    },
  );

  it('is rewritten when it has grown, and stays in proportion to the live dialogs', async () => {
    const journal = open(10_000);
    const kept = record('kept');
    begin(journal, kept);
    let longest = 0;
    for (let serial = 0; serial < 500; serial += 1) {
      const one = record(`call-${String(serial)}`);
      begin(journal, one);
      end(journal, one);
      await turn();
      longest = Math.max(longest, statSync(file).size);
      expect(journal.bytes).toBe(statSync(file).size);
    }
    expect(longest).toBeLessThan(12_000);
    await killed(10_000);
    expect(restored).toEqual([kept]);
  });

  it('with many live dialogs is rewritten only when it has doubled', async () => {
    const journal = open(1_000);
    for (let serial = 0; serial < 100; serial += 1) begin(journal, record(`call-${String(serial)}`));
    const whole = [...live.values()].reduce((sum, one) => sum + JSON.stringify([keyOf(one), one]).length + 1, 0);
    for (let serial = 0; serial < 5_000; serial += 1) change(journal, record('call-1'), { remoteSeq: serial });
    expect(statSync(file).size).toBeLessThan(2 * whole + 1_000);
    await killed(1_000);
    expect(restored).toHaveLength(100);
    expect(restored[1]).toMatchObject({ callId: 'call-1', remoteSeq: 4_999 });
  });
});

describe('the journal on a full or unreadable disk', () => {
  it('logs one line a second and counts, and writes everything when there is space', async () => {
    const journal = open(1_000);
    const [one, two] = [record('one'), record('two')];
    begin(journal, one);
    // As a full disk does, it refuses the new file.
    mkdirSync(`${file}.new`);
    begin(journal, two);
    for (let serial = 0; serial < 100; serial += 1) change(journal, two, { remoteSeq: serial });
    clock.advance(5_000);
    expect([journal.failures, log.events.length]).toEqual([6, 6]);
    rmSync(`${file}.new`, { recursive: true });
    clock.advance(1_000);
    expect(journal.failures).toBe(6);
    await killed();
    expect(restored).toEqual([one, { ...two, remoteSeq: 99 }]);
  });

  it('reads its file as soon as that is possible', () => {
    mkdirSync(file);
    const journal = open();
    expect([journal.isRead, journal.failures]).toEqual([false, 1]);
    begin(journal, record('meanwhile'));
    rmSync(file, { recursive: true });
    writeFileSync(file, `${JSON.stringify([keyOf(record('before')), record('before')])}\n`, 'latin1');
    clock.advance(1_000);
    expect([journal.isRead, journal.failures]).toEqual([true, 1]);
    expect(restored).toEqual([record('before')]);
    expect(
      readJournal(readFileSync(file, 'latin1'))
        .records.map(({ callId }) => callId)
        .sort(),
    ).toEqual(['before', 'meanwhile']);
  });
});
