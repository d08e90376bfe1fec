/** One SIP message of a call, as soon as its text is known; keys and credentials in it are masked. */
export interface SipMessageSeen {
  readonly sipCallId: string;
  /** The carrier's side; `transport` is `tls`, `tcp` or `udp`. */
  readonly source: { readonly ip: string; readonly port: number; readonly transport: string };
  /** Ours: our Contact. */
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
  /** The compound packet in clear, also where SRTCP was on the wire. */
  readonly packet: Uint8Array;
  readonly atMs: number;
}
