import { changed, type SipMessage } from './message.js';

function startLine(message: SipMessage): string {
  return message.kind === 'request' ? `${message.method} ${message.uri} SIP/2.0` : `SIP/2.0 ${String(message.status)} ${message.reason}`;
}

/** The message as a byte string. Content-Length is always the body's real size, in the place where the message has it, or last. */
export function serialize(message: SipMessage): string {
  if (message.wire !== undefined) return message.wire;
  let text = `${startLine(message)}\r\n`;
  let counted = false;
  for (const line of message.headers) {
    if (line.id === 'content-length') {
      if (counted) continue;
      counted = true;
      text += Number(line.value) === message.body.length ? `${line.line}\r\n` : `Content-Length: ${message.body.length}\r\n`;
      continue;
    }
    text += `${line.line}\r\n`;
  }
  if (!counted) text += `Content-Length: ${message.body.length}\r\n`;
  return `${text}\r\n${message.body}`;
}

/** The same with every header on one line, for readers that do not know folds (RFC 3261 §7.3.1). */
export function serializeUnfolded(message: SipMessage): string {
  // What goes on as it was received has none.
  if (message.wire !== undefined || !message.headers.some(({ line }) => line.includes('\n'))) return serialize(message);
  const headers = message.headers.map((item) =>
    item.line.includes('\n') ? { ...item, line: `${item.line.slice(0, item.line.indexOf(':'))}: ${item.value}` } : item,
  );
  return serialize(changed(message, { headers }));
}
