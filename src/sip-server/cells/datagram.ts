import type { Endpoint } from '../../sip/transport/flow.js';

/** The number of the UDP socket among the connections of a line between cells. */
export const DATAGRAM = 0;

/** A datagram with its source or destination. */
export function writeDatagram({ address, port }: Endpoint, text: string): string {
  return `${address} ${String(port)}\n${text}`;
}

export function readDatagram(frame: string): { readonly peer: Endpoint; readonly text: string } {
  const end = frame.indexOf('\n');
  const [address = '', port = ''] = frame.slice(0, end).split(' ');
  return { peer: { address, port: Number(port) }, text: frame.slice(end + 1) };
}
