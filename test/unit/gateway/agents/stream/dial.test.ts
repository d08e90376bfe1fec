import { createServer, type AddressInfo, type Server } from 'node:net';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { webSocketDial, type DialOptions } from '../../../../../src/gateway/agents/stream/dial.js';
import { twilioSignature } from '../../../../../src/gateway/twilio/signature.js';
import type { AgentAddress, AgentSocket } from '../../../../../src/gateway/agents/stream/socket.js';
import { TestBot, type BotOptions } from '../../../../support/agent/test-bot.js';
import { Arrivals } from '../../../../support/arrivals.js';
import { TestCa } from '../../../../support/openssl.js';

// The ws package both ways on loopback.

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

  it('signs as Twilio’s documentation shows: HMAC-SHA1 of the URL in base64', () => {
    // Made with `printf %s wss://example.com/ws | openssl dgst -sha1 -hmac 12345 -binary | base64`.
    expect(twilioSignature('12345', 'wss://example.com/ws')).toBe('HXrgvHt0qTHu33oSxSjpOvWtO60=');
  });

  it('moves text and binary both ways, answers pings, and tells how it was closed', async () => {
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

  it('says nothing after it was closed from here', async () => {
    const { url, calls } = await startBot();
    const { outcomes, texts, socket } = dial(url);
    await outcomes.at(0, LIMIT_MS);
    const call = await calls.at(0, LIMIT_MS);
    socket().close();
    call.socket.send('late');
    expect(await call.closed.at(0, LIMIT_MS)).toBe(1_000);
    expect([outcomes.all, texts.all]).toEqual([['open'], []]);
  });

  it('is no attempt any more once it is open: giving that up changes nothing', async () => {
    const { url, calls } = await startBot();
    const { outcomes, giveUp, socket } = dial(url);
    await outcomes.at(0, LIMIT_MS);
    giveUp();
    socket().close();
    expect(await (await calls.at(0, LIMIT_MS)).closed.at(0, LIMIT_MS)).toBe(1_000);
  });

  it('ends with a message that is too long', async () => {
    const { url, calls } = await startBot();
    const { outcomes } = dial(url);
    const call = await calls.at(0, LIMIT_MS);
    call.socket.send('x'.repeat(3 * 1_024 * 1_024));
    expect(await outcomes.at(1, LIMIT_MS)).toBe('closed 1006');
  });
});

describe('what cannot be connected to', () => {
  it('an agent that refuses the upgrade, with its status', async () => {
    const { url } = await startBot({ refuseWith: 403 });
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toBe('failed: the upgrade was answered with HTTP 403');
  });

  it('an agent that redirects', async () => {
    const { url } = await startBot({ refuseWith: 302 });
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toBe('failed: the upgrade was answered with HTTP 302');
  });

  it('a port where nobody listens', async () => {
    const { url } = await startBot();
    await bot?.stop();
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toContain('ECONNREFUSED');
  });

  it('an attempt that is given up tells nothing', async () => {
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
  ])('%s unless the configuration allows it', async (url, message) => {
    const { outcomes } = dial(url, { allowPrivate: false, caPem: null });
    expect(await outcomes.at(0, LIMIT_MS)).toContain(message);
  });

  it('an address of the public internet without TLS, whatever the configuration', async () => {
    expect(await dial('ws://8.8.8.8/').outcomes.at(0, LIMIT_MS)).toContain('without TLS (ws://) must be at a private address');
  });
});

describe('TLS', () => {
  it('is checked against the CAs of the configuration', async () => {
    const { url } = await tlsBot('IP:127.0.0.1');
    expect(await dial(url, { allowPrivate: true, caPem: ca.ca }).outcomes.at(0, LIMIT_MS)).toBe('open');
    expect(await dial(url).outcomes.at(0, LIMIT_MS)).toMatch(/^failed: .*(certificate|self-signed)/);
  });

  it('of another name is refused', async () => {
    const { url } = await tlsBot('DNS:bot.example.com');
    expect(await dial(url, { allowPrivate: true, caPem: ca.ca }).outcomes.at(0, LIMIT_MS)).toMatch(/^failed: .*altnames/);
  });
});
