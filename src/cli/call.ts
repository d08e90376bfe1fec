import { splitHostPort } from '../lib/address.js';
import { snakeKeys } from '../lib/snake-keys.js';
import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError } from 'commander';
import { formatReport } from '../loadtest/test-caller/call-report.js';
import type { Config } from '../config/schema.js';
import type { CarrierTarget } from '../loadtest/test-caller/sip-client.js';
import { systemClock } from '../lib/system-clock.js';
import { number } from './command.js';
import { runningGateway } from './ready.js';

interface CallFlags {
  readonly digits?: string;
  readonly bot?: boolean;
  readonly seconds: number;
  readonly json?: true;
  readonly target?: string;
  readonly ca?: string;
  readonly from: string;
  readonly language: string;
  readonly codec?: 'PCMU' | 'PCMA';
}

/** `trunkline call`: a test carrier calls the running gateway. Exit code 0 only if every check passed. */
export function callCommand(config: () => Config): Command {
  return new Command('call')
    .description('place a test call to the running gateway as a carrier (TLS, SRTP, DTMF) and report the result')
    .argument('[number]', "number to call (default: the running gateway's demo number)")
    .option('--digits <keys>', 'DTMF digits to send; the test line reads them back, and hangs up on # (default: "123#"; for a bot: none)')
    .option('--seconds <n>', 'longest duration of the call', number(1, 3_600), 30)
    .option('--json', 'print one JSON object')
    .option('--target <host:port>', 'SIP address to call (default: the running gateway)')
    .option('--ca <file>', 'CA certificate that verifies the gateway’s')
    .option('--from <number>', 'caller number', '+15550100999')
    .option('--language <code>', 'language of the test line', 'ENG')
    .option(
      '--bot',
      'expect a bot, not the test line: speak, send the digits if given, listen until the time is over (default: detected, unless --digits has keys besides #)',
    )
    .option('--codec <name>', 'offer only PCMU or only PCMA', codecName)
    .action(async (number: string | undefined, flags: CallFlags) => {
      const { target, called } = await carrierTarget(config, number, flags);
      const { placeTestCall } = await import('../loadtest/test-caller/test-call.js');
      const report = await placeTestCall(
        {
          target,
          called,
          caller: flags.from,
          digits: flags.digits?.toUpperCase() ?? null,
          isBot: isBotOf(flags),
          seconds: flags.seconds,
          language: flags.language,
          codecs: flags.codec === undefined ? ['PCMU', 'PCMA'] : [flags.codec],
        },
        systemClock,
      );
      // `npm run call --json`, without `--` before it, ends up in npm's own environment.
      const isJson = flags.json === true || process.env['npm_config_json'] === 'true';
      console.log(isJson ? JSON.stringify(snakeKeys(report), null, 2) : formatReport(report));
      if (!report.ok) process.exitCode = 1;
    });
}

/** Whether a bot answers; `null`: it is found out. Who names keys expects the test line to read them back; `#` alone ends a bot's call, too. */
export function isBotOf({ bot, digits }: Pick<CallFlags, 'bot' | 'digits'>): boolean | null {
  return bot ?? (digits === undefined || /^#*$/.test(digits) ? null : false);
}

/** Whom a test carrier calls. Throws when something is missing. */
export async function carrierTarget(
  config: () => Pick<Config, 'data_dir'>,
  number: string | undefined,
  flags: { readonly target?: string; readonly ca?: string },
): Promise<{ readonly target: CarrierTarget; readonly called: string }> {
  const ready =
    flags.target === undefined || number === undefined ? await runningGateway(config(), 'give both, [number] and --target') : null;
  const address = flags.target ?? ready?.sip.tls;
  const called = number ?? ready?.phone_number;
  if (address === undefined || called == null) throw new Error('no number or no SIP address to call: give both, [number] and --target');
  const caFile = flags.ca ?? (flags.target === undefined ? ready?.ca_file : undefined);
  const certificateName = flags.target === undefined ? ready?.sip.certificate_name : undefined;
  const target = { ...splitHostPort(address), ca: caFile == null ? null : await readFile(caFile, 'utf8') };
  return { target: certificateName === undefined ? target : { ...target, certificateName }, called };
}

function codecName(text: string): 'PCMU' | 'PCMA' {
  const name = text.toUpperCase();
  if (name !== 'PCMU' && name !== 'PCMA') throw new InvalidArgumentError('must be PCMU or PCMA');
  return name;
}
