import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const FLOOD = fileURLToPath(new URL('../../support/log-flood.ts', import.meta.url));

interface Flooded {
  readonly lines: number;
  readonly dropped: number;
}

let child: ChildProcess | undefined;
afterEach(() => child?.kill('SIGKILL'));

/** A process that has logged more than its pipe and its memory for lines hold, while nobody read. */
async function flooded(): Promise<{ readonly flood: ChildProcess; readonly sent: Flooded }> {
  const flood = spawn(process.execPath, ['--import', 'tsx', FLOOD], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  child = flood;
  flood.send('flood');
  const [sent] = (await once(flood, 'message')) as [Flooded];
  return { flood, sent };
}

it('a full disk ends no process, however much it logs: its lines are dropped and counted', async () => {
  const full = openSync('/dev/full', 'w');
  const flood = spawn(process.execPath, ['--import', 'tsx', FLOOD], { stdio: ['ignore', full, full, 'ipc'] });
  closeSync(full);
  child = flood;
  flood.send('complain');
  flood.send('flood');
  const [sent] = (await once(flood, 'message')) as [Flooded];
  expect(sent.dropped).toBeGreaterThan(10_000);
  flood.send('end');
  expect(await once(flood, 'exit')).toEqual([0, null]);
});

describe('a log pipe that nobody reads', () => {
  it('blocks neither the process nor its exit; lines beyond 1 MiB are dropped and counted', async () => {
    const { flood, sent } = await flooded();
    expect(sent.dropped).toBeGreaterThan(10_000);
    flood.send('end');
    expect(await once(flood, 'exit')).toEqual([0, null]);
  });

  it('delivers whole lines when it is read again, and the number of missing ones', async () => {
    const { flood } = await flooded();
    const read = text(flood.stdout as NonNullable<typeof flood.stdout>);
    // Until it has told that it caught up, there is no line to be last.
    const missing = await new Promise<number>((resolve) => {
      let seen = '';
      flood.stdout?.on('data', (chunk: Buffer) => {
        seen += chunk.toString();
        const found = /"lines":(\d+),"msg":"log\.lines_dropped"/.exec(seen);
        if (found !== null) resolve(Number(found[1]));
      });
    });
    // The last lines of the flood were still being gathered when it ended.
    flood.send('count');
    const [sent] = (await once(flood, 'message')) as [Flooded];
    flood.send('end');
    const lines = (await read)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { msg: string });
    expect(missing).toBe(sent.dropped);
    expect(lines.filter(({ msg }) => msg === 'flood.line')).toHaveLength(sent.lines - sent.dropped);
    expect(lines.at(-1)?.msg).toBe('flood.last');
  });
});
