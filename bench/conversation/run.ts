import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import g711 from 'alawmulaw';
import type { WebSocket } from 'ws';
import { EspeakSpeech } from '../../src/gateway/agents/speech.js';
import { voicedSegments } from '../../src/loadtest/test-caller/energy.js';
import { latencyOf } from '../../src/loadtest/percentiles.js';
import { AgentSite, type AgentCall } from '../../test/support/agent/agent-site.js';
import { voiceLikeNoise } from '../../test/support/media/audio.js';
import { FakeFluxSession } from '../../test/support/provider/fake-flux.js';
import { FakeServer, startSessions } from '../../test/support/provider/fake-server.js';
import { FakeSpeech } from '../../test/support/provider/fake-speech.js';
import { lastVoicedMs } from '../support/last-voiced.js';

// How soon the text of a ConversationRelay application falls silent when the caller begins to speak, through the whole product: from the
// first packet of a word to the last packet with speech of the application. Between the words a cough and 80 ms of noise must not do it.

const CALLS = 4;
const TRIALS = 24;
const GOAL_MS = 200;
const WORDS = ['Excuse me', 'Wait', 'Hello', 'No, listen', 'Stop it', 'One moment', 'Please hold on', 'Can I ask something'];
const LONG = 'So this goes on and on until somebody has had enough of it and says so '.repeat(3);
const SILENCE = new Int16Array(8 * 900);
const NOISES: readonly Int16Array[] = [
  voiceLikeNoise(8 * 80, 5),
  Int16Array.from([...voiceLikeNoise(8 * 60, 6), ...new Int16Array(8 * 120), ...voiceLikeNoise(8 * 60, 9)]),
];

const spoken = (text: string): Buffer => Buffer.from(g711.mulaw.encode(new Int16Array(160 * text.length).fill(2_000)));
const flux = await startSessions((end, upgrade) => new FakeFluxSession(end, upgrade));
const speech = await FakeSpeech.start(({ text }) => spoken(text));
const app = await FakeServer.start((socket) => {
  const session = { socket, setup: once(socket, 'message'), interrupts: 0 };
  socket.on('message', (data: Buffer) => {
    if ((JSON.parse(data.toString()) as { type: string }).type === 'interrupt') session.interrupts += 1;
  });
  return session;
});
const site = await AgentSite.start({
  TRUNKLINE_DEEPGRAM_LISTEN_URL: `ws://127.0.0.1:${String(flux.port)}/v2/listen`,
  TRUNKLINE_DEEPGRAM_SPEECH_URL: `${speech.url}/v1/speak`,
});
const { org_id: orgId } = site.gateway.ready;
const keyFile = join(site.gateway.directory, 'key');
await writeFile(keyFile, 'key');
await site.gateway.cli('org', 'provider-key', orgId, 'deepgram', '--key-file', keyFile);
const provider = { name: 'conversation-relay', url: `ws://127.0.0.1:${String(app.port)}/`, api_key: 'app-token' };
const number = await site.numberOf({ prompt: 'x', provider });

const synthesizer = new EspeakSpeech();
const words = await Promise.all(
  WORDS.map(async (text) => {
    const samples = await synthesizer.synthesize({ text, language: 'ENG' }, []);
    const [voiced] = voicedSegments(samples, { hangoverSamples: samples.length });
    return samples.slice(voiced?.start ?? 0, voiced?.end);
  }),
);

const delays: number[] = [];
let falseAlarms = 0;
let noises = 0;

/** The text is heard. */
async function speaks(call: AgentCall, socket: WebSocket): Promise<void> {
  const { voiced } = call.end;
  socket.send(JSON.stringify({ type: 'text', token: LONG, last: true }));
  await call.end.peer.until(() => call.end.voiced > voiced + 10, 10_000);
}

async function converse(turn: number): Promise<void> {
  const before = app.sessions.all.length;
  const call = await site.invite({ number });
  await call.answered();
  call.ack();
  const session = await app.sessions.at(before, 10_000);
  const { socket } = session;
  await session.setup;
  for (let trial = 0; trial < TRIALS; trial += 1) {
    await speaks(call, socket);
    const { interrupts } = session;
    const noise = NOISES[trial % NOISES.length] ?? SILENCE;
    await call.end.peer.speak(noise);
    await call.end.peer.speak(SILENCE.subarray(0, 8 * 400));
    noises += 1;
    if (session.interrupts > interrupts) {
      falseAlarms += 1;
      continue;
    }
    const word = words[(turn + trial) % words.length] ?? SILENCE;
    const begunMs = performance.now();
    await call.end.peer.speak(word);
    await call.end.peer.speak(SILENCE);
    delays.push(lastVoicedMs(call) - begunMs);
  }
  await call.hangUp();
}

// One after the other they begin, so that each finds its own application.
const running: Promise<void>[] = [];
for (let turn = 0; turn < CALLS; turn += 1) {
  const before = app.sessions.all.length;
  running.push(converse(turn));
  await app.sessions.at(before, 10_000);
}
await Promise.all(running);
const { count, p50, p90, p99, max } = latencyOf(delays) ?? { count: 0, p50: NaN, p90: NaN, p99: NaN, max: NaN };
const isMet = p99 <= GOAL_MS && falseAlarms === 0;
console.log(
  `the caller's first word to silence: ${String(count)} times, p50 ${p50.toFixed(0)} ms, p90 ${p90.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, at most ${max.toFixed(0)} ms; goal p99 ${String(GOAL_MS)} ms`,
);
console.log(`interrupted by a cough or 80 ms of noise: ${String(falseAlarms)} of ${String(noises)}; goal 0`);
await site.stop();
await Promise.all([flux.stop(), speech.stop(), app.stop()]);
process.exitCode = isMet ? 0 : 1;
