import { getHeapSpaceStatistics } from 'node:v8';
import { parentPort } from 'node:worker_threads';

// A thread that makes objects until V8 gives its young ones no more room, and tells how much they have.

const kept = [];
for (let index = 0; index < 4_000_000; index += 1) kept[index % 100_000] = { index };
parentPort?.postMessage(getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size);
