// Sessions of the native addon that come and go in several threads, each with packets of its own. Plain JavaScript, so that a thread needs
// no loader; a program of its own too (`node …/native-stress.mjs ADDON`), at whose exit the leak sanitizer looks.
import { createRequire } from 'node:module';
import { argv } from 'node:process';
import { fileURLToPath, URL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** The packets that came through a thread whole. */
function stress({ addon, seed, sessions, packets }) {
  const { SrtpSession } = createRequire(import.meta.url)(addon);
  let state = seed;
  const random = (below) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
  const open = [];
  let good = 0;
  for (let serial = 0; serial < sessions; serial += 1) {
    const key = Uint8Array.from({ length: 30 }, (_, i) => (i * 7 + serial + seed) & 0xff);
    open.push({ sender: new SrtpSession(key, false), receiver: new SrtpSession(key, true), sequence: random(65536), left: packets });
    while (open.length > 32 || (serial === sessions - 1 && open.length > 0)) {
      const at = random(open.length);
      const call = open[at];
      // Two packets a batch, at places that are no multiple of four.
      const buffer = new Uint8Array(500).fill(serial);
      const table = Int32Array.of(1, 172, 200, 251, 92, 120);
      for (const offset of [1, 251]) {
        buffer.set([0x80, 0, call.sequence >> 8, call.sequence & 0xff], offset);
        call.sequence = (call.sequence + 1) & 0xffff;
      }
      const before = buffer.slice();
      const failed = call.sender.transform(0, buffer, table) + call.receiver.transform(1, buffer, table);
      const isSame = [...table].join() === '1,172,200,251,92,120' && buffer.subarray(1, 173).every((byte, i) => byte === before[1 + i]);
      if (failed === 0 && isSame) good += 2;
      call.left -= 2;
      if (call.left > 0) continue;
      open.splice(at, 1);
      call.sender.close();
      // The other half is left to the garbage collector.
      if (serial % 2 === 0) call.receiver.close();
    }
  }
  return good;
}

/** Rejects when a thread fails. */
export function stressInThreads(addon, threads, sessions, packets) {
  return Promise.all(
    Array.from({ length: threads }, (_, thread) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { addon, seed: thread + 1, sessions, packets } });
      return new Promise((done, failed) => {
        worker.once('message', done);
        worker.once('error', failed);
      });
    }),
  );
}

const isThread = !isMainThread && workerData?.addon !== undefined;
if (isThread) parentPort?.postMessage(stress(workerData));
else if (argv[1] === fileURLToPath(import.meta.url)) await stressInThreads(argv[2] ?? '', 4, 100, 20);
