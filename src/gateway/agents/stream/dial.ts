import { rootCertificates } from 'node:tls';
import { MAX_AGENT_MESSAGE_BYTES } from '../../../agent-protocol/agent-messages.js';
import { errorText } from '../../../lib/result.js';
import { agentUrlRefusal, guardedLookup, privateLookup } from '../../net/guarded-lookup.js';
import { USER_AGENT } from '../../net/user-agent.js';
import { twilioSignature } from '../../twilio/signature.js';
import type { AgentAddress, DialAgent, DialSocket } from './socket.js';
import { ClientWebSocket } from './web-socket.js';

export interface DialOptions {
  /** Agents at private and loopback addresses too, and there without TLS. */
  readonly allowPrivate: boolean;
  /** PEM, beside the public certificates; `null`: none. */
  readonly caPem: string | null;
}

/** A bot's connection, with its token and our signature. */
export function webSocketDial(options: DialOptions): DialAgent {
  const dial = socketDial({ ...options, maxMessageBytes: MAX_AGENT_MESSAGE_BYTES });
  return (address, events) => dial({ url: address.url, headers: headersOf(address) }, events);
}

/** Connects by WebSocket: TLS checked, addresses guarded, no redirects, no compression, messages bounded. */
export function socketDial({ allowPrivate, caPem, maxMessageBytes }: DialOptions & { readonly maxMessageBytes: number }): DialSocket {
  const ca = caPem === null ? undefined : [...rootCertificates, caPem];
  return ({ url: text, headers }, events) => {
    try {
      const url = new URL(text);
      const refusal = agentUrlRefusal(url, allowPrivate);
      if (refusal !== null) throw new Error(refusal);
      const lookup = url.protocol === 'wss:' ? guardedLookup(allowPrivate) : privateLookup;
      const trusted = ca === undefined ? {} : { ca };
      const socket = new ClientWebSocket(
        { url, headers: { 'User-Agent': USER_AGENT, ...headers }, lookup, ...trusted, maxMessageBytes },
        events,
      );
      return () => socket.giveUp();
    } catch (error) {
      // The URL itself may hold a secret.
      const message = error instanceof TypeError ? 'the URL cannot be read' : errorText(error);
      queueMicrotask(() => events.onFailed(message));
      return () => undefined;
    }
  };
}

function headersOf({ url, bearerToken, signatureKey, traceparent }: AgentAddress): Record<string, string> {
  return {
    'X-Twilio-Signature': twilioSignature(signatureKey, url),
    ...(bearerToken === null ? {} : { Authorization: `Bearer ${bearerToken}` }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
