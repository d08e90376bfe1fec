import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FrameDecoder } from '../../../src/sip-server/control-protocol.js';
import { until } from '../../support/carrier-call.js';
import { ControlClient } from '../../support/control-client.js';
import { EventLog } from '../../support/event-log.js';
import { readFrames, readPeer, readRecording } from '../../support/recordings.js';
import { SipSite } from '../../support/sip-site.js';
import { withWorldTime } from '../world-time.js';

withWorldTime();

// The recorded sessions that are about connections: what differs is in test/conformance/control-protocol/differences.test.ts.

let site: SipSite;
let log: EventLog;
const clients: ControlClient[] = [];

beforeEach(async () => {
  log = new EventLog();
  site = await SipSite.start({ log });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await site.settled();
  await site.close();
});

async function connected(): Promise<ControlClient> {
  const client = await ControlClient.open(site.server.controlPort);
  clients.push(client);
  return client;
}

async function application(...methods: string[]): Promise<ControlClient> {
  const client = await ControlClient.application(site.server.controlPort, ...methods);
  clients.push(client);
  return client;
}

/** The answer without the ids. */
const verdict = (payload: string): string => payload.split('\r\n', 1)[0]?.split('|').slice(3).join('|') ?? '';

describe('transcript 24: a wrong secret', () => {
  it('gets the refusal of drachtio-server, and the server closes the connection', async () => {
    for (const { connection, from, payload } of readFrames('24-wrong-secret').slice(0, 4)) {
      if (from === 'server') continue;
      const client = await connected();
      const theirs = readFrames('24-wrong-secret').find((frame) => frame.connection === connection && frame.from === 'server');
      expect(verdict(await client.ask(payload))).toBe(verdict(theirs?.payload ?? ''));
      await client.closed;
    }
  });
});

describe('transcript 26: the server', () => {
  /** The sections of the recording: what was written, and the answers. */
  const sections = readRecording('26-raw-protocol-edge-cases.txt')
    .split(/^--- /m)
    .slice(1)
    .map((text) => {
      const [title = '', ...lines] = text.split('\n');
      const plain = (mark: string): string[] =>
        lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length).replaceAll('\\r\\n', '\r\n'));
      return { title, written: plain('=> '), answered: plain('<= ').join(''), isClosed: text.includes('FIN from server') };
    });

  const OWN: Readonly<Record<string, readonly string[]>> = {
    // Nothing is done for a connection that has not shown the secret; theirs does it all.
    'route before authenticate': ['id1 NO not authenticated'],
    'sip OPTIONS before authenticate': ['id1 NO not authenticated'],
    // Extension methods are sent (RFC 3261 §8.1.1.1 lists none); theirs calls the URI invalid.
    'unknown method': ['id1 OK', 'id2 OK'],
    // There is no WebSocket here that could be off.
    'unavailable transport wss': ['id1 NOK invalid request-uri: OPTIONS sip:x@127.0.0.1:25999;transport=wss SIP/2.0', 'id2 OK'],
    // It may be the beginning of seven.
    'length 6 digits': [],
  };
  const LOGIN = /^(wrong secret|ok with tags|authenticate without trailing)|before authenticate$/;

  it.each(sections.map(({ title }) => title))('answers as drachtio-server does: %s', async (title) => {
    const { written, answered, isClosed } = sections.find((section) => section.title === title)!;
    const client = LOGIN.test(title) ? await connected() : await application();
    client.frames.length = 0;
    const own = String(site.server.portOf('UDP')!);
    for (const bytes of written) {
      // Theirs has a secret and ports of its own.
      const ours = title.startsWith('wrong')
        ? bytes
        : bytes.replace(/^\d+#(.*\|authenticate\|)cymru(.*)$/, (_all, head: string, tail: string) => sized(`${head}test-secret${tail}`));
      client.socket.write(ours.replaceAll(':25060', `:${own}`), 'latin1');
      await new Promise((resolve) => setImmediate(resolve));
    }
    const theirs =
      OWN[title] ?? [...new FrameDecoder(1 << 20).push(answered)].flatMap((item) => (item.type === 'frame' ? [outline(item.payload)] : []));
    const ours = (): string[] => client.frames.filter((frame) => frame.split('|')[1] === 'response').map(outline);
    await until(() => ours().length === theirs.length, 'an answer is missing');
    expect(ours()).toEqual(theirs);
    if (isClosed && title !== 'length 6 digits') await client.closed;
  });

  /** Which frame is answered, how, and why not. */
  function outline(payload: string): string {
    const [, , id = '', word = '', why = ''] = payload.split('|');
    return [id, word, ...(word === 'OK' ? [] : [why])].join(' ');
  }

  function sized(payload: string): string {
    return `${String(payload.length)}#${payload}`;
  }
});

describe('transcripts 27 and 28: the server, with several applications,', () => {
  it('takes them strictly in turn, from the first, and sends each what belongs to its calls', async () => {
    const applications = [await application('invite'), await application('invite')];
    const peer = await site.udp();
    const recorded = readFrames('27-two-apps').filter(({ payload }) => payload.includes('\r\nINVITE '));
    expect(recorded.map(({ connection }) => connection)).toEqual([2, 2, 1, 2, 2, 1, 2, 1, 1, 1, 1]);
    const takers: number[] = [];
    for (const { payload } of recorded.slice(0, 7)) {
      const offers = applications.map((client, index) => client.sip().then((frame) => ({ frame, index })));
      peer.raw(payload.slice(payload.indexOf('\r\n') + 2).replace(/:2523[01]/g, `:${String(peer.localPort)}`));
      const { frame, index } = await Promise.race(offers);
      takers.push(index + 1);
      applications[index]!.send(`a|sip|${frame.split('|')[8] ?? ''}|\r\nSIP/2.0 486 Busy Here\r\n\r\n`);
      const refusal = await peer.status(486);
      const acknowledged = refusal.text.replace('SIP/2.0 486 Busy Here', 'ACK sip:answer@127.0.0.1 SIP/2.0').replace('1 INVITE', '1 ACK');
      peer.raw(acknowledged);
    }
    expect(takers).toEqual([1, 2, 1, 2, 1, 2, 1]);
  });

  it('gives two turns to one that registered two routes', async () => {
    const applications = [await application('options'), await application('options'), await application('options', 'options')];
    const peer = await site.udp();
    applications.forEach((client, index) => {
      client.socket.on('data', () => {
        for (const frame of client.frames.splice(0)) {
          if (frame.split('|')[1] !== 'sip') continue;
          client.send(`a|sip|${frame.split('|')[8] ?? ''}|\r\nSIP/2.0 200 OK\r\nX-By: ${'ABC'.charAt(index)}\r\n\r\n`);
        }
      });
    });
    let order = '';
    for (let count = 0; count < 12; count += 1) {
      const options = readPeer('14-no-client-options.sip.txt')[0]?.text ?? '';
      peer.raw(
        options
          .replace('12887-1-0', `turn${String(count)}`)
          .replaceAll(':25214', `:${String(peer.localPort)}`)
          .replace('1-12887@', `${String(count)}@`),
      );
      order += (await peer.status(200)).header('X-By') ?? '';
    }
    // Theirs: BACCCBACCBAC.
    expect(order).toBe('ABCCABCCABCC');
  });
});

describe('transcript 29: the server', () => {
  it.each([8_000, 12_228, 12_240, 40_000, 262_144])('answers a frame of %i bytes', async (size) => {
    const client = await application();
    expect(verdict(await client.ask(`big|ping|${'x'.repeat(size - 'big|ping|'.length)}`))).toBe('OK|pong');
  });

  it('closes the connection at more than max_frame_bytes', async () => {
    const client = await application();
    client.send(`big|ping|${'x'.repeat(262_144)}`);
    await client.closed;
    expect(log.named('sip_server.frame.bad')).toHaveLength(1);
  });
});

describe('transcripts 33 and 36: the server', () => {
  it('closes a connection with garbage (33-tls-garbage)', async () => {
    const peer = await site.tls();
    peer.raw('this is not SIP\r\n\r\nnor is this\r\n\r\n');
    await peer.whenClosed();
  });

  it('takes a missing Content-Length for 0, at once (33-tls-noclen)', async () => {
    const client = await application('invite');
    const peer = await site.tls();
    const [invite] = readPeer('33-tls-noclen.sip.txt');
    expect(invite?.text).not.toContain('Content-Length');
    const offered = client.sip();
    peer.raw(invite?.text ?? '');
    await client.ask(`a|sip|${(await offered).split('|')[8] ?? ''}|\r\nSIP/2.0 486 Busy Here\r\n\r\n`);
    expect((await peer.final()).status).toBe(486);
  });

  it.each([
    ['33-tls-ping', () => site.tls()],
    ['36-crlf-keepalive', () => site.tcp()],
  ])('answers CRLF CRLF with CRLF (%s)', async (_name, connect) => {
    const peer = await connect();
    peer.raw('\r\n\r\n');
    await peer.next('pong', ({ startLine }) => startLine === 'PONG');
  });

  it('answers 503 itself to the BYE to a caller whose connection is gone (33-tls-close-midcall)', async () => {
    const client = await application('invite');
    const peer = await site.tls();
    const [invite = '', ack = ''] = readPeer('33-tls-close-midcall.sip.txt')
      .filter(({ direction }) => direction === 'sent')
      .map(({ text }) => text.replaceAll(':42820', `:${String(peer.localPort)}`));
    const offered = client.sip();
    peer.raw(invite);
    const transaction = (await offered).split('|')[8] ?? '';
    await client.ask(`ok|sip|${transaction}|\r\nSIP/2.0 200 OK\r\n\r\nv=0\r\n`);
    const ok = await peer.status(200);
    const acknowledged = client.next((frame) => frame.includes('\r\nACK '));
    peer.raw(ack.replace(/^To: .*$/m, `To: ${ok.header('To') ?? ''}`));
    const dialogId = (await acknowledged).split('|')[9] ?? '';
    peer.close();
    await until(() => site.server.counts['connections'] === 0, 'a connection is left');
    const answer = client.next((frame) => frame.includes('\r\nSIP/2.0 503 Service Unavailable\r\n'));
    expect(verdict(await client.ask(`bye|sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`))).toMatch(/^OK\|application\|/);
    expect((await answer).split('|').slice(2, 7)).toEqual(['network', '0', 'tls', '', '0']);
  });
});
