import { createLogger, droppedLogLines } from '../../src/observability/log/logger.js';

// A process that logs much: tests read its standard output, or do not. Each message of the parent is one step.

const log = createLogger('flood', 'info');
const LINES = 20_000;

function count(): void {
  process.send?.({ lines: LINES, dropped: droppedLogLines() });
}

process.on('message', (step) => {
  if (step === 'flood') {
    for (let line = 0; line < LINES; line += 1) log.info({ line, padding: 'x'.repeat(200) }, 'flood.line');
    // A turn of the event loop later: the process still runs.
    setImmediate(count);
  } else if (step === 'complain') {
    // As a package does that writes to the console, and Node.js with a warning.
    console.error('complaint');
    process.emitWarning('complaint');
  } else if (step === 'count') {
    count();
  } else {
    log.info({}, 'flood.last');
    process.exit(0);
  }
});
