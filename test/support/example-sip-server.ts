import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** Runs docs/examples/sip-server.mjs (or a copy of it) on a free port; SIPp's own caller calls it once. Resolves with what it printed. */
export async function callExampleSipServer(file: string): Promise<string[]> {
  const example = spawn(process.execPath, [file, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = createInterface({ input: example.stdout });
  const printed: string[] = [];
  try {
    const [called] = (await once(output, 'line')) as [string];
    printed.push(called);
    const target = /^Call sip:anyone@(127\.0\.0\.1:\d+)$/.exec(called)?.[1] ?? 'no address';
    const hungUp = once(output, 'line') as Promise<[string]>;
    await promisify(execFile)('sipp', ['-sn', 'uac', target, '-i', '127.0.0.1', '-m', '1', '-nostdin', '-timeout', '110']);
    printed.push((await hungUp)[0]);
    return printed;
  } finally {
    example.kill();
  }
}
