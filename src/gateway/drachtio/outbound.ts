import { randomInt } from 'node:crypto';
import { newSessionId, newTag, newUuid } from '../../lib/ids.js';
import { DEFAULT_SIPS_PORT, sipEndpointParts } from '../../lib/sip-endpoint.js';
import { NOBODY } from '../model/call-record.js';
import { ownTlsOf, type OutboundTrunk } from '../model/records.js';
import { trunkHeaders } from '../call/trunk-tls.js';
import type { PlaceContext } from '../call/place-context.js';
import { ownContact, supportedHeader, type ContactAddress } from '../call/invite.js';
import { ALLOWED_METHODS } from '../../lib/sip-methods.js';
import { maxDurationMs, type CallFacts, type JoinedCall } from '../call/state.js';
import type { PlaceRequest } from '../ports/place-call.js';

/** What the operator says of hosts of trunks. */
export interface TrunkHosts {
  /** Whether calls may go there. */
  readonly isAllowed: (host: string) => boolean;
  /** Whether they may have P-Asserted-Identity (RFC 3325). */
  readonly isTrusted: (host: string) => boolean;
}

/** Why no call goes to the trunk, on anybody's behalf; `null`: it may. @param isOwnServer connected to Trunkline's SIP server */
export function trunkRefusal(trunk: OutboundTrunk, { isAllowed, isTrusted }: TrunkHosts, isOwnServer: boolean): string | null {
  const { host } = trunkUri(trunk.sip_endpoint, '');
  if (!isAllowed(host)) return `the trunk ${host} is at a private, loopback or reserved address`;
  if (trunk.caller_id_header === 'P-Asserted-Identity' && !isTrusted(host))
    return `the operator has not marked the trunk ${host} as trusted (trunks.trusted_hosts): no P-Asserted-Identity`;
  return ownTlsOf(trunk) === null || isOwnServer ? null : "ca, tls_names and client_certificate of the trunk need Trunkline's SIP server";
}

/** Far enough below the most (RFC 3261 §8.1.1.5). */
const MAX_FIRST_CSEQ = 2 ** 30;

export interface OwnEnd {
  readonly contact: ContactAddress;
  readonly warningHost: string;
  readonly facts: Omit<CallFacts, 'sdp' | 'sourceAddress' | 'sessionId' | 'ringingAfterMs' | 'refusedVerdicts'>;
  readonly nowMs: number;
  readonly trunksArePublic: boolean;
  /** Trunkline's SIP server takes our tag and CSeq with the first INVITE, so that its dialog is known before it leaves. */
  readonly isOwnServer: boolean;
}

/** What one call needs to be placed. @param joins the call that it is a second leg of; `null`: none */
export function placeContext(request: PlaceRequest, own: OwnEnd, joins: JoinedCall | null = null): PlaceContext {
  const {
    callId,
    orgId,
    from,
    to,
    trunk,
    agent,
    ringTimeoutMs,
    detectAnswerer,
    timeLimitMs = Infinity,
    voice,
    idempotencyKey,
    confirm,
    sipHeaders = {},
  } = request;
  const { uri, host, port, hostPort } = trunkUri(trunk.sip_endpoint, to);
  const sipCallId = request.sipCallId ?? newUuid();
  const tag = own.isOwnServer ? newTag() : null;
  const contact = ownContact(own.contact, { requestUri: uri, topRecordRoute: undefined, contactUri: undefined });
  const facts = {
    ...own.facts,
    ...(joins === null ? {} : { joins }),
    sourceAddress: '',
    sdp: '',
    sessionId: newSessionId(),
    ringingAfterMs: null,
    refusedVerdicts: [],
  };
  return {
    orgId,
    from,
    to,
    trunk,
    agent,
    ringTimeoutMs,
    detectAnswerer,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    origin: {
      callId,
      sipCallId,
      direction: 'outbound',
      orgId,
      to,
      startedAtMs: own.nowMs,
      ...(voice === undefined ? {} : { voice }),
      ...(joins === null ? {} : { parentCallId: joins.callId }),
      caller: { ...NOBODY, number: from },
      source: { ip: host, port, transport: 'tls', tls_version: null, tls_cipher: null },
    },
    facts: { ...facts, maxDurationMs: Math.min(timeLimitMs, maxDurationMs({ facts, route: { agent } })) },
    own: { contact, warningHost: own.warningHost, peerHost: hostPort },
    target: {
      uri,
      ...(confirm === undefined ? {} : { confirm }),
      noReinvite: trunk.no_reinvite === true,
      dialogId: tag === null ? null : `${sipCallId};from-tag=${tag}`,
      headers: {
        ...sipHeaders,
        // A trunk knows its customers by numbers in its own domain.
        From: `<sip:${from}@${host}>${tag === null ? '' : `;tag=${tag}`}`,
        To: `<sip:${to}@${host}>`,
        'Call-ID': sipCallId,
        ...(tag === null ? {} : { CSeq: `${String(randomInt(1, MAX_FIRST_CSEQ))} INVITE` }),
        Contact: contact,
        Allow: ALLOWED_METHODS,
        Supported: supportedHeader(trunk.no_reinvite === true),
        ...(trunk.caller_id_header === 'P-Asserted-Identity' ? { 'P-Asserted-Identity': `<sip:${from}@${host}>` } : {}),
        ...trunkHeaders(trunk, own.trunksArePublic),
      },
    },
  };
}

/**
 * The Request-URI of a number at a trunk: `sips:` as the endpoint says, everything else over TLS too. Without a port the name is looked
 * up by SRV (`_sips._tcp`, RFC 3263 §4.2).
 */
export function trunkUri(
  endpoint: string,
  to: string,
): { readonly uri: string; readonly host: string; readonly port: number; readonly hostPort: string } {
  const { isSips, host, port } = sipEndpointParts(endpoint);
  const hostPort = port === undefined ? host : `${host}:${String(port)}`;
  const uri = isSips ? `sips:${to}@${hostPort}` : `sip:${to}@${hostPort};transport=tls`;
  return { uri, host, port: port ?? DEFAULT_SIPS_PORT, hostPort };
}

/** The URI of a registrar or trunk: it has no user (RFC 3261 §10.2, §11.1). */
export function serverUri(server: string): { readonly uri: string; readonly host: string } {
  const { host, hostPort } = trunkUri(server, '');
  return { uri: `sip:${hostPort};transport=tls`, host };
}
