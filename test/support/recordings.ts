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

/** One line of a session that was recorded with both of its ends. */
export interface RecordedLine {
  readonly atMs: number;
  readonly from: 'app' | 'server' | 'peer';
  /** Whose: a frame of the application's connection, or a message of a peer's. */
  readonly side: 'app' | 'peer';
  readonly text: string;
}

/** The lines in order of time, without the application's login. */
export function readLines(name: string): RecordedLine[] {
  return readRecording(`${name}.txt`)
    .split('\n')
    .flatMap((line): RecordedLine[] => {
      const match = /^([\d.]+)s (APP -> SERVER|SERVER -> APP|\w+ >>>|\w+ <<<) (".*")$/.exec(line);
      if (match === null) return [];
      const [, seconds, who = '', json = '""'] = match;
      const text = JSON.parse(json) as string;
      if (text.includes('|authenticate|') || /\|OK\|(tls|tcp|udp)\//.test(text)) return [];
      const from = who === 'APP -> SERVER' ? 'app' : who.endsWith('>>>') ? 'peer' : 'server';
      return [{ atMs: Number(seconds) * 1_000, from, side: who.includes('APP') ? 'app' : 'peer', text }];
    });
}
