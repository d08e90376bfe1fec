import { openSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { errorText } from '../lib/result.js';

// The processes of one `trunkline up` ask each other over Unix sockets in the data directory, which only their user can open: one line with
// the question, then the answer as JSON and the end.

/** The supervisor's question: the answer has the process's number and what it tells its user. One that does not answer it hangs. */
export const FACTS_QUESTION = 'facts';

/** The supervisor replaces its processes of ours, and answers when it is done. */
export const RELOAD_QUESTION = 'reload';

/** A gateway takes no more calls, and ends when those that it has have ended; the answer comes when its successor may open the control API. */
export const RETIRE_QUESTION = 'retire';

/** A gateway that waits for the end of the one that it follows connects the agents of that one's calls, and answers when it has. */
export const AHEAD_QUESTION = 'ahead';

/** Whom to ask for a process that waits for the end of the one that it follows. */
export function followerName(name: string): string {
  return `${name}-next`;
}

/** What a process answers, by question. */
export type ProcessAnswers = Readonly<Record<string, () => unknown>>;

const MAX_QUESTION_BYTES = 64;
const MAX_ANSWER_BYTES = 8 * 1_024 * 1_024;
const IDLE_LIMIT_MS = 1_000;
/** sun_path of unix(7), without its last byte. */
const MAX_PATH_BYTES = 107;

/** The socket's path; by way of an open directory if it would be too long for a socket. */
export function processSocket(dataDir: string, name: string): string {
  const absolute = join(resolve(dataDir), `${name}.sock`);
  return Buffer.byteLength(absolute) <= MAX_PATH_BYTES ? absolute : join(directoryLink(resolve(dataDir)), `${name}.sock`);
}

const links = new Map<string, string>();

function directoryLink(directory: string): string {
  const link = links.get(directory) ?? `/proc/self/fd/${String(openSync(directory, 'r'))}`;
  links.set(directory, link);
  return link;
}

/** Answers the other processes and returns a function that stops it. @param failed gets why the socket cannot be opened */
export function serveProcess(dataDir: string, name: string, answers: ProcessAnswers, failed: (reason: string) => void): () => void {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let question = '';
    socket.on('error', () => socket.destroy());
    socket.setTimeout(IDLE_LIMIT_MS, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      question += chunk.toString();
      if (question.length > MAX_QUESTION_BYTES) socket.destroy();
      if (!question.endsWith('\n')) return;
      const answer = answers[question.trim()];
      if (answer === undefined) return void socket.destroy();
      // The answer may take its time.
      socket.setTimeout(0);
      Promise.resolve(answer()).then(
        (value) => socket.end(JSON.stringify(value)),
        () => socket.destroy(),
      );
    });
  });
  server.on('error', (error) => failed(errorText(error)));
  const path = processSocket(dataDir, name);
  // Left by a killed process; the data directory is ours alone (supervisor.pid).
  rmSync(path, { force: true });
  server.listen(path);
  server.unref();
  return () => void server.close();
}

/** Why a process gave no answer. */
export class NoAnswer extends Error {
  constructor(
    reason: string,
    /** It closed the connection, as the event loop does that has no file handle for it: so it does not hang. */
    readonly wasClosed: boolean,
  ) {
    super(reason);
  }
}

/** Rejects with {@link NoAnswer} when the process is away, closes the connection, or does not answer in time. */
export function askProcess(dataDir: string, name: string, question: string, limitMs: number): Promise<unknown> {
  return new Promise((resolve_, reject) => {
    let isConnected = false;
    const socket = connect({ path: processSocket(dataDir, name) }, () => {
      isConnected = true;
      socket.write(`${question}\n`);
    });
    const fail = (reason: string, wasClosed = false): void => {
      clearTimeout(limit);
      socket.destroy();
      reject(new NoAnswer(reason, wasClosed));
    };
    const limit = setTimeout(() => fail('no answer in time'), limitMs);
    const chunks: Buffer[] = [];
    let bytes = 0;
    socket.on('error', (error) => fail(errorText(error), isConnected));
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) fail('too much');
      else chunks.push(chunk);
    });
    socket.on('end', () => {
      if (bytes === 0) return fail('closed without an answer', true);
      try {
        resolve_(JSON.parse(Buffer.concat(chunks).toString()));
        clearTimeout(limit);
        socket.destroy();
      } catch {
        fail('no JSON');
      }
    });
  });
}
