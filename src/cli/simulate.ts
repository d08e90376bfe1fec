import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { EspeakSpeech } from '../gateway/agents/speech.js';
import { webSocketDial } from '../gateway/agents/stream/dial.js';
import { VoiceDetectors } from '../gateway/media/voice-detector.js';
import { STREAM_FORMATS, type StreamFormat } from '../agent-protocol/stream-format.js';
import { snakeKeys } from '../lib/snake-keys.js';
import { systemClock } from '../lib/system-clock.js';
import { BotLine } from '../loadtest/simulate/bot-line.js';
import type { CallerLine } from '../loadtest/simulate/caller-line.js';
import { NumberLine } from '../loadtest/simulate/number-line.js';
import { parseScript, textsOf, type ScriptStep } from '../loadtest/simulate/script.js';
import { ScriptedCaller } from '../loadtest/simulate/scripted-caller.js';
import { reportText } from '../loadtest/simulate/report-text.js';
import { simulateCall, summaryOf, type SimulatedCallReport } from '../loadtest/simulate/simulated-call.js';
import { nameOwner, openApi, type ApiFlags, type ApiIo } from './api.js';
import { carrierTarget } from './call.js';
import { simulatedStream } from './simulated-stream.js';
import { CommandFailure, orFail, plain, textOf, whole } from './command.js';

interface SimulateFlags extends ApiFlags {
  readonly calls: number;
  readonly seconds: number;
  readonly answerWithin: number;
  readonly digits: string;
  readonly say: string;
  readonly script?: string;
  readonly format: StreamFormat;
  readonly bearerToken?: string;
  readonly target?: string;
  readonly ca?: string;
}

const LIMITS = {
  connectTimeoutMs: 5_000,
  reconnectGraceMs: 0,
  pingIntervalMs: 5_000,
  maxQueuedSpeechMs: 120_000,
  maxUnsentAudioMs: 2_000,
  maxSilenceMs: 15_000,
  allowPrivate: true,
  caPem: null,
};
/** The record of a call is written after its end. */
const RECORD_ATTEMPTS = 20;
const RECORD_PAUSE_MS = 200;

/** `trunkline simulate`: calls a bot as the gateway would, or a number as a carrier would. Exit code 0 only if every call went well. */
export function simulateCommand(io: ApiIo): Command {
  const command = new Command('simulate')
    .description('synthetic callers speak to an agent by a script, interrupt it and are silent; reports its delays')
    .argument(
      '<address>',
      'wss:// URL of a bot (or ws:// at a private address), which needs no gateway; or a number of the running gateway',
    )
    .option('--calls <n>', 'callers, all at the same time', whole(1, 100), 1)
    .option('--script <file>', 'YAML list of steps: say, interrupt (and after: seconds), press, silent (seconds)')
    .option('--say <text>', 'without a script: sentence of the caller', 'Hello, this is a test call. Can you hear me?')
    .option('--digits <keys>', 'without a script: keys to press after the sentence; "" for none', '1')
    .option('--seconds <n>', 'longest duration of a call', whole(1, 3_600), 60)
    .option('--answer-within <ms>', 'longest wait for the agent to speak', whole(1, 100_000), 5_000)
    .addOption(new Option('--format <name>', 'a bot: format of the messages').choices(STREAM_FORMATS).default('twilio'))
    .option('--bearer-token <token>', 'a bot: sent to it as Authorization')
    .option('--target <host:port>', 'a number: SIP address to call (default: the running gateway)')
    .option('--ca <file>', 'a number: CA certificate that verifies the gateway’s')
    .option('--api-url <url>', 'a number: control API for the transcripts; default: the running gateway')
    .option('--key <key>', 'a number: API key; TRUNKLINE_API_KEY hides it from other users of this machine')
    .option('--json', 'print JSON');
  return command.action((address: string, flags: SimulateFlags) =>
    orFail(command, async () => {
      const script = await scriptOf(flags);
      const phrases = new Map<string, Int16Array>();
      const speech = new EspeakSpeech();
      for (const text of new Set(textsOf(script))) phrases.set(text, await speech.synthesize({ text, language: 'ENG' }, []));
      const isBot = /^wss?:/i.test(address);
      const newLine = isBot ? await botLines(address, flags) : await numberLines(address, flags, io);
      const lines = Array.from({ length: flags.calls }, (_, at) => newLine(at));
      const calls = await Promise.all(
        lines.map((line) =>
          simulateCall(line, new ScriptedCaller(script, phrases, flags.answerWithin), flags.seconds * 1_000, systemClock),
        ),
      );
      const reports = isBot ? calls : await withTranscripts(calls, lines, flags, io);
      const summary = summaryOf(reports);
      io.print(flags.json === true ? JSON.stringify(snakeKeys({ summary, calls: reports }), null, 2) : plain(reportText(summary, reports)));
      if (summary.ok < summary.calls) process.exitCode = 1;
    }),
  );
}

async function scriptOf({ script: file, say, digits }: SimulateFlags): Promise<readonly ScriptStep[]> {
  if (file === undefined) return [{ say }, ...(digits === '' ? [] : [{ press: digits }])];
  const script = parseScript(await textOf(file));
  if (!script.ok) throw new CommandFailure(`${file}: ${script.error}`);
  return script.value;
}

async function botLines(url: string, { format, bearerToken }: SimulateFlags): Promise<(at: number) => CallerLine> {
  const detectors = await VoiceDetectors.load();
  const dependencies = {
    clock: systemClock,
    limits: LIMITS,
    dial: webSocketDial({ allowPrivate: true, caPem: null }),
    openVoiceDetector: () => detectors.open(),
  };
  return (at) => new BotLine(simulatedStream(url, { format, bearerToken: bearerToken ?? null, from: callerNumber(at) }), dependencies);
}

async function numberLines(number: string, flags: SimulateFlags, { config }: ApiIo): Promise<(at: number) => CallerLine> {
  const { target, called } = await carrierTarget(config, number, flags);
  return (at) => new NumberLine(target, called, callerNumber(at), systemClock);
}

const callerNumber = (at: number): string => `+15550100${String(900 + at)}`;

/** The reports with what the records of their calls tell was said. Without a key there are no transcripts. */
async function withTranscripts(
  calls: readonly SimulatedCallReport[],
  lines: readonly CallerLine[],
  flags: SimulateFlags,
  io: ApiIo,
): Promise<readonly SimulatedCallReport[]> {
  const { api } = await openApi(io, flags).catch((error: unknown) => {
    if (error instanceof CommandFailure) return { api: null };
    throw error;
  });
  if (api === null) return calls;
  await nameOwner(io, api);
  const transcriptOf = async (sipCallId: string | null): Promise<SimulatedCallReport['transcript']> => {
    for (let attempt = 0; sipCallId !== null && attempt < RECORD_ATTEMPTS; attempt += 1) {
      const { calls: found } = await api.GET('/v1/calls', { params: { query: { sip_call_id: sipCallId } } });
      const [record] = found;
      if (record !== undefined && record.state === 'ended') {
        const { call } = await api.GET('/v1/calls/{call_id}', { params: { path: { call_id: record.call_id } } });
        return call.transcript.map(({ speaker, text }) => ({ speaker, text }));
      }
      await delay(RECORD_PAUSE_MS);
    }
    return [];
  };
  return Promise.all(calls.map(async (call, at) => ({ ...call, transcript: await transcriptOf(lines[at]?.report().sipCallId ?? null) })));
}
