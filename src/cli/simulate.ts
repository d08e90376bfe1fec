import { Command, Option } from 'commander';
import { EspeakSpeech } from '../gateway/agents/speech.js';
import { webSocketDial } from '../gateway/agents/stream/dial.js';
import { VoiceDetectors } from '../gateway/media/voice-detector.js';
import { STREAM_FORMATS, type StreamFormat } from '../agent-protocol/stream-format.js';
import { callSidOf } from '../gateway/model/twilio-ids.js';
import { newUuid } from '../lib/ids.js';
import { snakeKeys } from '../lib/snake-keys.js';
import { systemClock } from '../lib/system-clock.js';
import { simulateCall, type SimulatedCallReport } from '../loadtest/simulate/simulated-call.js';
import { whole } from './command.js';

interface SimulateFlags {
  readonly calls: number;
  readonly seconds: number;
  readonly answerWithin: number;
  readonly digits: string;
  readonly say: string;
  readonly format: StreamFormat;
  readonly bearerToken?: string;
  readonly json?: true;
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

/** `trunkline simulate`: calls a bot as the gateway would, without a carrier and without a gateway. Exit code 0 only if every call went well. */
export function simulateCommand(): Command {
  return new Command('simulate')
    .description('call a bot on its WebSocket as the gateway would, without a carrier and without a gateway, and report what it did')
    .argument('<url>', 'wss:// URL of the bot, or ws:// at a private address')
    .option('--calls <n>', 'calls, all at the same time', whole(1, 100_000), 1)
    .option('--seconds <n>', 'when the caller hangs up', whole(1, 100_000), 10)
    .option('--answer-within <ms>', 'longest time from start to the first sound of the bot', whole(1, 100_000), 5_000)
    .option('--digits <keys>', 'keys to press after the sentence; "" for none', '1')
    .option('--say <text>', 'sentence of the caller', 'Hello, this is a test call. Can you hear me?')
    .addOption(new Option('--format <name>', 'format of the messages').choices(STREAM_FORMATS).default('twilio'))
    .option('--bearer-token <token>', 'sent to the bot as Authorization')
    .option('--json', 'print one JSON array')
    .action(async (url: string, flags: SimulateFlags) => {
      const [phrase, detectors] = await Promise.all([
        new EspeakSpeech().synthesize({ text: flags.say, language: 'ENG' }, []),
        VoiceDetectors.load(),
      ]);
      const script = {
        phrase,
        phraseAtMs: 2_000,
        digits: flags.digits.toUpperCase(),
        durationMs: flags.seconds * 1_000,
        answerWithinMs: flags.answerWithin,
      };
      const dependencies = {
        clock: systemClock,
        limits: LIMITS,
        dial: webSocketDial({ allowPrivate: true, caPem: null }),
        openVoiceDetector: () => detectors.open(),
      };
      const call = (): Promise<SimulatedCallReport> => {
        const settings = {
          url,
          format: flags.format,
          bearerToken: flags.bearerToken ?? null,
          signatureKey: 'simulated',
          accountSid: `AC${'0'.repeat(32)}`,
          callSid: callSidOf(newUuid()),
          customParameters: { from: '+15550100999', to: '+15550100100' },
          endOfSpeechMs: 500,
          mayPress: true,
        };
        return simulateCall(settings, script, dependencies);
      };
      const reports = await Promise.all(Array.from({ length: flags.calls }, call));
      console.log(flags.json === true ? JSON.stringify(snakeKeys(reports), null, 2) : reports.map(lines).join('\n\n'));
      if (reports.some(({ ok }) => !ok)) process.exitCode = 1;
    });
}

function lines(report: SimulatedCallReport): string {
  const { connected, connectMs, firstAudioMs, audioMs, marksSet, marksEchoed, hungUpByBotMs } = report;
  const rows: [string, string][] = [
    ['Connected', connected ? `after ${String(connectMs)} ms` : 'no'],
    ['First audio', firstAudioMs === null ? 'none' : `${String(firstAudioMs)} ms after start`],
    ['Audio', `${String(audioMs)} ms heard`],
    ['Marks', `${String(marksSet)} set, ${String(marksEchoed)} echoed`],
    ['Digits', report.botDigits === '' ? 'none sent by the bot' : report.botDigits],
    ['Requests', report.requests.length === 0 ? 'none' : report.requests.join(', ')],
    ['Hung up by', !connected ? 'nobody' : hungUpByBotMs === null ? 'the caller' : `the bot, after ${String(hungUpByBotMs)} ms`],
    ...report.errors.map((text): [string, string] => ['Error', text]),
  ];
  return [...rows.map(([name, value]) => `${name.padEnd(14)}${value}`), '', report.ok ? 'ok' : 'FAILED'].join('\n');
}
