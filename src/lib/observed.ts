/** One SIP message of a call, as soon as its text is available; keys and credentials are masked. */
export interface SipMessageSeen {
  readonly sipCallId: string;
  /** The carrier's side; `transport` is `tls`, `tcp` or `udp`. */
  readonly source: { readonly ip: string; readonly port: number; readonly transport: string };
  /** Our Contact. */
  readonly contact: string;
  readonly direction: 'in' | 'out';
  readonly text: string;
  readonly atMs: number;
}

/** One RTCP datagram that a leg received or sent. */
export interface RtcpSeen {
  readonly sipCallId: string;
  readonly from: { readonly address: string; readonly port: number };
  readonly to: { readonly address: string; readonly port: number };
  /** The compound packet, decrypted if SRTCP was used. */
  readonly packet: Uint8Array;
  readonly atMs: number;
}
