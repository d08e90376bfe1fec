import { parentPort } from 'node:worker_threads';
import { yieldToCalls } from '../../lib/thread-priority.js';
import { decodedAudio } from './decode-audio-file.js';

// Decodes one file; its parent ends it.

yieldToCalls();
// oxlint-disable-next-line no-console -- the decoder prints each error of a file, and a hostile file has as many as it has bytes
console.error = () => undefined;
// The listener keeps the event loop alive while WebAssembly is compiled. A thread whose loop is empty waits for V8's own threads, and these
// may wait for it (nodejs/node#54918): it would decode nothing, and never end.
parentPort?.on('message', (bytes: Uint8Array) => void answer(bytes));

async function answer(bytes: Uint8Array): Promise<void> {
  const answered = await decodedAudio(bytes);
  parentPort?.postMessage(answered, 'samples' in answered ? [answered.samples.buffer as ArrayBuffer] : []);
}
