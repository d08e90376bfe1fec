import { setTimeout as pause } from 'node:timers/promises';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { latencyOf } from '../../src/loadtest/percentiles.js';
import { AgentSite, type AgentCall } from '../../test/support/agent/agent-site.js';
import { FakeDeepgramSession } from '../../test/support/provider/fake-deepgram.js';
import { startSessions } from '../../test/support/provider/fake-server.js';
import { startFakeOpenAi } from '../../test/support/provider/openai-server.js';
import { lastVoicedMs } from '../support/last-voiced.js';

// How soon an agent at a provider falls silent when the provider says that the caller speaks, through the whole product: from the provider's
// event to the last packet of the old utterance at the caller. All of the utterance was sent at once, and more of it follows the event.

const CALLS = 4;
const TRIALS = 50;
const GOAL_MS = 40;
const UTTERANCE = Buffer.alloc(8 * 4_000, 0x20);
const REST = Buffer.alloc(8 * 500, 0x21);

interface Talker {
  /** An utterance begins; all of it is sent. */
  say(): void;
  /** The caller speaks: then more of the utterance comes. */
  interrupt(): void;
  /** The caller's words are over. */
  goOn(): void;
}

const openAi = await startFakeOpenAi();
const deepgram = await startSessions((end, upgrade) => new FakeDeepgramSession(end, upgrade));

const PROVIDERS = {
  'openai-realtime': {
    url: `ws://127.0.0.1:${String(openAi.port)}/v1/realtime`,
    open: async (at: number): Promise<Talker> => {
      const session = await openAi.sessions.at(at, 10_000);
      let response = '';
      let item = '';
      return {
        say: () => {
          response = session.begin();
          item = session.item(response);
          session.say(response, item, UTTERANCE, 'So this goes on and on.');
        },
        interrupt: () => {
          session.callerSpeaks();
          session.say(response, item, REST, 'So this goes on and on.');
        },
        goOn: () => session.done(response, 'cancelled'),
      };
    },
    sessions: () => openAi.sessions.all.length,
  },
  deepgram: {
    url: `ws://127.0.0.1:${String(deepgram.port)}/v1/agent/converse`,
    open: async (at: number): Promise<Talker> => {
      const session = await deepgram.sessions.at(at, 10_000);
      return {
        say: () => {
          session.text('So this goes on and on.');
          session.say(UTTERANCE);
        },
        interrupt: () => {
          session.callerSpeaks();
          session.say(REST);
        },
        goOn: () => session.callerSaid('Stop.'),
      };
    },
    sessions: () => deepgram.sessions.all.length,
  },
} as const;

const site = await AgentSite.start();
const { org_id: orgId } = site.gateway.ready;
const keyFile = join(site.gateway.directory, 'key');
await writeFile(keyFile, 'key');

async function converse(call: AgentCall, talker: Talker): Promise<number[]> {
  const delays: number[] = [];
  for (let trial = 0; trial < TRIALS; trial += 1) {
    const { voiced } = call.end;
    talker.say();
    await call.end.peer.until(() => call.end.voiced > voiced + 10, 10_000);
    // Anywhere within a frame.
    await pause(Math.random() * 20);
    const atMs = performance.now();
    talker.interrupt();
    await pause(300);
    delays.push(Math.max(0, lastVoicedMs(call) - atMs));
    talker.goOn();
    await pause(50);
  }
  await call.hangUp();
  return delays;
}

let isMet = true;
for (const [name, { url, open, sessions }] of Object.entries(PROVIDERS)) {
  await site.gateway.cli('org', 'provider-key', orgId, name, '--key-file', keyFile);
  const number = await site.numberOf({ prompt: 'x', provider: { name, url, api_key: 'key' }, wait_for_greeting: true });
  const running: Promise<number[]>[] = [];
  for (let turn = 0; turn < CALLS; turn += 1) {
    const at = sessions();
    const call = await site.invite({ number });
    await call.answered();
    call.ack();
    running.push(converse(call, await open(at)));
  }
  const figures = latencyOf((await Promise.all(running)).flat());
  if (figures === null) throw new Error('nothing was measured');
  const { count, p50, p90, p99, max } = figures;
  isMet &&= p99 <= GOAL_MS;
  console.log(
    `${name}: from the provider's event to silence ${String(count)} times, p50 ${p50.toFixed(0)} ms, p90 ${p90.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, at most ${max.toFixed(0)} ms; goal p99 ${String(GOAL_MS)} ms`,
  );
}
await site.stop();
await Promise.all([openAi.stop(), deepgram.stop()]);
process.exitCode = isMet ? 0 : 1;
