import { createSocket, type Socket } from 'node:dgram';
import { isIP, isIPv6 } from 'node:net';
import type { SipMessageSeen, RtcpSeen } from './observed.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { MetricCounts } from '../metrics/catalog.js';
import { hepPacket, type HepEndpoint, type HepIdentity, type HepMessage } from './packet.js';
import { rtcpJson } from './rtcp-json.js';

export interface HepOptions extends HepIdentity {
  readonly collector: HepEndpoint;
  /** This machine's address, in place of a host name in our Contact. */
  readonly ownAddress: string;
  readonly counts: MetricCounts;
  readonly log: Log;
}

/**
 * Tells a Homer collector of the SIP messages of calls, as the gateway knows them and with the keys in them masked, and of the RTCP of
 * their media legs. The gateway does it and not the SIP server, which sees more: so it is the same with a drachtio-server, and what leaves the machine is masked by the rules
 * of the trace. A collector that is away loses messages, and nothing else.
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
    this.#transmit({ from, to, transport: source.transport, atMs, callId: sipCallId, protocol: 'sip', text });
  }

  /** Nothing for what is no RTCP. */
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

  /** The address that our Contact names; of the peer's family, for a packet has one. */
  #own(contact: string, peer: string): HepEndpoint {
    const [, v6, host, port] = /^<sips?:(?:\[([^\]]+)\]|([^:;>]+))(?::(\d+))?/.exec(contact) ?? [];
    const named = [v6 ?? host ?? '', this.options.ownAddress].find((address) => isIP(address) === isIP(peer));
    return { address: named ?? (isIPv6(peer) ? '::' : '0.0.0.0'), port: Number(port ?? 5061) };
  }

  /** Said once: there is one for each message. */
  #failed(error: Error): void {
    this.options.counts.count('trunkline_hep_packets_total', { outcome: 'dropped' });
    if (!this.#isReported) this.options.log.warn({ error: errorText(error) }, 'hep.not_sent');
    this.#isReported = true;
  }
}
