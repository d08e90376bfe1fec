import { SrtpSession } from '../../src/srtp/srtp.js';
import { bdecode, bencode } from '../../src/gateway/relay/bencode.js';
import { worldDatagrams, type From } from './driver/datagrams.js';
import { WorldProcess } from './driver/process.js';

type Side = 'carrier' | 'agent';
type Command = Record<string, unknown>;

/** The key and salt that rtpengine sends with to a party, in base64: 30 bytes, others for each session. */
const keyOf = (port: number): string => Buffer.from(`World key, and its salt: ${String(port).padStart(5, '0')}`).toString('base64');
const SUITE = 'AES_CM_128_HMAC_SHA1_80';
const KEPT = /^(?:PCMU|PCMA|telephone-event)\//i;

/** The keys of a party that uses SRTP. */
interface Srtp {
  readonly key: string;
  /** Of the party's packets: it stands before the tag of 10 bytes (RFC 3711 §3.1). */
  readonly mkiBytes: number;
  readonly receive: SrtpSession;
  readonly send: SrtpSession;
}

interface Party {
  /** Facing it; RTCP is on the next one. */
  readonly port: number;
  /** Where its description says that it is; `null`: it has given none. */
  at: (From & { readonly rtcpPort: number }) | null;
  profile: string;
  /** The tag of its `a=crypto` that is used, and its keys; `null`: plain RTP. */
  cryptoTag: string;
  srtp: Srtp | null;
  /** Its packets may come from another port than it has described. */
  isFollowed: boolean;
  packets: number;
  bytes: number;
  errors: number;
}

interface Session {
  readonly parties: Readonly<Record<Side, Party>>;
  readonly close: () => void;
}

const OTHER: Readonly<Record<Side, Side>> = { carrier: 'agent', agent: 'carrier' };

/** rtpengine 10.5 as far as the gateway can tell: its ng protocol, its ports, and packets that go through it, decrypted and encrypted. */
export class WorldRtpengine {
  process = new WorldProcess('rtpengine');
  readonly sessions = new Map<string, Session>();
  #nextPort: number;
  #startedMs = 0;
  /** Answers no command, as one that stands still; what comes meanwhile is answered when it goes on. */
  #isStalled = false;
  /** The command that it carries out and whose replies it keeps back. */
  #holding: string | null = null;
  /** By cookie: a command that is sent again gets one reply. */
  readonly #held = new Map<string, () => void>();
  /** How it refuses offers; `null`: it takes them. */
  refusal: string | null = null;

  constructor(
    private readonly ngPort: number,
    private readonly portMin: number,
  ) {
    this.#nextPort = portMin;
  }

  start(): void {
    this.process = new WorldProcess('rtpengine');
    this.#startedMs = performance.now();
    this.#isStalled = false;
    this.#holding = null;
    this.process.run(() =>
      worldDatagrams().bind(this.ngPort, (datagrams) => datagrams.forEach(({ bytes, from }) => this.#take(bytes, from))),
    );
  }

  kill(): void {
    this.process.kill();
    this.sessions.clear();
    this.#held.clear();
    this.#nextPort = this.portMin;
  }

  stall(): void {
    this.#isStalled = true;
  }

  /** Replies to this command are kept back until it goes on. */
  hold(command: 'offer' | 'answer'): void {
    this.#holding = command;
  }

  /** How many commands have no reply yet. */
  get heldCount(): number {
    return this.#held.size;
  }

  goOn(): void {
    this.#isStalled = false;
    this.#holding = null;
    const held = [...this.#held.values()];
    this.#held.clear();
    for (const answer of held) answer();
  }

  #take(given: Uint8Array, from: From): void {
    const datagram = Buffer.from(given);
    const space = datagram.indexOf(' ');
    const cookie = datagram.toString('latin1', 0, space);
    const command = bdecode(datagram, space + 1);
    const reply = (answer: Command): void => {
      const bytes = Buffer.from(`${cookie} ${bencode(answer)}`);
      worldDatagrams().send(bytes, { address: '127.0.0.1', port: this.ngPort }, from.port);
    };
    if (this.#isStalled) return void this.#held.set(cookie, () => reply(this.#answer(command)));
    const answer = this.#answer(command);
    if (command['command'] === this.#holding) this.#held.set(cookie, () => reply(answer));
    else reply(answer);
  }

  #answer(command: Command): Command {
    const callId = String(command['call-id']);
    switch (command['command']) {
      case 'ping':
        return { result: 'pong' };
      case 'offer':
        if (this.refusal !== null) return { result: 'error', 'error-reason': this.refusal };
        return this.#describe(this.sessions.get(callId) ?? this.#open(callId), command, 'offer');
      case 'answer': {
        const session = this.sessions.get(callId);
        return session === undefined ? unknownCall() : this.#describe(session, command, 'answer');
      }
      case 'query': {
        const session = this.sessions.get(callId);
        return session === undefined ? unknownCall() : { result: 'ok', ...figuresOf(session) };
      }
      case 'delete': {
        const session = this.sessions.get(callId);
        session?.close();
        this.sessions.delete(callId);
        return session === undefined
          ? { result: 'ok', warning: 'Call-ID not found or tags did not match' }
          : { result: 'ok', ...figuresOf(session) };
      }
      case 'list':
        return { result: 'ok', calls: [...this.sessions.keys()].slice(0, Number(command['limit'] ?? 32)) };
      case 'statistics': {
        const uptime = String(Math.floor((performance.now() - this.#startedMs) / 1_000));
        return { result: 'ok', statistics: { totalstatistics: { uptime }, currentstatistics: { sessionsown: this.sessions.size } } };
      }
      default:
        return { result: 'error', 'error-reason': 'Unrecognized command' };
    }
  }

  #open(callId: string): Session {
    const closes: (() => void)[] = [];
    const party = (): Party => {
      const port = this.#nextPort;
      this.#nextPort += 2;
      return { port, at: null, profile: 'RTP/AVP', cryptoTag: '1', srtp: null, isFollowed: false, packets: 0, bytes: 0, errors: 0 };
    };
    const parties = { carrier: party(), agent: party() };
    for (const side of ['carrier', 'agent'] as const)
      for (const offset of [0, 1]) {
        const bound = this.process.run(() =>
          worldDatagrams().bind(parties[side].port + offset, (datagrams) => {
            for (const { bytes, from } of datagrams) this.#forward(parties, side, offset, bytes, from);
          }),
        );
        closes.push(bound.close);
      }
    const session = { parties, close: () => closes.forEach((close) => close()) };
    this.sessions.set(callId, session);
    return session;
  }

  #forward(parties: Session['parties'], side: Side, offset: number, bytes: Uint8Array, source: From): void {
    const [from, to] = [parties[side], parties[OTHER[side]]];
    const isRtcp = offset === 1;
    const isPassedOn = keysPass(from, to);
    const plain = isPassedOn ? bytes : opened(from, isRtcp, bytes);
    if (plain === null) {
      from.errors += 1;
      return;
    }
    if (!isRtcp) {
      from.packets += 1;
      from.bytes += plain.length;
      if (from.isFollowed) from.at = { ...source, rtcpPort: from.at?.rtcpPort ?? source.port + 1 };
    }
    if (to.at === null || to.at.port === 0) return;
    const target = isRtcp ? to.at.rtcpPort : to.at.port;
    worldDatagrams().send(isPassedOn ? plain : sealed(to, isRtcp, plain), { address: '127.0.0.1', port: to.port + offset }, target);
  }

  /** What the other side gets of a description. */
  #describe({ parties }: Session, command: Command, kind: 'offer' | 'answer'): Command {
    const offerer = command['from-tag'] as Side;
    const sender = kind === 'offer' ? offerer : OTHER[offerer];
    const [from, to] = [parties[sender], parties[OTHER[sender]]];
    const sdp = String(command['sdp']);
    const port = Number(/^m=audio (\d+)/m.exec(sdp)?.[1]);
    const rtcpPort = Number(/^a=rtcp:(\d+)/m.exec(sdp)?.[1] ?? port + 1);
    from.at = { address: /^c=IN IP4 (\S+)/m.exec(sdp)?.[1] ?? '127.0.0.1', port, rtcpPort };
    from.isFollowed = sender === 'carrier' && (command['flags'] as readonly string[]).includes('media handover');
    if (kind === 'offer') {
      from.profile = /^m=audio \d+ (\S+)/m.exec(sdp)?.[1] ?? 'RTP/AVP';
      to.profile = String(command['transport-protocol']);
    }
    secure(from, sdp);
    const key = keysPass(from, to) ? from.srtp?.key : undefined;
    return { result: 'ok', sdp: rewritten(sdp, to, key ?? keyOf(to.port)) };
  }
}

/** Whether both ends use SRTP: each gets the key of the other, and rtpengine passes on what it cannot read. */
function keysPass(one: Party, other: Party): boolean {
  return [one, other].every(({ profile }) => profile.includes('SAVP'));
}

function unknownCall(): Command {
  return { result: 'error', 'error-reason': 'Unknown call-id' };
}

function figuresOf({ parties }: Session): Command {
  // Who has described nothing has no name yet.
  const nameOf = (side: Side): string => (parties[side].at === null ? '<untagged 1>' : side);
  const tag = ({ at, packets, bytes, errors }: Party, side: Side): Command => ({
    tag: at === null ? '' : side,
    medias: [
      {
        streams: [
          { flags: ['RTP'], stats: { packets, bytes, errors } },
          { flags: ['RTCP'], stats: { packets: 0, bytes: 0, errors: 0 } },
        ],
      },
    ],
  });
  return { tags: { [nameOf('carrier')]: tag(parties.carrier, 'carrier'), [nameOf('agent')]: tag(parties.agent, 'agent') } };
}

/** The keys of a description; the same key goes on with its count of packets. */
function secure(party: Party, sdp: string): void {
  const [, tag = '1', key, mkiBytes = '0'] =
    new RegExp(`^a=crypto:(\\d+) ${SUITE} inline:([^|\\s]+)(?:\\S*\\|\\d+:(\\d+))?`, 'm').exec(sdp) ?? [];
  party.cryptoTag = tag;
  if (key === undefined) party.srtp = null;
  else if (party.srtp?.key !== key)
    party.srtp = {
      key,
      mkiBytes: Number(mkiBytes),
      receive: new SrtpSession(Buffer.from(key, 'base64'), 'receive'),
      send: new SrtpSession(Buffer.from(keyOf(party.port), 'base64'), 'send'),
    };
}

/** `null`: it is not the party's. */
function opened({ srtp, profile }: Party, isRtcp: boolean, bytes: Uint8Array): Uint8Array | null {
  // Before the answer its key is not known.
  if (srtp === null) return profile.includes('SAVP') ? null : bytes;
  const taken = withoutMki(bytes, srtp.mkiBytes);
  const length = isRtcp ? srtp.receive.tryUnprotectRtcp(taken, taken.length) : srtp.receive.tryUnprotectRtp(taken, taken.length);
  return length < 0 ? null : taken.subarray(0, length);
}

const TAG_BYTES = 10;

/** A real rtpengine does not look at the value either. */
function withoutMki(packet: Uint8Array, mkiBytes: number): Uint8Array {
  if (mkiBytes === 0) return packet;
  const end = packet.length - TAG_BYTES;
  return Buffer.concat([packet.subarray(0, Math.max(0, end - mkiBytes)), packet.subarray(end)]);
}

/** SRTP's authentication tag, and SRTCP's index with it. */
const ROOM_BYTES = 64;

function sealed({ srtp }: Party, isRtcp: boolean, plain: Uint8Array): Uint8Array {
  if (srtp === null) return plain;
  const room = new Uint8Array(plain.length + ROOM_BYTES);
  room.set(plain);
  return room.subarray(0, isRtcp ? srtp.send.protectRtcp(room, plain.length) : srtp.send.protectRtp(room, plain.length));
}

/** With the port that faces the recipient, its profile, and the codecs that the gateway asks for. */
function rewritten(sdp: string, to: Party, key: string): string {
  const isSecure = to.profile.includes('SAVP');
  const names = new Map([...sdp.matchAll(/^a=rtpmap:(\d+) (\S+)/gm)].map(([, type = '', name = '']) => [type, name]));
  const isKept = (type: string): boolean =>
    KEPT.test(names.get(type) ?? ({ 0: 'PCMU/8000', 8: 'PCMA/8000' } as Record<string, string>)[type] ?? '');
  const lines = sdp.split(/\r?\n/).flatMap((line): readonly string[] => {
    if (/^o=/.test(line)) return [line.replace(/IN IP4 \S+$/, 'IN IP4 127.0.0.1')];
    if (/^c=/.test(line)) return ['c=IN IP4 127.0.0.1'];
    if (/^a=(?:crypto|rtcp|ice-|candidate|fingerprint|setup|rtcp-mux)/.test(line)) return [];
    const [, types] = /^m=audio \d+ \S+ (.*)$/.exec(line) ?? [];
    if (types !== undefined) return [`m=audio ${String(to.port)} ${to.profile} ${types.split(' ').filter(isKept).join(' ')}`];
    const [, type] = /^a=(?:rtpmap|fmtp):(\d+)/.exec(line) ?? [];
    return type !== undefined && !isKept(type) ? [] : [line];
  });
  const body = lines.filter((line) => line !== '');
  return [...body, `a=rtcp:${String(to.port + 1)}`, ...(isSecure ? [`a=crypto:${to.cryptoTag} ${SUITE} inline:${key}`] : []), ''].join(
    '\r\n',
  );
}
