import { createSocket, type Socket } from 'node:dgram';
import { isIP, isIPv6 } from 'node:net';
import type { SipMessageSeen, RtcpSeen } from '../../lib/observed.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { MetricCounts } from '../metrics/catalog.js';
import { hepPacket, type HepEndpoint, type HepIdentity, type HepMessage } from './packet.js';
import { rtcpJson } from './rtcp-json.js';
import { withItsLength } from './sip-text.js';

export interface HepOptions extends HepIdentity {
  readonly collector: HepEndpoint;
  /** This machine's address, which replaces a host name in our Contact. */
  readonly ownAddress: string;
  readonly counts: Pick<MetricCounts, 'count'>;
  readonly log: Log;
}

/**
 * Sends a Homer collector the SIP messages of calls, as the gateway sees them and with their keys masked, and the RTCP of their media
 * legs. The gateway sends them, although the SIP server sees more: so drachtio-server behaves the same, and the trace's rules mask what
 * leaves the machine. If the collector is down, messages are lost and nothing else happens.
 */
export class HepSender {
  readonly #socket: Socket;
  #isReported = false;

  constructor(private readonly options: HepOptions) {
    this.#socket = createSocket(isIPv6(options.collector.address) ? 'udp6' : 'udp4');
    this.#socket.on('error', (error) => this.#failed(error));
    this.#socket.unref();
  }

  send({ sipCallId, source, contact, direction, text, atMs }: SipMessageSeen): void {
    const peer = { address: source.ip, port: source.port };
    const own = this.#own(contact, peer.address);
    const [from, to] = direction === 'in' ? [peer, own] : [own, peer];
    this.#transmit({ from, to, transport: source.transport, atMs, callId: sipCallId, protocol: 'sip', text: withItsLength(text) });
  }

  /** Sends nothing for a datagram that is not RTCP. */
  sendRtcp({ sipCallId, from, to, packet, atMs }: RtcpSeen): void {
    const text = rtcpJson(packet);
    if (text !== null) this.#transmit({ from, to, transport: 'udp', atMs, callId: sipCallId, protocol: 'rtcp', text });
  }

  close(): void {
    this.#socket.close();
  }

  #transmit(message: HepMessage): void {
    const { collector } = this.options;
    this.#socket.send(hepPacket(message, this.options), collector.port, collector.address, (error) => {
      if (error === null) this.options.counts.count('trunkline_hep_packets_total', { outcome: 'sent' });
      else this.#failed(error);
    });
  }

  /** The address in our Contact, of the peer's family: a packet has one family. */
  #own(contact: string, peer: string): HepEndpoint {
    const [, v6, host, port] = /^<sips?:(?:\[([^\]]+)\]|([^:;>]+))(?::(\d+))?/.exec(contact) ?? [];
    const named = [v6 ?? host ?? '', this.options.ownAddress].find((address) => isIP(address) === isIP(peer));
    return { address: named ?? (isIPv6(peer) ? '::' : '0.0.0.0'), port: Number(port ?? 5061) };
  }

  /** Logged once, not for each message. */
  #failed(error: Error): void {
    this.options.counts.count('trunkline_hep_packets_total', { outcome: 'dropped' });
    if (!this.#isReported) this.options.log.warn({ error: errorText(error) }, 'hep.not_sent');
    this.#isReported = true;
  }
}
