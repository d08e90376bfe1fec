import { parseArgs } from 'node:util';
import { StreamAgent } from '../../src/gateway/agents/stream/stream-agent.js';
import { MediaLeg } from '../../src/gateway/media/leg.js';
import { generateSrtpKey, SrtpSession } from '../../src/srtp/srtp.js';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { talkingAgent } from './talking-agent.js';

// Our own code a packet, without sockets: a leg with an agent behind a WebSocket, each of which is given away as soon as it is made. What
// it is held against is what any bridge of RTP and Twilio's messages has to do in JavaScript: base64, JSON.parse, a text a message.

const { values } = parseArgs({ options: { packets: { type: 'string', default: '200000' } } });
const PACKETS = Number(values.packets);
const PACKET_BYTES = 172;

interface Round {
  readonly microseconds: number;
  readonly bytes: number;
}

/** Few enough that nothing is collected in between, with the young generation that package.json asks for. */
const COUNTED_PACKETS = 2_000;

/** Time and memory allocated for one packet each way; `once` gets numbers that go on. */
function timed(packets: number, once: (i: number) => void): Round {
  let serial = 0;
  const run = (count: number): void => {
    for (let i = 0; i < count; i += 1) once((serial += 1));
  };
  run(20_000);
  globalThis.gc?.();
  const heapBytes = process.memoryUsage().heapUsed;
  run(COUNTED_PACKETS);
  const bytes = (process.memoryUsage().heapUsed - heapBytes) / COUNTED_PACKETS;
  const started = performance.now();
  run(packets);
  return { microseconds: ((performance.now() - started) * 1_000) / packets, bytes };
}

function newLeg(isSecure: boolean) {
  const clock = new VirtualClock();
  const { agent, events } = talkingAgent(StreamAgent, clock, () => true);
  const key = generateSrtpKey();
  const leg = new MediaLeg(
    {
      codec: 'PCMU',
      payloadType: 0,
      telephoneEventPayloadType: 101,
      srtp: isSecure ? { send: generateSrtpKey(), receive: key } : null,
      carrierSuite: null,
    },
    {
      clock,
      random32: () => 12_345,
      transport: { sendRtp: () => undefined, sendRtcp: () => undefined },
      mediaTimeoutMs: 1e9,
      onEvent: () => undefined,
      agent: () => agent,
    },
  );
  leg.start();
  return { clock, leg, events, protect: isSecure ? new SrtpSession(key, 'send') : null };
}

function product(isSecure: boolean): Round {
  const { clock, leg, events, protect } = newLeg(isSecure);
  const datagram = Buffer.alloc(PACKET_BYTES + 16, 0x55);
  datagram[0] = 0x80;
  datagram[1] = 0;
  const plain = datagram.subarray(0, PACKET_BYTES);
  const said = JSON.stringify({ event: 'media', streamSid: 'MZ', media: { payload: Buffer.alloc(160, 0x33).toString('base64') } });
  return timed(PACKETS, (i) => {
    datagram.writeUInt16BE(i & 0xffff, 2);
    datagram.writeUInt32BE((i * 160) >>> 0, 4);
    const length = protect === null ? PACKET_BYTES : protect.protectRtp(datagram, PACKET_BYTES);
    leg.receiveRtp(protect === null ? plain : datagram.subarray(0, length));
    events?.onText(said);
    clock.advance(20);
    leg.tick(0, 1);
  });
}

/** What cannot be left out: each text and each base64 once. */
function least(): Round {
  const head = '{"event":"media","streamSid":"MZ","media":{"track":"inbound","timestamp":"';
  const payload = Buffer.alloc(PACKET_BYTES, 0x55);
  const said = JSON.stringify({ event: 'media', streamSid: 'MZ', media: { payload: Buffer.alloc(160, 0x33).toString('base64') } });
  let sum = 0;
  const round = timed(PACKETS, (i) => {
    sum += `${head}${String(i)}","payload":"${payload.toString('base64', 12, PACKET_BYTES)}"}}`.length;
    const message = JSON.parse(said) as { media: { payload: string } };
    sum += Buffer.from(message.media.payload, 'base64').length;
  });
  if (sum === 0) throw new Error('nothing was done');
  return round;
}

const show = (name: string, { microseconds, bytes }: Round): void =>
  console.log(`  ${name.padEnd(44)} ${microseconds.toFixed(2)} µs, ${bytes.toFixed(0)} bytes of heap`);

console.log('One packet of the caller and one of the agent:');
const baseline = least();
show('baseline: base64 and JSON alone', baseline);
const plain = product(false);
show('leg with a Twilio agent, plain RTP', plain);
const secure = product(true);
show('the same with SRTP, the sender’s half included', secure);
console.log(
  `  ratio: ${(plain.microseconds / baseline.microseconds).toFixed(2)} times the baseline; ${((plain.microseconds * 50) / 10_000).toFixed(3)} % of a core a call`,
);
