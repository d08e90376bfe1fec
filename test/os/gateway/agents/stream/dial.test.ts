import { createServer, type AddressInfo, type Server } from 'node:net';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { webSocketDial, type DialOptions } from '../../../../../src/gateway/agents/stream/dial.js';
import { twilioSignature } from '../../../../../src/gateway/twilio/signature.js';
import type { AgentAddress, AgentSocket } from '../../../../../src/gateway/agents/stream/socket.js';
import { TestBot, type BotCall, type BotOptions } from '../../../../support/agent/test-bot.js';
import { Arrivals } from '../../../../support/arrivals.js';
import { TestCa } from '../../../../support/openssl.js';

// A bot of the ws package on loopback, and servers that answer as no WebSocket server should.

const LIMIT_MS = 5_000;
const ALLOWED: DialOptions = { allowPrivate: true, caPem: null };
let ca: TestCa;
let bot: TestBot | undefined;
let server: Server | undefined;

beforeAll(async () => {
  ca = await TestCa.create();
});
afterEach(async () => {
  await bot?.stop();
  server?.close();
  bot = server = undefined;
});
afterAll(() => ca.remove());

async function tlsBot(sans: string): Promise<TestBot> {
  const { certFile, keyFile } = await ca.issue('bot', sans);
  return startBot({ tls: { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') } });
}

async function startBot(options: BotOptions = {}): Promise<TestBot> {
  return (bot = await TestBot.start(options));
}

/** What comes of one attempt. */
function dial(url: string, options = ALLOWED, more: Partial<AgentAddress> = {}) {
  const outcomes = new Arrivals<string>();
  const texts = new Arrivals<string>();
  const binary = new Arrivals<Uint8Array>();
  let socket: AgentSocket | undefined;
  const giveUp = webSocketDial(options)(
    { url, bearerToken: null, signatureKey: 'key', ...more },
    {
      onOpen: (opened) => {
        socket = opened;
        outcomes.add('open');
      },
      onFailed: (message) => outcomes.add(`failed: ${message}`),
      onText: (text) => texts.add(text),
      onBinary: (bytes) => binary.add(bytes),
      onPong: (serial) => outcomes.add(`pong ${String(serial)}`),
      onClosed: (code) => outcomes.add(`closed ${String(code)}`),
    },
  );
  return { outcomes, texts, binary, giveUp, socket: () => socket! };
}

describe('the connection to an agent', () => {
  it('carries Twilio’s signature of its URL, and a bearer token only when there is one', async () => {
    const { url, calls } = await startBot();
    await dial(url).outcomes.at(0, LIMIT_MS);
    await dial(url, ALLOWED, { bearerToken: 'abc' }).outcomes.at(0, LIMIT_MS);
    const [first, second] = [await calls.at(0, LIMIT_MS), await calls.at(1, LIMIT_MS)];
    expect(first.upgrade.headers['user-agent']).toMatch(/^Trunkline\/\d/);
    expect(first.upgrade.headers['x-twilio-signature']).toBe(twilioSignature('key', url));
    expect(first.upgrade.headers.authorization).toBeUndefined();
    expect(second.upgrade.headers.authorization).toBe('Bearer abc');
    expect(first.upgrade.headers['sec-websocket-extensions']).toBeUndefined();
  });

  it('carries the signature of Twilio’s documentation: HMAC-SHA1 of the URL in base64', () => {
    // Made with `printf %s wss://example.com/ws | openssl dgst -sha1 -hmac 12345 -binary | base64`.
    expect(twilioSignature('12345', 'wss://example.com/ws')).toBe('HXrgvHt0qTHu33oSxSjpOvWtO60=');
    // The fragment stays here.
    expect(twilioSignature('12345', 'wss://example.com/ws#rc=2')).toBe('HXrgvHt0qTHu33oSxSjpOvWtO60=');
  });

  it('moves text and binary both ways, answers pings, and reports its close code', async () => {
    const { url, calls } = await startBot();
    const { outcomes, texts, binary, socket } = dial(url);
    await outcomes.at(0, LIMIT_MS);
    const call = await calls.at(0, LIMIT_MS);
    socket().sendText('{"event":"connected","protocol":"Call","version":"1.0.0"}');
    socket().sendBinary(Buffer.alloc(160, 7));
    socket().ping(75);
    expect(await call.messages.at(0, LIMIT_MS)).toMatchObject({ event: 'connected' });
    expect(await call.binary.at(0, LIMIT_MS)).toEqual(Buffer.alloc(160, 7));
    expect(await outcomes.at(1, LIMIT_MS)).toBe('pong 75');
    call.socket.send('hello');
    call.socket.send(Buffer.alloc(3, 9));
    expect(await texts.at(0, LIMIT_MS)).toBe('hello');
    expect(Buffer.from(await binary.at(0, LIMIT_MS))).toEqual(Buffer.alloc(3, 9));
    call.socket.close(1_013);
    expect(await outcomes.at(2, LIMIT_MS)).toBe('closed 1013');
  });

  it('reports nothing after it was closed from here', async () => {
    const { url, calls } = await startBot();
    const { outcomes, texts, socket } = dial(url);
    await outcomes.at(0, LIMIT_MS);
    const call = await calls.at(0, LIMIT_MS);
    socket().close();
    call.socket.send('late');
    expect(await call.closed.at(0, LIMIT_MS)).toBe(1_000);
    expect([outcomes.all, texts.all]).toEqual([['open'], []]);
  });

  it('stays open when the attempt is given up afterwards', async () => {
    const { url, calls } = await startBot();
    const { outcomes, giveUp, socket } = dial(url);
    await outcomes.at(0, LIMIT_MS);
    giveUp();
    socket().close();
    expect(await (await calls.at(0, LIMIT_MS)).closed.at(0, LIMIT_MS)).toBe(1_000);
  });

  it.each<[string, number, (socket: BotCall['socket']) => void]>([
    ['is too long', 1_009, (socket) => socket.send('x'.repeat(3 * 1_024 * 1_024))],
    ['is not UTF-8', 1_007, (socket) => socket.send(Buffer.from([0xff]), { binary: false })],
    ['is masked', 1_002, (socket) => socket.send('x', { mask: true })],
  ])('ends with an error at a message that %s', async (_name, code, send) => {
    const { url, calls } = await startBot();
    const { outcomes, texts } = dial(url);
    const call = await calls.at(0, LIMIT_MS);
    send(call.socket);
    expect(await outcomes.at(1, LIMIT_MS)).toBe('closed 1006');
    expect(await call.closed.at(0, LIMIT_MS)).toBe(code);
    expect(texts.all).toEqual([]);
  });

  it('accepts a long message in parts, and sends one', async () => {
    const { url, calls } = await startBot();
    const { outcomes, binary, texts, socket } = dial(url);
    await outcomes.at(0, LIMIT_MS);
    const call = await calls.at(0, LIMIT_MS);
    const long = 'ü'.repeat(400_000);
    call.socket.send(long.slice(0, 100_000), { fin: false });
    call.socket.send(long.slice(100_000), { fin: true });
    call.socket.send(Buffer.alloc(100_000, 3));
    expect(await texts.at(0, LIMIT_MS)).toBe(long);
    expect(Buffer.from(await binary.at(0, LIMIT_MS))).toEqual(Buffer.alloc(100_000, 3));
    const error = { request: 'dtmf', id: null, code: 'X', message: long };
    socket().sendText(JSON.stringify({ event: 'error', sequenceNumber: '1', streamSid: `MZ${'0'.repeat(32)}`, error }));
    expect(await call.messages.at(0, LIMIT_MS)).toMatchObject({ error });
  });

  it('answers a ping, and a close frame with its code', async () => {
    const { url, calls } = await startBot();
    const { outcomes } = dial(url);
    const call = await calls.at(0, LIMIT_MS);
    const pongs = new Arrivals<string>();
    call.socket.on('pong', (data) => pongs.add(data.toString()));
    call.socket.ping('are you there');
    expect(await pongs.at(0, LIMIT_MS)).toBe('are you there');
    call.socket.close(4_321, 'enough');
    expect(await outcomes.at(1, LIMIT_MS)).toBe('closed 4321');
    expect(await call.closed.at(0, LIMIT_MS)).toBe(4_321);
  });

  it('reports a close frame without a code, and an end without a close frame', async () => {
    const { url, calls } = await startBot();
    const [first, second] = [dial(url), dial(url)];
    (await calls.at(0, LIMIT_MS)).socket.close();
    (await calls.at(1, LIMIT_MS)).socket.terminate();
    const codes = await Promise.all([first, second].map(({ outcomes }) => outcomes.at(1, LIMIT_MS)));
    expect(codes.sort()).toEqual(['closed 1005', 'closed 1006']);
  });

  it('uses whichever address of a name answers', async () => {
    const { port } = await startBot();
    expect(await dial(`ws://localhost:${String(port)}/`).outcomes.at(0, LIMIT_MS)).toBe('open');
  });
});

describe('an upgrade that the server answers with', () => {
  const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';

  let sent: Arrivals<Buffer>;

  /** @param answer to the key of the request */
  async function answering(answer: (accept: string) => readonly string[]): Promise<ReturnType<typeof dial>> {
    sent = new Arrivals();
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (data) => sent.add(data));
      socket.once('data', (request) => {
        const key = /^Sec-WebSocket-Key: (.*)\r$/m.exec(request.toString())?.[1] ?? '';
        const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
        for (const part of answer(`Sec-WebSocket-Accept: ${accept}\r\n`)) socket.write(part, 'latin1');
      });
    });
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    return dial(`ws://127.0.0.1:${String((server.address() as AddressInfo).port)}/`);
  }

  it.each<[string, (accept: string) => readonly string[], string]>([
    ['something other than HTTP', () => ['SSH-2.0-OpenSSH_9.6\r\n\r\n'], 'was not answered in HTTP'],
    ['no end', () => [SWITCHING, 'X-Long: ', 'x'.repeat(17_000)], 'more than 16 kB of headers'],
    ['another key', () => [SWITCHING, 'Sec-WebSocket-Accept: eHh4\r\n\r\n'], 'another Sec-WebSocket-Accept'],
    ['no Upgrade', (accept) => [SWITCHING.replace('Upgrade: websocket\r\n', ''), `${accept}\r\n`], 'no Upgrade: websocket'],
    ['an extension', (accept) => [SWITCHING, `${accept}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n`], 'which was not asked for'],
    ['a subprotocol', (accept) => [SWITCHING, `${accept}Sec-WebSocket-Protocol: chat\r\n\r\n`], 'which was not asked for'],
    ['a refusal after an interim response', () => ['HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 503 ', 'Busy\r\n\r\n'], 'HTTP 503'],
  ])('%s fails', async (_name, answer, message) => {
    expect(await (await answering(answer)).outcomes.at(0, LIMIT_MS)).toMatch(new RegExp(`^failed: .*${message}`));
  });

  it('its first message, in odd pieces and odd letter case, makes a connection', async () => {
    const { outcomes, texts } = await answering((accept) => {
      const whole = `${SWITCHING.replace('Upgrade: websocket', 'upgrade:WebSocket')}${accept.toLowerCase().slice(0, 22)}${accept.slice(22)}\r\n\x81\x02hi`;
      return [whole.slice(0, 9), whole.slice(9, 30), whole.slice(30, -2), whole.slice(-2)];
    });
    expect(await texts.at(0, LIMIT_MS)).toBe('hi');
    expect(outcomes.all).toEqual(['open']);
  });

  it('a thousand pings at once makes the gateway send one pong, for the latest', async () => {
    const pings = Array.from({ length: 1_000 }, (_, i) => `\x89\x03${String(i).padStart(3, '0')}`).join('');
    const { texts } = await answering((accept) => [`${SWITCHING}${accept}\r\n${pings}\x81\x02hi`]);
    expect(await texts.at(0, LIMIT_MS)).toBe('hi');
    const frames = await sent.until((all) => /\r\n\r\n(.{9,})$/s.exec(Buffer.concat(all).toString('latin1'))?.[1], LIMIT_MS);
    const [head, mask, payload] = [frames.slice(0, 2), frames.slice(2, 6), frames.slice(6)].map((part) => Buffer.from(part, 'latin1'));
    expect([...head!]).toEqual([0x8a, 0x83]);
    expect(Buffer.from(payload!.map((byte, i) => byte ^ mask![i & 3]!)).toString()).toBe('999');
  });
});

describe('an attempt to connect', () => {
  it('fails for an agent whose token no header can hold', async () => {
    const { url } = await startBot();
    const { outcomes } = dial(url, ALLOWED, { bearerToken: 'a\r\nX-Other: 1' });
    expect(await outcomes.at(0, LIMIT_MS)).toBe('failed: the header Authorization has characters that no header may have');
  });

  it('fails with the status of an agent that refuses the upgrade', async () => {
    const { url } = await startBot({ refuseWith: 403 });
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toBe('failed: the upgrade was answered with HTTP 403');
  });

  it('fails for an agent that redirects', async () => {
    const { url } = await startBot({ refuseWith: 302 });
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toBe('failed: the upgrade was answered with HTTP 302');
  });

  it('fails for a port where nothing listens', async () => {
    const { url } = await startBot();
    await bot?.stop();
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toContain('ECONNREFUSED');
  });

  it('reports nothing once it is given up', async () => {
    const accepted = new Arrivals<boolean>();
    server = createServer(() => accepted.add(true));
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const { outcomes, giveUp } = dial(`ws://127.0.0.1:${String((server.address() as AddressInfo).port)}/`);
    await accepted.at(0, LIMIT_MS);
    giveUp();
    expect(outcomes.all).toEqual([]);
  });

  it.each([
    ['ws://127.0.0.1:9/', 'not an address of the public internet'],
    ['wss://127.0.0.1:9/', 'not an address of the public internet'],
    ['wss://[::1]:9/', 'not an address of the public internet'],
    ['wss://[::ffff:10.0.0.1]:9/', 'not an address of the public internet'],
    ['wss://169.254.169.254/', 'not an address of the public internet'],
    ['wss://localhost:9/', 'not an address of the public internet'],
    ['ws://example.com/', 'needs agents.allow_private'],
    ['wss://', 'the URL cannot be read'],
  ])('fails for %s unless the configuration allows it', async (url, message) => {
    const { outcomes } = dial(url, { allowPrivate: false, caPem: null });
    expect(await outcomes.at(0, LIMIT_MS)).toContain(message);
  });

  it('fails for a public address without TLS, whatever the configuration', async () => {
    expect(await dial('ws://8.8.8.8/').outcomes.at(0, LIMIT_MS)).toContain('without TLS (ws://) must be at a private address');
  });
});

describe('the TLS of a connection to an agent', () => {
  it('is verified against the CAs of the configuration', async () => {
    const { url } = await tlsBot('IP:127.0.0.1');
    expect(await dial(url, { allowPrivate: true, caPem: ca.ca }).outcomes.at(0, LIMIT_MS)).toBe('open');
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toMatch(/^failed: .*(certificate|self-signed)/);
  });

  it('carries audio and texts both ways', async () => {
    const { url, calls } = await tlsBot('DNS:localhost');
    const { outcomes, binary, texts, socket } = dial(url.replace('127.0.0.1', 'localhost'), { allowPrivate: true, caPem: ca.ca });
    await outcomes.at(0, LIMIT_MS);
    const call = await calls.at(0, LIMIT_MS);
    for (let i = 0; i < 200; i += 1) socket().sendBinary(Buffer.alloc(160, i));
    for (let i = 0; i < 200; i += 1) call.socket.send(Buffer.alloc(160, i));
    call.socket.send('x'.repeat(100_000));
    expect(await texts.at(0, LIMIT_MS)).toBe('x'.repeat(100_000));
    await call.binary.at(199, LIMIT_MS);
    for (const came of [call.binary.all, binary.all])
      expect(came.map((frame) => [frame.length, frame[159]])).toEqual(Array.from({ length: 200 }, (_, i) => [160, i]));
  });

  it('fails for a certificate with another name', async () => {
    const { url } = await tlsBot('DNS:bot.example.com');
    expect(await dial(url, { allowPrivate: true, caPem: ca.ca }).outcomes.at(0, LIMIT_MS)).toMatch(/^failed: .*altnames/);
  });
});
