import type { ClientRequest, IncomingMessage } from 'node:http';
import { rootCertificates } from 'node:tls';
import { WebSocket, type RawData } from 'ws';
import { MAX_AGENT_MESSAGE_BYTES } from '../../../agent-protocol/agent-messages.js';
import { errorText } from '../../../lib/result.js';
import { agentUrlRefusal, guardedLookup, privateLookup } from '../../net/guarded-lookup.js';
import { USER_AGENT } from '../../net/user-agent.js';
import { twilioSignature } from '../../twilio/signature.js';
import type { AgentAddress, AgentSocket, AgentSocketEvents, DialAgent, DialSocket } from './socket.js';

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
    let socket: WebSocket;
    try {
      const url = new URL(text);
      const refusal = agentUrlRefusal(url, allowPrivate);
      if (refusal !== null) throw new Error(refusal);
      const isEncrypted = url.protocol === 'wss:';
      socket = new WebSocket(url, {
        headers: { 'User-Agent': USER_AGENT, ...headers },
        perMessageDeflate: false,
        followRedirects: false,
        maxPayload: maxMessageBytes,
        lookup: isEncrypted ? guardedLookup(allowPrivate) : privateLookup,
        ...(ca === undefined ? {} : { ca }),
        minVersion: 'TLSv1.2',
      });
    } catch (error) {
      // The URL itself may hold a secret.
      const message = error instanceof TypeError ? 'the URL cannot be read' : errorText(error);
      queueMicrotask(() => events.onFailed(message));
      return () => undefined;
    }
    return attach(socket, events);
  };
}

function headersOf({ url, bearerToken, signatureKey, traceparent }: AgentAddress): Record<string, string> {
  return {
    'X-Twilio-Signature': twilioSignature(signatureKey, url),
    ...(bearerToken === null ? {} : { Authorization: `Bearer ${bearerToken}` }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

function attach(socket: WebSocket, events: AgentSocketEvents): () => void {
  let isOpen = false;
  let isOver = false;
  const end = (action: () => void): void => {
    if (isOver) return;
    isOver = true;
    action();
  };
  // Without this listener, ws reports a refusal as an error without its status.
  socket.on('unexpected-response', (request: ClientRequest, response: IncomingMessage) => {
    request.destroy();
    end(() => events.onFailed(`the upgrade was answered with HTTP ${String(response.statusCode)}`));
  });
  socket.on('open', () => {
    if (isOver) return;
    isOpen = true;
    events.onOpen(openSocket(socket, () => (isOver = true)));
  });
  socket.on('message', (data: RawData, isBinary: boolean) => {
    if (isOver) return;
    const bytes = data as Buffer;
    if (isBinary) events.onBinary(bytes);
    else events.onText(bytes.toString());
  });
  socket.on('pong', (data) => isOver || events.onPong(Number.parseInt(data.toString('latin1'), 10)));
  // For an open socket, `close` fires next.
  socket.on('error', (error) => isOpen || end(() => events.onFailed(errorText(error))));
  socket.on('close', (code, reason) =>
    end(() => (isOpen ? events.onClosed(code, reason.toString()) : events.onFailed('the connection was closed'))),
  );
  return () => isOpen || end(() => socket.terminate());
}

function openSocket(socket: WebSocket, leave: () => void): AgentSocket {
  return {
    get unsentBytes(): number {
      return socket.bufferedAmount;
    },
    sendText: (text) => {
      // ws masks bytes into one buffer with their header, which is one write; a text would be two.
      if (socket.readyState === WebSocket.OPEN) socket.send(Buffer.from(text), { binary: false });
    },
    sendBinary: (bytes) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
    },
    ping: (serial) => {
      if (socket.readyState === WebSocket.OPEN) socket.ping(String(serial));
    },
    close: () => {
      leave();
      socket.close(1_000);
    },
    terminate: () => {
      leave();
      socket.terminate();
    },
  };
}
