import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunningGateway } from '../../test/support/gateway.js';
import { HandMadeCall } from '../../test/support/hand-made-call.js';
import { offerSdp } from '../../test/support/sdp.js';
import { SipPeer } from '../../test/support/sip-peer.js';

// `npm run way`: the files of ours that one call crosses from the INVITE's first byte to the 200, and one that is cancelled, by process.
// The gateway is warm: two calls came before, the second with the SIP server's question about the gateway's delay. What timers do
// meanwhile counts too, so what runs in an idle stretch is taken off.

interface Reading {
  readonly name: string;
  readonly files: readonly { readonly file: string; readonly functions: readonly string[] }[];
}

/** Length of a period without calls. */
const IDLE_MS = 1_500;
const THREADS = 3;

const directory = mkdtempSync(join(tmpdir(), 'trunkline-way-'));
const hook = fileURLToPath(new URL('./hook.mjs', import.meta.url));
const gateway = await RunningGateway.start({
  NODE_OPTIONS: `--import=${hook}`,
  WAY_DIR: directory,
  // Then the program runs file by file, not as the bundle.
  NODE_V8_COVERAGE: join(directory, 'coverage'),
  TRUNKLINE_MEDIA_WORKERS: '1',
});
try {
  const peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
  for (let call = 0; call < 2; call += 1) {
    const warm = new HandMadeCall(peer, gateway.ready.phone_number);
    await warm.request('BYE', await warm.answered(offerSdp()));
  }
  await sleep(IDLE_MS);
  await mark('begin');
  await sleep(IDLE_MS);
  const idle = await mark('idle');

  const answered = new HandMadeCall(peer, gateway.ready.phone_number);
  await mark('call-ready');
  answered.invite(offerSdp());
  const ok = await answered.final();
  if (ok.status !== 200) throw new Error(`the call got ${String(ok.status)}`);
  const call = await mark('call');
  answered.ack(ok);
  await answered.request('BYE', ok);
  await sleep(IDLE_MS);

  const cancelled = new HandMadeCall(peer, gateway.ready.phone_number);
  await mark('cancel-ready');
  cancelled.invite(offerSdp());
  cancelled.cancel();
  const refused = await cancelled.final();
  if (refused.status !== 487) throw new Error(`the cancelled call got ${String(refused.status)}: try again`);
  const cancel = await mark('cancel');
  print('INVITE to 200', call, idle);
  print('INVITE and CANCEL to 487', cancel, idle);
} finally {
  await gateway.destroy();
  rmSync(directory, { recursive: true, force: true });
}

/** What ran in every thread since the mark before. */
async function mark(name: string): Promise<readonly Reading[]> {
  writeFileSync(join(directory, 'marks', name), '');
  const answers = (): string[] => readdirSync(directory).filter((file) => file.startsWith(`${name}.`) && file.endsWith('.json'));
  const deadline = Date.now() + 5_000;
  while (answers().length < THREADS && Date.now() < deadline) await sleep(20);
  await sleep(50);
  return answers().map((file) => JSON.parse(readFileSync(join(directory, file), 'utf8')) as Reading);
}

function print(title: string, readings: readonly Reading[], idle: readonly Reading[]): void {
  const ours = readings.map(({ name, files }) => ({
    name,
    files: files
      .map(({ file, functions }) => ({ file, functions: functions.filter((one) => !idleOf(idle, name, file).includes(one)) }))
      .filter(({ functions }) => functions.length > 0),
  }));
  const crossed = ours.filter(({ files }) => files.length > 0);
  const total = crossed.reduce((sum, { files }) => sum + files.length, 0);
  console.log(`\n${title}: ${String(total)} files`);
  for (const { name, files } of crossed) {
    console.log(`\n  ${name}: ${String(files.length)} files`);
    for (const { file, functions } of files) console.log(`    ${file}: ${functions.join(', ')}`);
  }
}

function idleOf(idle: readonly Reading[], name: string, file: string): readonly string[] {
  return idle
    .filter((reading) => reading.name === name)
    .flatMap(({ files }) => files.flatMap((one) => (one.file === file ? one.functions : [])));
}
