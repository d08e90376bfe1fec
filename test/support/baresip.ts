import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, freeRange } from './ports.js';
import { HANG_GUARD_MS } from './hang-guard.js';

/** One event that baresip told, for example `CALL_ESTABLISHED`. */
export interface BaresipEvent {
  readonly type: string;
  readonly param: string;
}

export interface BaresipOptions {
  readonly caFile: string;
  readonly codec: 'PCMU' | 'PCMA';
  /** It can be called; left out: it calls. */
  readonly called?: {
    /** Of `sip:user@`. */
    readonly user: string;
    /** Certificate and key, PEM. */
    readonly certificate: string;
  };
}

const MODULES = '/usr/lib/baresip/modules';
const WAV_HEADER_BYTES = 44;
const TONE_SECONDS = 30;

/**
 * Debian's baresip: an independent SIP client with SRTP, with a tone as its microphone and a WAV file as its loudspeaker.
 * It checks no certificate: libre 1.1.0 has no verification for SIP (baresip issue 1122), whatever `sip_cafile` says.
 */
export class Baresip {
  readonly #events: BaresipEvent[] = [];
  readonly #waiters = new Set<() => void>();
  #output = '';
  #pending = Buffer.alloc(0);

  private constructor(
    private readonly directory: string,
    private readonly child: ChildProcess,
    private readonly control: Socket,
    /** Where it can be called over TLS; 0: it cannot. */
    readonly tlsPort: number,
  ) {
    const read = (chunk: Buffer): void => void (this.#output += chunk.toString());
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    control.on('data', (chunk: Buffer) => this.#onData(chunk));
  }

  static async start(options: BaresipOptions): Promise<Baresip> {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-baresip-'));
    const { called } = options;
    const [port] = await freePorts(1);
    // It listens for TLS one port above the one for UDP and TCP.
    const tlsPort = called === undefined ? 0 : 1 + (await freeRange(2));
    if (called !== undefined) await writeFile(join(directory, 'certificate.pem'), called.certificate);
    await writeFile(join(directory, 'config'), configuration(directory, port!, tlsPort, options));
    await writeFile(
      join(directory, 'accounts'),
      `<sip:${called?.user ?? 'carrier'}@127.0.0.1;transport=tls>;mediaenc=srtp-mand;regint=0;audio_codecs=${options.codec}/8000/1\n`,
    );
    await writeFile(join(directory, 'tone.wav'), toneFile());
    const child = spawn('baresip', ['-f', directory], { stdio: ['ignore', 'pipe', 'pipe'] });
    return new Baresip(directory, child, await connected(port!, child), tlsPort);
  }

  /** What it said and every event, for a failed test's message. */
  get transcript(): string {
    return `${this.#events.map(({ type, param }) => `${type} ${param}`).join('\n')}\n${this.#output}`;
  }

  dial(uri: string): void {
    this.#command('dial', uri);
  }

  /** Presses one key: RFC 4733 events. */
  press(key: string): void {
    this.#command('sndcode', key);
  }

  /** Answers the call that comes in. */
  accept(): void {
    this.#command('accept', '');
  }

  /** Of a call that rings: 486. */
  hangUp(): void {
    this.#command('hangup', '');
  }

  /** The first event of this type; it may have come already. */
  event(type: string): Promise<BaresipEvent> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.#events.find((event) => event.type === type);
        if (found === undefined) return;
        clearTimeout(timer);
        this.#waiters.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#waiters.delete(look);
        reject(new Error(`no ${type} within ${String(HANG_GUARD_MS)} ms:\n${this.transcript}`));
      }, HANG_GUARD_MS);
      this.#waiters.add(look);
      look();
    });
  }

  /** What it has heard so far, decrypted and decoded: 8,000 samples a second. Empty before the call. */
  async heard(): Promise<Int16Array> {
    const file = (await readdir(this.directory)).find((name) => name.endsWith('-dec.wav'));
    if (file === undefined) return new Int16Array(0);
    const bytes = await readFile(join(this.directory, file));
    const samples = Math.max(0, Math.floor((bytes.length - WAV_HEADER_BYTES) / 2));
    return Int16Array.from({ length: samples }, (_, index) => bytes.readInt16LE(WAV_HEADER_BYTES + 2 * index));
  }

  /** Ends it and removes its directory. */
  async stop(): Promise<void> {
    const gone = this.child.exitCode === null ? once(this.child, 'exit') : Promise.resolve();
    this.control.destroy();
    this.child.kill('SIGTERM');
    await gone;
    await rm(this.directory, { recursive: true, force: true });
  }

  #command(command: string, params: string): void {
    const text = JSON.stringify({ command, params });
    this.control.write(`${String(Buffer.byteLength(text))}:${text},`);
  }

  /** Netstrings: `<length>:<JSON>,`. */
  #onData(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const colon = this.#pending.indexOf(':');
      const end = colon + 1 + Number(this.#pending.toString('latin1', 0, Math.max(colon, 0)));
      if (colon < 0 || this.#pending.length <= end) return;
      const message = JSON.parse(this.#pending.toString('utf8', colon + 1, end)) as { event?: boolean; type?: string; param?: string };
      this.#pending = this.#pending.subarray(end + 1);
      if (message.event === true) this.#events.push({ type: message.type ?? '', param: message.param ?? '' });
      for (const look of [...this.#waiters]) look();
    }
  }
}

function configuration(directory: string, controlPort: number, tlsPort: number, { caFile, called }: BaresipOptions): string {
  return [
    'poll_method epoll',
    `sip_listen 127.0.0.1:${String(tlsPort === 0 ? 0 : tlsPort - 1)}`,
    ...(called === undefined ? [] : [`sip_certificate ${join(directory, 'certificate.pem')}`]),
    `sip_cafile ${caFile}`,
    `net_interface 127.0.0.1`,
    'rtp_ports 32000-32399',
    'rtcp_mux no',
    'jitter_buffer_delay 5-10',
    'call_max_calls 4',
    `audio_source aufile,${join(directory, 'tone.wav')}`,
    'audio_player aubridge,nowhere',
    'audio_alert aubridge,nowhere',
    'ausrc_srate 8000',
    'auplay_srate 8000',
    'ausrc_channels 1',
    'auplay_channels 1',
    `snd_path ${directory}`,
    `module_path ${MODULES}`,
    ...['g711', 'srtp', 'aufile', 'aubridge', 'sndfile'].map((name) => `module ${name}.so`),
    'module_tmp account.so',
    'module_app menu.so',
    'module_app ctrl_tcp.so',
    `ctrl_tcp_listen 127.0.0.1:${String(controlPort)}`,
    '',
  ].join('\n');
}

/** 440 Hz, 16 bit, mono. */
function toneFile(): Buffer {
  const samples = 8_000 * TONE_SECONDS;
  const file = Buffer.alloc(WAV_HEADER_BYTES + 2 * samples);
  file.write('RIFF', 0);
  file.writeUInt32LE(file.length - 8, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(8_000, 24);
  file.writeUInt32LE(16_000, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36);
  file.writeUInt32LE(2 * samples, 40);
  for (let n = 0; n < samples; n += 1) {
    file.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * 440 * n) / 8_000)), WAV_HEADER_BYTES + 2 * n);
  }
  return file;
}

/** The control connection: it is taken as soon as baresip has read its configuration. */
async function connected(port: number, child: ChildProcess): Promise<Socket> {
  let said = '';
  const read = (chunk: Buffer): void => void (said += chunk.toString());
  child.stdout?.on('data', read);
  child.stderr?.on('data', read);
  for (;;) {
    if (child.exitCode !== null) throw new Error(`baresip ended with ${String(child.exitCode)}:\n${said}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    if (isOpen) {
      child.stdout?.off('data', read);
      child.stderr?.off('data', read);
      return socket;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
