import type { ControlClient } from './control-client.js';
import type { SipPeer } from './sip-peer.js';

/** Offers a carrier's connection for requests to it (RFC 5923): resolves when the SIP server has read so. @param sentBy of its Via, with `alias` */
export async function offerAlias(carrier: SipPeer, application: ControlClient, sentBy: string): Promise<void> {
  const shown = application.sip();
  carrier.send([
    'OPTIONS sip:x@127.0.0.1 SIP/2.0',
    `Via: SIP/2.0/TLS ${sentBy};branch=z9hG4bK-alias`,
    ...['From: <sip:a@test>;tag=f1', 'To: <sip:x@127.0.0.1>', 'Call-ID: alias', 'CSeq: 1 OPTIONS'],
  ]);
  await shown;
}
