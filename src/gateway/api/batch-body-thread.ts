import { parentPort } from 'node:worker_threads';
import { yieldToCalls } from '../../lib/thread-priority.js';
import { readBatchText, type BatchText } from './batch-body.js';

// Reads one body; its parent ends it.

yieldToCalls();
parentPort?.on('message', (body: BatchText) => void answer(body));

async function answer(body: BatchText): Promise<void> {
  parentPort?.postMessage(await readBatchText(body));
}
