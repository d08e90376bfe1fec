import { parentPort } from 'node:worker_threads';
import { pickResults, type PickOrder } from './pick-results.js';

parentPort?.on('message', (order: PickOrder) => parentPort?.postMessage(pickResults(order)));
