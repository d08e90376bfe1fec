import type { DialogRecord } from '../dialog/dialog-record.js';
import type { DialogEntry } from '../dialog/dialog-table.js';
import { topViaOf } from '../message/core-headers.js';
import { LostFlow } from '../transport/lost-flow.js';
import { defaultPort } from '../transport/service-location.js';
import type { Flow } from '../transport/flow.js';
import type { UserAgentContext } from './user-agent-context.js';

/** Continues a dialog of an earlier process: its session timer, and the 2xx without an ACK, which gets its full 64·T1 again. */
export function restoreDialog(context: UserAgentContext, record: DialogRecord): DialogEntry {
  const { transport, sourceAddress, sourcePort, unacknowledged } = record;
  const flow = new LostFlow(transport, { address: sourceAddress, port: sourcePort }, context.flows.advertised(transport));
  const dialog = context.dialogs.restore(record, flow);
  context.sessions.resume(dialog, record);
  if (unacknowledged !== null) dialog.answered(unacknowledged, resender(context, dialog, unacknowledged.text));
  return dialog;
}

/** By the connection on which the peer spoke since, else by a new one to the source address and the port of sent-by (RFC 3261 §18.2.2). */
function resender({ flows }: UserAgentContext, dialog: DialogEntry, text: string): () => void {
  const via = topViaOf(text);
  const { transport, remote } = dialog.flow;
  let opened: Flow | undefined;
  const open = (): Flow | undefined => {
    if (via === undefined) return undefined;
    const port = via.port ?? defaultPort(transport);
    // RFC 3581 §4: UDP goes back to where it came from.
    if (transport === 'UDP') return flows.open({ transport, host: remote.address, port: via.params.has('rport') ? remote.port : port });
    return flows.open({ transport, host: via.host, port, address: remote.address });
  };
  return () => {
    if (!dialog.flow.isOpen && opened?.isOpen !== true) opened = open();
    (dialog.flow.isOpen ? dialog.flow : opened)?.send(text);
  };
}
