import { parentPort } from 'node:worker_threads';
import { yieldToCalls } from '../../lib/thread-priority.js';
import { pickResults, type PickOrder } from './pick-results.js';

yieldToCalls();
parentPort?.on('message', (order: PickOrder) => parentPort?.postMessage(pickResults(order)));
