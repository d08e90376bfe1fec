import type { DialogEntry } from '../sip/dialog/dialog-entry.js';
import type { IncomingRequest } from '../sip/user-agent/incoming-request.js';
import { cseqNumber } from '../sip/message/core-headers.js';
import { getHeader, header, type SipRequest } from '../sip/message/message.js';
import { tagOf } from '../sip/message/name-addr.js';
import type { Flow } from '../sip/transport/flow.js';
import type { FramePeer } from './meta-line.js';

/** Where a message came from or went to. */
export function peerOf(flow: Flow): FramePeer {
  return { protocol: flow.transport.toLowerCase(), address: flow.remote.address, port: flow.remote.port };
}

/** What the echo of a request of ours names: the remote end of a connection, the local one of UDP. */
export function sentTo(flow: Flow): FramePeer {
  return flow.reliable ? peerOf(flow) : { protocol: flow.transport.toLowerCase(), ...flow.local };
}

/** The dialog id of the protocol: Call-ID and the From tag of the INVITE, whoever sent it. */
export function dialogIdOfEntry(dialog: DialogEntry): string {
  const { role, callId, localTag, remoteTag } = dialog.state;
  return `${callId};from-tag=${role === 'uas' ? remoteTag : localTag}`;
}

export function dialogIdOf(request: IncomingRequest): string {
  return request.dialog === null ? `${request.core.callId};from-tag=${request.core.fromTag ?? ''}` : dialogIdOfEntry(request.dialog);
}

export function outgoingDialogId(message: SipRequest): string {
  return `${getHeader(message, 'call-id') ?? ''};from-tag=${tagOf(getHeader(message, 'from') ?? '') ?? ''}`;
}

/** What an application is told when the caller is gone without a CANCEL: it knows no other way to hear of it. */
export function syntheticCancel(invite: SipRequest): SipRequest {
  const kept = invite.headers.filter(({ id }) => ['via', 'from', 'to', 'call-id', 'max-forwards'].includes(id));
  return {
    kind: 'request',
    method: 'CANCEL',
    uri: invite.uri,
    headers: [...kept, header('CSeq', `${String(cseqNumber(invite))} CANCEL`)],
    body: '',
  };
}
