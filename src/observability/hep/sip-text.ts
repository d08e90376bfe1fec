const CONTENT_LENGTH = /^((?:Content-Length|l)[ \t]*:[ \t]*)\d+/im;

/** A SIP message whose Content-Length is that of its body: one whose keys are masked is shorter, and tools would cut it or wait for the rest. */
export function withItsLength(message: string): string {
  const end = message.indexOf('\r\n\r\n');
  if (end < 0) return message;
  const [head, body] = [message.slice(0, end), message.slice(end + 4)];
  return `${head.replace(CONTENT_LENGTH, (_all, name: string) => `${name}${String(Buffer.byteLength(body))}`)}\r\n\r\n${body}`;
}
