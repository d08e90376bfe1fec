import { connect } from 'node:net';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { sClient } from '../../support/openssl.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { acceptedCiphers, sayHello } from '../../support/tls-hello.js';
import { attach } from '../../support/trunk.js';
import { withGateway } from '../../support/with-gateway.js';

// What strangers, and customers of a carrier, may try on the SIP port of the whole product. docs/security.md has the figures.

const ATTACKER = '127.0.0.2';
const STRANGER = '127.0.0.9';
const SHORT_MS = 1_000;
const RATE = 300;
const CONNECTIONS = 100;

let gateway: RunningGateway;
let carrier: SipPeer;

withGateway(({ gateway: started, peer }) => ([gateway, carrier] = [started, peer]), {
  TRUNKLINE_SIP_HANDSHAKE_TIMEOUT_MS: String(SHORT_MS),
  TRUNKLINE_SIP_MESSAGE_TIMEOUT_MS: String(SHORT_MS),
  TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: String(RATE),
  // The gateway may still be closing connections of an earlier test.
  TRUNKLINE_SIP_MAX_CONNECTIONS_PER_SOURCE: String(CONNECTIONS + 10),
  TRUNKLINE_ADMISSION_ALLOWED_SOURCES: `[127.0.0.1, ${ATTACKER}]`,
});

const figure = (text: string): void => console.log(`  figure: ${text}`);
const from = (localAddress: string): Promise<SipPeer> => SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress });
const own = (): string => gateway.ready.phone_number;

/** Answer times of legitimate calls, one after another. */
async function answerTimes(calls: number): Promise<number[]> {
  const times: number[] = [];
  for (let count = 0; count < calls; count += 1) {
    const startedMs = performance.now();
    const call = new HandMadeCall(carrier, own());
    const ok = await call.answered(offerSdp());
    times.push(Math.round(performance.now() - startedMs));
    await call.hangUp(ok);
  }
  return times.sort((a, b) => a - b);
}

const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? 0;

/** What a refusal tells whoever gets it. */
const told = (answer: WireMessage): string =>
  [answer.status, answer.header('Warning'), answer.header('Reason'), answer.header('Retry-After'), answer.header('Server')].join(' | ');

async function refusalOf(peer: SipPeer, number: string, extra: readonly string[] = [], caller?: string): Promise<string> {
  const call = new HandMadeCall(peer, number, caller);
  call.invite(offerSdp(), extra);
  return told(await call.final());
}

describe('the TLS port, when it is scanned,', () => {
  const range = (first: number, last: number): number[] => Array.from({ length: last - first + 1 }, (_, index) => first + index);
  // Every suite of TLS 1.2 and before that IANA has numbered, but signalling values.
  const ALL = [...range(0, 0xc7), ...range(0xc001, 0xc0b5), ...range(0xcca8, 0xccae), ...range(0xd001, 0xd005)];
  const PROTOCOL_VERSION = 70;
  const HANDSHAKE_FAILURE = 40;

  it('refuses SSLv3, TLS 1.0 and 1.1, whatever ciphers are offered', async () => {
    for (const version of [0x0300, 0x0301, 0x0302]) {
      const answer = await sayHello(gateway.sipPort, { version, ciphers: ALL });
      expect([PROTOCOL_VERSION, HANDSHAKE_FAILURE]).toContain('alert' in answer ? answer.alert : answer.version);
    }
    expect(await sayHello(gateway.sipPort, { version: 0x0303, ciphers: ALL })).toMatchObject({ version: 0x0303 });
  });

  it('accepts only strong ciphers with TLS 1.2, the best first, and no compression', async () => {
    const accepted = (await acceptedCiphers(gateway.sipPort, 0x0303, ALL)).map((cipher) => cipher.toString(16));
    // ECDHE with GCM and ChaCha20; ECDHE with CBC; RSA with GCM, CCM and CBC, whose last is the one that RFC 3261 §26.2.1 wants.
    expect(accepted).toEqual([
      ...['c02f', 'c030', 'c027', 'c028', 'cca8', 'c014', 'c013'],
      ...['9d', 'c09d', '9c', 'c09c', '3d', '3c', '35', '2f'],
    ]);
    expect(await sayHello(gateway.sipPort, { version: 0x0303, ciphers: ALL, compressions: [1, 0] })).toMatchObject({ compression: 0 });
    figure(`${String(ALL.length)} suites of TLS 1.2 offered, ${String(accepted.length)} taken, 7 of them with forward secrecy and first`);
  });

  it('refuses renegotiation', async () => {
    const child = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${String(gateway.sipPort)}`, '-tls1_2', '-legacy_renegotiation']);
    let output = '';
    const read = (chunk: Buffer): void => {
      const hadConnected = output.includes('Extended master secret');
      output += chunk.toString();
      if (!hadConnected && output.includes('Extended master secret')) child.stdin.write('R\n');
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    await new Promise((resolve) => child.once('close', resolve));
    expect(output).toContain('RENEGOTIATING');
    expect(output).toContain('no renegotiation');
    figure('1 renegotiation asked for, 0 made');
  });

  it('resumes a session for the two hours of its ticket', async () => {
    const port = gateway.sipPort;
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { port, ca: gateway.ca, servername: 'localhost', minVersion: version, maxVersion: version };
      const session = await new Promise<Buffer>((resolve) => {
        const first = connectTls({ ...options, host: '127.0.0.1' });
        first.once('session', (ticket) => {
          first.destroy();
          resolve(ticket);
        });
      });
      const again = connectTls({ ...options, host: '127.0.0.1', session });
      await once(again, 'secureConnect');
      expect([version, again.isSessionReused()]).toEqual([version, true]);
      again.destroy();
    }
    // OpenSSL's default: two hours.
    expect(await sClient(port, '-tls1_2')).toContain('TLS session ticket lifetime hint: 7200 (seconds)');
  });
});

describe('the gateway, in a flood from one address', () => {
  let baseline: number;
  beforeAll(async () => {
    baseline = median(await answerTimes(10));
  });

  it.each(['INVITE', 'OPTIONS', 'REGISTER'])('of %s, answers calls of a carrier at another address as before', async (method) => {
    const attacker = await from(ATTACKER);
    let sent = 0;
    const until = performance.now() + 2_000;
    const flood = (async () => {
      while (performance.now() < until) {
        for (let count = 0; count < RATE; count += 1) {
          sent += 1;
          attacker.send(
            [
              `${method} sip:+1555${String(1_000_000 + sent)}@127.0.0.1 SIP/2.0`,
              `Via: SIP/2.0/TLS ${ATTACKER};branch=z9hG4bKflood${method}${String(sent)}`,
              'Max-Forwards: 70',
              'From: <sip:flood@attacker>;tag=f',
              `To: <sip:+1555${String(1_000_000 + sent)}@127.0.0.1>`,
              `Call-ID: flood-${method}-${String(sent)}`,
              `CSeq: 1 ${method}`,
              `Contact: <sip:flood@${ATTACKER};transport=tls>`,
              ...(method === 'INVITE' ? ['Content-Type: application/sdp'] : []),
            ],
            method === 'INVITE' ? offerSdp() : '',
          );
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    const times = await answerTimes(10);
    await flood;
    const answered = attacker.received.filter(({ status }) => status >= 200);
    const refused = answered.filter(({ status }) => status === 503).length;
    attacker.close();
    const rate = Math.round(sent / 2);
    figure(
      `${method}: ${String(rate)}/s sent, ${String(answered.length)} answered, ${String(refused)} of them 503; ` +
        `calls answered in ${String(median(times))} ms (p50), ${String(times.at(-1))} ms at most; before ${String(baseline)} ms`,
    );
    expect(times).toHaveLength(10);
    expect(refused).toBeGreaterThan(0);
    // More than so many are dropped without a word.
    expect(answered.length).toBeLessThan(sent);
  });
});

describe('the gateway, for hostile connections,', () => {
  it('closes half-open and slow ones, and serves the carrier meanwhile', async () => {
    const closed: Promise<void>[] = [];
    const startedMs = performance.now();
    for (let count = 0; count < CONNECTIONS / 2; count += 1) {
      // One half says nothing at all, the other begins a handshake and goes on a byte at a time.
      const socket = connect({ host: '127.0.0.1', port: gateway.sipPort, localAddress: ATTACKER });
      const drip = count % 2 === 0 ? undefined : setInterval(() => socket.write(Buffer.of(22)), 50);
      socket.on('error', () => undefined);
      closed.push(
        new Promise((resolve) =>
          socket.once('close', () => {
            clearInterval(drip);
            resolve();
          }),
        ),
      );
    }
    // One after another: 50 handshakes at once could exceed the time limit of each.
    for (let count = 0; count < CONNECTIONS / 2; count += 1) {
      const peer = await from(ATTACKER);
      peer.raw('INVITE sip:x@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TLS');
      const drip = setInterval(() => peer.raw('x'), 50);
      closed.push(peer.whenClosed().finally(() => clearInterval(drip)));
    }
    const times = await answerTimes(5);
    await Promise.all(closed);
    const tookMs = Math.round(performance.now() - startedMs);
    figure(
      `${String(closed.length)} connections that never finish: all closed after ${String(tookMs)} ms; calls in ${String(median(times))} ms`,
    );
    expect(times).toHaveLength(5);
  });

  it('refuses messages that are too large, and answers the next call', async () => {
    const answers: (number | string)[] = [];
    for (const [extra, body] of [
      [[`X-Long: ${'y'.repeat(20_000)}`], ''],
      [Array.from({ length: 300 }, (_, index) => `X-${String(index)}: y`), ''],
      [['Content-Type: application/sdp'], 'v'.repeat(70_000)],
    ] as const) {
      const peer = await from(ATTACKER);
      const call = new HandMadeCall(peer, own());
      call.invite(body, extra);
      answers.push((await call.final()).status);
      peer.close();
    }
    // A head without an end cannot be answered.
    const endless = await from(ATTACKER);
    for (let count = 0; count < 10; count += 1)
      endless.raw(`${count === 0 ? 'INVITE sip:x@y SIP/2.0\r\n' : ''}X: ${'y'.repeat(10_000)}\r\n`);
    await endless.whenClosed();
    figure(`20 kB header, 300 headers, 70 kB body: ${answers.join(', ')}; 100 kB head without an end: closed`);
    expect(answers).toEqual([513, 513, 413]);
    expect(await answerTimes(1)).toHaveLength(1);
  });
});

describe('the gateway, against toll fraud,', () => {
  it('gives a stranger one answer to all numbers, whatever the headers claim', async () => {
    const stranger = await from(STRANGER);
    const answers = new Set<string>();
    const numbers = [
      own(),
      '+19005550100',
      '+442079460000',
      '+88213000000',
      '+15559999999',
      'tel:+19005550100',
      '011442079460000',
      '00442079460000',
    ];
    for (const number of numbers) answers.add(await refusalOf(stranger, number));
    const claims = [
      [`X-Forwarded-For: 127.0.0.1`, 'X-Real-IP: 127.0.0.1'],
      ['P-Asserted-Identity: <sip:+15550100999@127.0.0.1>', 'Remote-Party-ID: <sip:+15550100999@127.0.0.1>;screen=yes'],
      ['X-Trunkline-Tls-Identity: DNS:carrier.example'],
      ['Via: SIP/2.0/TLS 127.0.0.1;branch=z9hG4bKx;received=127.0.0.1'],
    ];
    for (const claim of claims) answers.add(await refusalOf(stranger, own(), claim));
    stranger.close();
    figure(`${String(numbers.length)} numbers and ${String(claims.length)} claims of a stranger: ${String(answers.size)} answer`);
    expect([...answers]).toEqual([expect.stringContaining('403 | 399')]);
    expect([...answers][0]).toContain('SOURCE_NOT_ALLOWED');
  });

  it('gives an allowed source attached numbers alone: it shows no tenant, and dials nothing', async () => {
    const peer = await from(ATTACKER);
    const outside = [
      '+19005550100',
      '+88213000000',
      'sip:+19005550100@127.0.0.1;user=phone',
      'tel:+19005550100',
      'sip:+19005550100@premium.example',
    ];
    const answers = new Map<string, string>();
    for (const number of outside) answers.set(number, await refusalOf(peer, number));
    // Attached once, by this organization, and not any more: the same as nobody's.
    await attach(gateway, '+15550107777');
    await gateway.api('POST', '/sip/detach', { phone_number: '+15550107777', directions: 'inbound', service: 'sip' });
    answers.set('detached', await refusalOf(peer, '+15550107777'));
    for (const [number, answer] of answers) expect([number, answer]).toEqual([number, expect.stringContaining('NUMBER_NOT_ATTACHED')]);
    expect(new Set(answers.values()).size).toBe(1);
    // Routes and names of other places lead nowhere.
    const routed = await refusalOf(peer, '+19005550100', ['Route: <sip:premium.example;lr>', 'P-Called-Party-ID: <sip:+15550100100@x>']);
    expect(routed).toBe(answers.get('+19005550100'));
    // Nothing that looks like the number is the number.
    for (const trick of [`sip:0${own().slice(1)}@127.0.0.1`, `sip:${own()}%00@127.0.0.1`, `sip:${own()}.evil@127.0.0.1`])
      expect(await refusalOf(peer, trick)).toMatch(/^4\d\d \| 399/);
    peer.close();
    figure(`${String(answers.size)} numbers that are not attached: ${String(new Set(answers.values()).size)} answer, 404`);
  });

  it('follows no REFER, in a call or out of one', async () => {
    const call = new HandMadeCall(carrier, own());
    const ok = await call.answered(offerSdp());
    const refer = await call.request('REFER', ok, '', ['Refer-To: <sip:+19005550100@premium.example>', 'Referred-By: <sip:a@b>']);
    expect(refer.status).toBe(603);
    await call.hangUp(ok);
    const out = new HandMadeCall(carrier, own());
    expect((await out.probe('REFER')).status).toBeGreaterThanOrEqual(400);
    expect(carrier.received.some(({ startLine }) => /^(INVITE|NOTIFY) /.test(startLine))).toBe(false);
  });

  it('records a claimed identity beside the source, without a verdict', async () => {
    const call = new HandMadeCall(carrier, own(), '<sip:+15550109999@bank.example>');
    const ok = await call.answered(offerSdp(), [
      'P-Asserted-Identity: <sip:+18005550199@bank.example>',
      'Identity: forged;info=<https://x>',
    ]);
    await call.hangUp(ok);
    const { source, identity } = await gateway.record(call.callId);
    expect(source).toMatchObject({ ip: '127.0.0.1' });
    expect(identity).toMatchObject({ verdict: expect.stringMatching(/^(?!valid$)/) as string });
  });

  it('gives a source that tries many numbers the same refusals, at the rate of its limit', async () => {
    const scanner = await from(ATTACKER);
    const calls = Array.from({ length: 100 }, (_, index) => new HandMadeCall(scanner, `+1555300${String(1_000 + index)}`));
    for (const call of calls) call.invite(offerSdp());
    const answers = new Set(await Promise.all(calls.map(async (call) => told(await call.final()))));
    scanner.close();
    expect([...answers]).toEqual([expect.stringContaining('NUMBER_NOT_ATTACHED')]);
    // None of them is anybody's: no tenant's records are filled.
    const { json } = await gateway.api('GET', '/v1/calls?limit=100');
    expect(JSON.stringify(json)).not.toContain('+1555300');
    figure('100 numbers tried: 1 answer, 0 records of tenants');
  });
});
