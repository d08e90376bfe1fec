import { parentPort, workerData } from 'node:worker_threads';
import { runMediaThread } from './media-thread.js';
import type { WorkerSettings } from './worker-messages.js';

if (parentPort === null) throw new Error('this module runs as a worker thread of the media service');
runMediaThread(parentPort, workerData as WorkerSettings);
