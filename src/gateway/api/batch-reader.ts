import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../lib/clock.js';
import { FairTurns } from '../../lib/fair-turns.js';
import { err, type Result } from '../../lib/result.js';
import { startThread } from '../../lib/thread.js';
import { readBatchText, type BatchText, type ReadBatch, type ReadBatchText } from './batch-body.js';
import { ApiFailure } from './failure.js';
import type { ApiErrorEntry } from './schemas/api-error.js';

/** A thread takes longer to start than these to be read. */
const SMALL = 16_384;
const LIMIT_MS = 30_000;
const MAX_MEMORY_MB = 512;
const MAX_CHARACTERS_OF_AN_ORG = 32 * 1_024 * 1_024;

type Answer = Result<ReadBatch, readonly ApiErrorEntry[]>;

/** Reads large bodies in a thread each, one at a time. */
export function batchReader(clock: Pick<Clock, 'nowMs' | 'setTimer'>): ReadBatchText {
  const turns = new FairTurns({ atOnce: 1, maxSize: MAX_CHARACTERS_OF_AN_ORG, rest: 1 }, clock);
  return (orgId, body) => {
    if (body.text.length <= SMALL) return readBatchText(body);
    const read = turns.run(orgId, body.text.length, () => readInThread(body, clock));
    if (read === null)
      throw new ApiFailure(
        'LIMIT_REACHED',
        'Too many numbers of the organization are being read: wait for the answers to earlier requests',
      );
    return read;
  };
}

function readInThread(body: BatchText, clock: Pick<Clock, 'setTimer'>): Promise<Answer> {
  return new Promise((resolve) => {
    const thread: Worker = startThread(new URL('./batch-body-thread', import.meta.url), null, MAX_MEMORY_MB);
    const end = (answer: Answer): void => {
      cancel();
      void thread.terminate();
      resolve(answer);
    };
    const refuse = (message: string): void => end(err([{ error: 'VALIDATION', message }]));
    const cancel = clock.setTimer(LIMIT_MS, () => refuse(`The numbers were not read within ${String(LIMIT_MS)} ms: send fewer at a time.`));
    thread.once('message', end);
    thread.once('error', () => refuse('The numbers could not be read: send fewer at a time.'));
    thread.postMessage(body);
  });
}
