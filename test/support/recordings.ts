import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** One frame of a recorded session between an application and drachtio-server. */
export interface RecordedFrame {
  readonly from: 'app' | 'server';
  /** 1, 2 … in the order in which the applications connected. */
  readonly connection: number;
  readonly atMs: number;
  readonly payload: string;
}

/** A message as the peer of a recorded session logged it. */
export interface PeerMessage {
  readonly direction: 'sent' | 'received';
  readonly text: string;
}

const DIRECTORY = new URL('../fixtures/control-protocol/', import.meta.url);

export function readRecording(file: string): string {
  return readFileSync(new URL(file, DIRECTORY), 'latin1');
}

export function recordingFiles(): string[] {
  return readdirSync(DIRECTORY);
}

/** The frames in order of time; none when only the peer's side was recorded. */
export function readFrames(name: string): RecordedFrame[] {
  if (!existsSync(new URL(`${name}.txt`, DIRECTORY))) return [];
  const text = readRecording(`${name}.txt`);
  const heads =
    /^===== \[conn(\d+)\] (APP -> SERVER|SERVER -> APP) frame \d+ bytes \(prefix (\d+) \+ payload (\d+)\)\s+t=([\d.]+)ms\r?\n/gm;
  return [...text.matchAll(heads)].map((match) => {
    const start = match.index + match[0].length + Number(match[3]);
    return {
      from: match[2] === 'APP -> SERVER' ? 'app' : 'server',
      connection: Number(match[1]),
      atMs: Number(match[5]),
      payload: text.slice(start, start + Number(match[4])),
    };
  });
}

/** What the peer sent and received, as SIPp or a script logged it; line ends as on the wire. */
export function readPeer(file: string): PeerMessage[] {
  if (!existsSync(new URL(file, DIRECTORY))) return [];
  const text = readRecording(file).replace(/\r\n/g, '\n');
  const sipp = /(?:UDP|TLS) message (sent|received) \[(\d+)\] bytes:\n\n([\s\S]*?)(?=\n-{20,}|$)/g;
  const script = /^(>>>|<<<) [\d:.]+(?: (\d+) bytes)?[^\n]*\n([\s\S]*?)(?=^(?:>>>|<<<|closed) |$(?![\s\S]))/gm;
  const bySipp = [...text.matchAll(sipp)];
  const messages = (bySipp.length > 0 ? bySipp : [...text.matchAll(script)]).map((match): PeerMessage => {
    const wire = (match[3] ?? '').replace(/\n/g, '\r\n');
    // The script of the TLS sessions did not log sizes of what it sent: there is no body.
    const size = match[2] === undefined ? wire.indexOf('\r\n\r\n') + 4 : Number(match[2]);
    return { direction: match[1] === 'sent' || match[1] === '>>>' ? 'sent' : 'received', text: wire.slice(0, size) };
  });
  // drachtio-server writes a body as a TLS record of its own.
  const isBody = ({ text: wire }: PeerMessage): boolean => wire.startsWith('v=0');
  return messages
    .map((message, index) =>
      isBody(messages[index + 1] ?? message) ? { ...message, text: message.text + messages[index + 1]!.text } : message,
    )
    .filter((message) => !isBody(message));
}
