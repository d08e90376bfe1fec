import type { DialogRecord } from '../dialog/dialog-record.js';
import type { DialogEntry } from '../dialog/dialog-table.js';
import { LostFlow } from '../transport/lost-flow.js';
import { repeater } from './repeater.js';
import type { UserAgentContext } from './user-agent-context.js';

/** Continues a dialog of an earlier process: its session timer, and the 2xx without an ACK, which gets its full 64·T1 again. */
export function restoreDialog(context: UserAgentContext, record: DialogRecord): DialogEntry {
  const { transport, sourceAddress, sourcePort, unacknowledged } = record;
  const flow = new LostFlow(transport, { address: sourceAddress, port: sourcePort }, context.flows.advertised(transport));
  const dialog = context.dialogs.restore(record, flow);
  context.sessions.resume(dialog, record);
  if (unacknowledged !== null) dialog.answered(unacknowledged, repeater(context, dialog, flow, unacknowledged.text));
  return dialog;
}
