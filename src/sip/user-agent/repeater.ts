import type { DialogEntry } from '../dialog/dialog-table.js';
import { topViaOf } from '../message/core-headers.js';
import type { Flow } from '../transport/flow.js';
import { defaultPort } from '../transport/service-location.js';
import type { UserAgentContext } from './user-agent-context.js';

/**
 * Sends the 2xx to an INVITE again: over the INVITE's connection, else the one that the dialog uses now, else a new one to the source address
 * and the port of sent-by (RFC 3261 §18.2.2).
 */
export function repeater({ flows }: UserAgentContext, dialog: DialogEntry, flow: Flow, text: string): () => void {
  const { transport, remote } = flow;
  let opened: Flow | undefined;
  const open = (): Flow | undefined => {
    const via = topViaOf(text);
    if (via === undefined) return undefined;
    const port = via.port ?? defaultPort(transport);
    // RFC 3581 §4: UDP goes back to where it came from.
    if (transport === 'UDP') return flows.open({ transport, host: remote.address, port: via.params.has('rport') ? remote.port : port });
    return flows.open({ transport, host: via.host, port, address: remote.address });
  };
  return () => {
    const known = [flow, dialog.flow, opened].find((one) => one?.isOpen === true);
    if (known === undefined) opened = open();
    (known ?? opened)?.send(text);
  };
}
