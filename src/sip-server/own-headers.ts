import { IDENTITY_HEADER, TLS_HEADER } from '../lib/own-headers.js';
import { header } from '../sip/message/message.js';
import { headerId } from '../sip/message/header-name.js';
import type { OwnHeaders } from '../sip/message/reception.js';

/**
 * What applications learn about the TLS connection of a request's peer.
 *
 * @param passClientIdentity each request names the owner of the peer's checked certificate
 * @param passTls the INVITE of a new dialog has TLS version and cipher
 */
export function tlsHeaders(passClientIdentity: boolean, passTls: boolean): OwnHeaders {
  return {
    ids: new Set([IDENTITY_HEADER, TLS_HEADER].map(headerId)),
    of: ({ tlsIdentity = '', tls = null }, method, toTag) => [
      ...(passClientIdentity && tlsIdentity !== '' ? [header(IDENTITY_HEADER, tlsIdentity)] : []),
      ...(passTls && tls !== null && method === 'INVITE' && toTag === undefined
        ? [header(TLS_HEADER, `${tls.version} ${tls.cipher}`)]
        : []),
    ],
  };
}
