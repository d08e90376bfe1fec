import { describe, expect, it } from 'vitest';
import { readPeer, readRecording, recordingFiles } from '../../support/recordings.js';
import { playLines, Replay } from '../../support/replay.js';
import { headerOf, startOf } from '../../support/scenario.js';
import { Bench } from '../../support/transcript.js';

// Where our server differs from the recorded one on purpose. What is asserted is ours.
const DIFFERENCES: Readonly<Record<string, string>> = {
  '13-app-disconnect-midcall': 'a call whose application is gone gets BYE; theirs hears nothing and gets 481 to its own BYE',
  '14-no-client-invite': 'a 503 has Retry-After (RFC 3261 §21.5.4); theirs has none',
  '14-no-client-options': 'the same',
  '21-proxy-verb': 'Via headers are one a line, Record-Route has a token of ours and one transport, the branch is of the usual length',
  '24-wrong-secret': 'none: the refusal is the same word for word (test/world/sip-server/transcripts.test.ts)',
  '26-raw-protocol-edge-cases': 'nothing is done before authenticate; 7 digits of length; extension methods are sent (ibid.)',
  '27-two-apps': 'strictly in turn from the first; theirs gives the later one two turns of three (ibid.)',
  '28-load-balancing': 'the same; remove_route withdraws one method of one application, theirs all of it (ibid.)',
  '29-large-frames': 'frames up to drachtio.max_frame_bytes; theirs stalls over 12,228 bytes (ibid.)',
  '30-app-never-answers': '500 after sip.silence_timeout_ms; theirs leaves the caller with 100',
  '31-tls-versions': 'none: 1.0 and 1.1 are refused, 1.2 and 1.3 taken (test/system/sip-server/tls.test.ts)',
  '32-malformed': 'the table below',
  '33-tls-close-before-answer': 'a new connection is tried; when there is none the application gets a CANCEL. Theirs tells it nothing',
  '33-tls-close-midcall': 'none: 503 to the BYE (test/world/sip-server/transcripts.test.ts)',
  '33-tls-garbage': 'the connection is closed; theirs hears nothing on it any more (ibid.)',
  '33-tls-noclen': 'a missing Content-Length is 0, at once; theirs waits for the end of the connection (ibid.)',
  '33-tls-ping': 'CRLF CRLF is answered on TLS too (RFC 5626 §4.4.1); theirs is silent (ibid.)',
  '36-crlf-keepalive': 'none (ibid.)',
  '37-disconnect-with-pending-invite': 'the unanswered INVITE of an application that is gone gets 503 at once; theirs waits for the CANCEL',
  '38-bye-unanswered_100rel_cancel-after-200_timeout':
    'the CANCEL after the 200 gets 200 (RFC 3261 §9.2), theirs 481; an unanswered BYE gets 500 sooner',
};

const sentBy = (name: string): string[] =>
  readPeer(`${name}.sip.txt`).flatMap(({ direction, text }) => (direction === 'sent' ? [text] : []));

describe('[control protocol] a recorded session', () => {
  it('is replayed, or has a row in the table of differences', () => {
    const replayed = readRecordedTitles();
    const names = new Set(recordingFiles().map((file) => file.replace(/(-ua[cs])?(\.sip)?\.txt$/, '')));
    const missing = [...names].filter((name) => DIFFERENCES[name] === undefined && !replayed.includes(name));
    expect(missing).toEqual([]);
  });
});

function readRecordedTitles(): string[] {
  const text = readRecording('../../conformance/control-protocol/replay.test.ts');
  return [...text.matchAll(/\['(\d\d-[\w-]+)'/g)].map((match) => match[1] ?? '');
}

describe('[control protocol] the SIP server, which differs from the recorded one on purpose,', () => {
  it('13: sends BYE to the caller when the application is gone, and answers 481 to the BYE of the caller', async () => {
    const replay = new Replay('13-app-disconnect-midcall', [], false);
    await replay.play();
    const { bench } = replay;
    bench.dropApp();
    await bench.settle();
    const bye = bench.toCaller.at(-1) ?? '';
    expect([startOf(bye), headerOf(bye, 'Reason')]).toEqual([
      'BYE sip:sipp@127.0.0.1:25212 SIP/2.0',
      'SIP;cause=503;text="application gone"',
    ]);
    const [, , theirBye = ''] = replay.peer.flatMap(({ direction, text }) => (direction === 'sent' ? [text] : []));
    expect(startOf(theirBye)).toMatch(/^BYE /);
    await replay.send(theirBye.replace(/^To: .*$/m, `To: ${headerOf(bye, 'From')}`));
    expect(startOf(bench.toCaller.at(-1) ?? '')).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
  });

  it.each(['14-no-client-invite', '14-no-client-options'])('%s: answers 503 with Retry-After', async (name) => {
    const bench = new Bench('UDP', 25_213);
    bench.fromCaller(sentBy(name)[0] ?? '');
    await bench.settle();
    const answer = bench.toCaller.at(-1) ?? '';
    expect(startOf(answer)).toBe('SIP/2.0 503 Service Unavailable');
    expect(headerOf(answer, 'Retry-After')).toMatch(/^([1-9]|10)$/);
    expect(headerOf(answer, 'To')).toMatch(/;tag=\w{13}$/);
  });

  it('30: answers 500 after 20 s when the application stays silent, and takes a repetition after 64·T1 for a new request', async () => {
    const [invite = '', , later = ''] = sentBy('30-app-never-answers');
    const bench = new Bench('UDP', 35_200);
    bench.fromApp('r|route|invite');
    await bench.settle();
    bench.fromCaller(invite);
    await bench.pass(19_999);
    expect(bench.toCaller.map(startOf)).toEqual(['SIP/2.0 100 Trying']);
    await bench.pass(1);
    expect(bench.toCaller.map(startOf)).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 500 Server Internal Error']);
    await bench.pass(52_000);
    bench.toCaller.length = 0;
    // After 64·T1 it is a new request, as with theirs.
    bench.fromCaller(later);
    await bench.settle();
    expect(bench.toCaller.map(startOf)).toEqual(['SIP/2.0 100 Trying']);
  });

  it('33-tls-close-before-answer: sends the application a CANCEL, and answers its late response with the same NOK', async () => {
    const replay = new Replay('33-tls-close-before-answer', [[/\b35061\b/g, '25061']]);
    const { bench } = replay;
    const late = replay.frames.findIndex(({ payload }) => payload.includes('\r\nSIP/2.0 200'));
    await replay.play(late);
    bench.refuseToOpen();
    bench.dropCaller();
    await bench.settle();
    const [invite, cancel] = bench.toApp.slice(-2).map((payload) => payload.split('|'));
    expect(cancel?.join('|')).toContain('\r\nCANCEL sips:late@127.0.0.1:25061 SIP/2.0\r\n');
    expect(cancel?.[8]).toBe(invite?.[8]);
    bench.fromApp(`late|sip|${invite?.[8] ?? ''}|\r\nSIP/2.0 200 OK\r\n\r\n`);
    await bench.settle();
    const theirs = replay.frames.at(-1)?.payload.split('|').slice(3);
    expect(bench.toApp.at(-1)?.split('|').slice(3)).toEqual(theirs);
  });

  it('37: answers 503 at once to the INVITE of an application that is gone, and 200 to the CANCEL that comes later', async () => {
    const replay = new Replay('37-disconnect-with-pending-invite', [], false);
    await replay.play();
    const { bench } = replay;
    bench.dropApp();
    await bench.settle();
    expect(bench.toCaller.map(startOf)).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 503 Service Unavailable']);
    expect(headerOf(bench.toCaller.at(-1) ?? '', 'Retry-After')).toBe('1');
    const [, again = '', cancel = ''] = sentBy(replay.name);
    await replay.send(again);
    await replay.send(cancel);
    expect(bench.toCaller.slice(2).map(startOf)).toEqual(['SIP/2.0 503 Service Unavailable', 'SIP/2.0 200 OK']);
  });
});

describe('[control protocol] 32: the SIP server', () => {
  it.each([
    ['mal1', 'INVITE with an unknown To-tag', '481 Call/Transaction Does Not Exist', 'as theirs'],
    ['mal2', 'BYE with an unknown To-tag', '481 Call/Transaction Does Not Exist', 'as theirs'],
    ['mal2b', 'INFO with an unknown To-tag', '481 Call/Transaction Does Not Exist', 'theirs takes it for a new request; RFC 3261 §12.2.2'],
    ['mal3', 'ACK to nothing', '', 'as theirs'],
    ['mal4', 'CANCEL of nothing', '481 Call/Transaction Does Not Exist', 'as theirs'],
    ['mal7', 'no Call-ID', '400', 'as theirs'],
    ['mal8', 'CSeq without a number', '400', 'as theirs'],
    ['mal9', 'another method in CSeq', '400', 'as theirs'],
    ['mala', 'SIP/3.0', '505 Version Not Supported', 'as theirs'],
    ['malb', 'a method that nobody knows', '501 Not Implemented', 'theirs is silent; RFC 3261 §21.5.2'],
    ['malc', 'a body shorter than its Content-Length', '400', 'as theirs'],
    ['mald', 'no branch', '405 Method Not Allowed', 'theirs 503; RFC 3261 §8.2.1'],
    ['male', 'SUBSCRIBE that nobody routed', '405 Method Not Allowed', 'theirs 503; RFC 3261 §8.2.1'],
  ])('%s: answers the malformed or unusual request "%s" with "%s" (%s)', async (id, _what, expected) => {
    const bench = new Bench('UDP', 35_201);
    bench.fromApp('r|route|invite');
    await bench.settle();
    const suffix = 'mwq78xb6';
    const message = sentBy('32-malformed').find((text) =>
      new RegExp(`(Call-ID: ${id}${suffix}\\r|branch=z9hG4bK${suffix}m${id.slice(3)}\\r)`).test(text),
    );
    bench.fromCaller(message ?? '');
    await bench.settle();
    const answers = bench.toCaller.map(startOf).filter((line) => line !== 'SIP/2.0 100 Trying');
    expect(answers.map((line) => line.slice('SIP/2.0 '.length, 'SIP/2.0 '.length + expected.length))).toEqual(
      expected === '' ? [] : [expected],
    );
    expect(bench.toApp.filter((payload) => payload.includes('|sip|'))).toEqual([]);
  });

  it.each([
    ['mal5', 'no From-tag'],
    ['mal6', 'no Contact'],
  ])('%s: lets the application answer an INVITE with %s, as the recorded one does', async (id) => {
    const bench = new Bench('UDP', 35_201);
    bench.fromApp('r|route|invite');
    await bench.settle();
    bench.fromCaller(sentBy('32-malformed').find((text) => text.includes(`Call-ID: ${id}mwq78xb6\r`)) ?? '');
    await bench.settle();
    const transaction = bench.toApp.at(-1)?.split('|')[8] ?? '';
    bench.fromApp(`a|sip|${transaction}|\r\nSIP/2.0 200 OK\r\n\r\nv=0\r\n`);
    await bench.settle();
    expect(bench.toCaller.map(startOf)).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 200 OK']);
  });
});

describe('[control protocol] 21: the SIP server', () => {
  it('proxies as the recorded one does: the order, the forwarded INVITE, both answer frames, and ACK and BYE by the Route', async () => {
    const replay = new Replay('21-proxy-verb');
    const { bench } = replay;
    const order = replay.frames.findIndex(({ payload }) => payload.includes('|proxy|'));
    await replay.play(order);
    const transaction = bench.toApp.at(-1)?.split('|')[8] ?? '';
    bench.fromApp((replay.frames[order]?.payload ?? '').replace(/\|proxy\|[^|]*\|/, `|proxy|${transaction}|`));
    await bench.settle();
    const forwarded = bench.toCaller.at(-1) ?? '';
    const logged = readPeer('21-proxy-verb-uas.sip.txt');
    const theirs = logged.flatMap(({ direction, text }) => (direction === 'received' ? [text] : []));
    for (const name of ['Max-Forwards', 'From', 'To', 'Call-ID', 'CSeq', 'X-Caller', 'Content-Type']) {
      expect([name, headerOf(forwarded, name)]).toEqual([name, headerOf(theirs[0] ?? '', name)]);
    }
    expect(startOf(forwarded)).toBe(startOf(theirs[0] ?? ''));
    const route = headerOf(forwarded, 'Record-Route');
    expect(route).toMatch(/^<sip:[^>]*127\.0\.0\.1:25060;lr[^>]*>$/);
    const vias = forwarded.split('\r\n').filter((line) => line.startsWith('Via: '));
    const answers = logged.flatMap(({ direction, text }) => (direction === 'sent' ? [text] : []));
    const reply = (text: string): string =>
      text.replace(/^Via: .*$/m, vias.join('\r\n')).replace(/^Record-Route: .*$/m, `Record-Route: ${route}`);
    for (const text of answers.slice(0, 2)) {
      bench.fromCaller(reply(text));
      await bench.settle();
    }
    expect(bench.toCaller.slice(-2).map(startOf)).toEqual(['SIP/2.0 180 Ringing', 'SIP/2.0 200 OK']);
    const [full = '', done = ''] = bench.toApp.slice(-2);
    const meta = (payload: string): string[] => payload.split('\r\n', 1)[0]?.split('|') ?? [];
    expect(meta(full).length).toBe(meta(replay.frames[order + 1]?.payload ?? '').length);
    expect([meta(full)[4], meta(full).slice(10), meta(done).slice(3)]).toEqual(['network', ['', '', 'continue'], ['OK', 'done']]);
    for (const [index, text] of readPeer('21-proxy-verb-uac.sip.txt')
      .flatMap((one) => (one.direction === 'sent' ? [one.text] : []))
      .slice(1)
      .entries()) {
      bench.fromCaller(text.replace(/^Route: .*$/m, `Route: ${route}`));
      await bench.settle();
      expect([startOf(bench.toCaller.at(-1) ?? ''), headerOf(bench.toCaller.at(-1) ?? '', 'Route')]).toEqual([
        startOf(theirs[index + 1] ?? ''),
        '',
      ]);
    }
    // The application is shown nothing of them.
    expect(bench.toApp.at(-1)).toBe(done);
  });
});

describe('[control protocol] 38: the SIP server', () => {
  const firstLine = (text: string): string => (text.startsWith('SIP/2.0') ? `${startOf(text)} (${headerOf(text, 'CSeq')})` : startOf(text));
  const kindOf = (payload: string): string => {
    const [meta = '', start = ''] = payload.split('\r\n');
    return [...meta.split('|').slice(1, 2), ...(start === '' ? [] : [start])].join(' ');
  };

  it('handles a BYE without an answer, a reliable 183, a CANCEL after the 200 and an OPTIONS without an answer as recorded', async () => {
    const { toApp, toPeer } = await playLines('38-bye-unanswered_100rel_cancel-after-200_timeout', [], /^OPTIONS /);
    expect(toApp.ours.map(kindOf)).toEqual(toApp.theirs.map(kindOf));
    const theirs = toPeer.theirs.map(firstLine);
    // RFC 3261 §9.2; and the silence of the application has an end: 100 after 3.5 s (RFC 4320 §4.1), 500 after 20 s.
    const expected = theirs
      .map((line) => (line.endsWith('CANCEL)') ? 'SIP/2.0 200 OK (1 CANCEL)' : line))
      .map((line) => line.replace('500 Internal Server Error', '500 Server Internal Error'));
    expected.splice(-1, 0, 'SIP/2.0 100 Trying (2 BYE)');
    const mine = toPeer.ours.map(firstLine);
    expect(mine).toEqual(expected);
  });
});
