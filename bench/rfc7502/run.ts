import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { errorText } from '../../src/lib/result.js';
import type { StageFigures } from '../../src/loadtest/figures.js';
import type { Subject } from '../gateway/subject.js';
import { lossPercent } from '../../src/loadtest/verdict.js';
import { productSubject } from '../gateway/product.js';
import { kamailioSubject } from '../kamailio/start.js';
import { loadStage } from '../support/load-stage.js';
import { RFC_PARAMETERS, sessionEstablishmentRate, type SearchParameters } from './search.js';

// RFC 7502: the rate at which a device establishes sessions, for Trunkline and for Kamailio. The emulated agent is SIPp over TLS, with
// the media generator of `trunkline load` where sessions have media. Prints the report of RFC 7502 §5 as Markdown.

const { values } = parseArgs({
  options: {
    /** trunkline, kamailio */
    subjects: { type: 'string', default: 'trunkline,kamailio' },
    /** tls (§6.5, no media), media (§6.4 over TLS: media through the device) */
    cases: { type: 'string', default: 'tls,media' },
    /** t and T of RFC 7502 §4.10; those of sessions with media are a tenth */
    attempts: { type: 'string', default: String(RFC_PARAMETERS.localAttempts) },
    'all-attempts': { type: 'string', default: String(RFC_PARAMETERS.globalAttempts) },
    /** Session duration of sessions with media, in seconds */
    duration: { type: 'string', default: '5' },
  },
});

interface Case {
  readonly name: string;
  readonly section: string;
  readonly hasMedia: boolean;
  readonly holdMs: number;
  readonly parameters: SearchParameters;
}

const own = { ...RFC_PARAMETERS, localAttempts: Number(values.attempts), globalAttempts: Number(values['all-attempts']) };
const CASES: Readonly<Record<string, Case>> = {
  tls: { name: 'TLS, no media', section: '6.5', hasMedia: false, holdMs: 0, parameters: own },
  media: {
    name: 'TLS, media through the device',
    section: '6.4 and 6.5',
    hasMedia: true,
    holdMs: Number(values.duration) * 1_000,
    parameters: { ...own, firstRate: 20, granularity: 2, localAttempts: own.localAttempts / 10, globalAttempts: own.globalAttempts / 10 },
  },
};
const SUBJECTS: Readonly<Record<string, () => Promise<Subject>>> = {
  Trunkline: () => productSubject({}, { firstSentence: 'Hello.' }),
  Kamailio: () => kamailioSubject(),
};
/** Longer than this a session counts as not established. */
const ESTABLISHMENT_THRESHOLD_MS = 5_000;
/** A trial has more attempts than t or T where those would be over sooner. */
const LEAST_SECONDS = 10;
/** More is heard. */
const MAX_LOSS_PERCENT = 1;
/** Below this share of the rate it was not the device that was tried. */
const KEPT_RATE = 0.95;

function trial(subject: Subject, caFile: string, { holdMs, hasMedia }: Case, cps: number, calls: number): Promise<StageFigures> {
  return loadStage(subject, caFile, { cps, calls, holdMs, hasMedia, setupTimeoutMs: ESTABLISHMENT_THRESHOLD_MS });
}

interface Found {
  readonly rate: number;
  readonly latency: StageFigures['latency'];
  /** The first trial above it that failed, and why. */
  readonly limit: string;
}

async function find(name: string, tried: Case): Promise<Found> {
  const start = SUBJECTS[name] as () => Promise<Subject>;
  let subject = await start();
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-rfc7502-'));
  const caFile = join(directory, 'ca.pem');
  await writeFile(caFile, subject.target.ca ?? '');
  let last: StageFigures | undefined;
  let limit = '-';
  /** Its code is compiled as it runs: a device that started a second ago is another one. */
  const warmUp = (): Promise<unknown> =>
    trial(subject, caFile, tried, tried.parameters.firstRate, tried.parameters.firstRate * LEAST_SECONDS);
  /** What a failure left behind must not count against the next trial: that gets a new device. */
  const failed = async (cps: number, attempts: number, why: string): Promise<false> => {
    console.error(`  ${name}, ${tried.name}: ${String(cps)}/s, ${String(attempts)} attempts: ${why}`);
    limit = `${String(cps)}/s: ${why}`;
    await subject.close();
    subject = await start();
    await writeFile(caFile, subject.target.ca ?? '');
    await warmUp();
    return false;
  };
  try {
    await warmUp();
    const rate = await sessionEstablishmentRate(async (cps, least) => {
      // A burst that is over in a second is established late, but established.
      const attempts = Math.max(least, cps * LEAST_SECONDS);
      const stage = await trial(subject, caFile, tried, cps, attempts).catch((error: unknown) => errorText(error));
      if (typeof stage === 'string') return failed(cps, attempts, stage);
      const why = failureOf(stage, cps, attempts);
      if (why !== null) return failed(cps, attempts, why);
      console.error(`  ${name}, ${tried.name}: ${String(cps)}/s, ${String(attempts)} attempts: all succeeded${heardText(stage)}`);
      last = stage;
      return true;
    }, tried.parameters);
    return { rate, latency: last?.latency ?? null, limit };
  } finally {
    await subject.close();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Why a trial has failed; `null`: it has not. The RFC looks at signalling only: that media comes back is ours. */
function failureOf(stage: StageFigures, cps: number, attempts: number): string | null {
  if (stage.callsPerSecond < KEPT_RATE * cps) return 'the generator did not keep the rate';
  if (stage.failed > 0 || stage.successful < attempts)
    return `${String(attempts - stage.successful)} of ${String(attempts)} failed (${causes(stage)})`;
  const { media } = stage;
  if (media === null) return null;
  const isWhole = media.tone.heard === attempts && lossPercent(media.packets) <= MAX_LOSS_PERCENT;
  return isWhole ? null : `media was lost${heardText(stage)}`;
}

function heardText({ media }: StageFigures): string {
  if (media === null) return '';
  const { tone, packets, delayMs } = media;
  return `; own tone back in ${String(tone.heard)}, ${lossPercent(packets).toFixed(2)} % of packets lost, there and back p99 ${(delayMs?.p99 ?? Number.NaN).toFixed(0)} ms`;
}

function causes({ failures }: StageFigures): string {
  return failures.map(({ code, reason, count }) => `${String(count)} ${reason ?? code}`).join(', ');
}

function report(tried: Case, found: ReadonlyMap<string, Found>): string {
  const { parameters: p } = tried;
  const setup: [string, string][] = [
    ['SIP transport protocol', 'TLS over TCP'],
    ['TLS cipher suite', 'what the device chooses of TLS 1.3'],
    ['IPsec profile', '-'],
    ['Session attempt rate', 'searched (RFC 7502 §4.10)'],
    ['Session duration', `${String(tried.holdMs / 1_000)} s`],
    ['Warm-up', `${String(LEAST_SECONDS)} s at the first rate, not counted`],
    [
      'Session attempts',
      `${String(p.localAttempts)} a trial (t), ${String(p.globalAttempts)} at the result (T), each trial at least ${String(LEAST_SECONDS)} s`,
    ],
    ['First rate, granularity, calibration', `${String(p.firstRate)}/s (s), ${String(p.granularity)}/s (G), ${String(p.calibration)} (C)`],
    ['Media streams a session', tried.hasMedia ? '1, both ways' : '0'],
    ['Media protocol', tried.hasMedia ? 'SRTP, AES_CM_128_HMAC_SHA1_80' : '-'],
    ['Codec, media packet', tried.hasMedia ? 'G.711, 160 bytes each 20 ms' : '-'],
    ['Establishment threshold time', `${String(ESTABLISHMENT_THRESHOLD_MS / 1_000)} s`],
    ['Loop detection, forking', 'on, none'],
  ];
  const ms = (value: number | undefined): string => (value === undefined ? '-' : `${value.toFixed(1)} ms`);
  const names = [...found.keys()];
  const row = (title: string, of: (one: Found) => string): string => `| ${title} | ${[...found.values()].map(of).join(' | ')} |`;
  return [
    `### ${tried.name} (§${tried.section})`,
    '',
    '| Test set-up | |',
    '|---|---|',
    ...setup.map(([title, value]) => `| ${title} | ${value} |`),
    '',
    `| Benchmark | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---|').join('')}`,
    row('Session establishment rate', ({ rate }) => `**${String(rate)}/s**`),
    row('INVITE to 200 at that rate, p50', ({ latency }) => ms(latency?.p50)),
    row('INVITE to 200 at that rate, p99', ({ latency }) => ms(latency?.p99)),
    row('Lowest rate that failed', ({ limit }) => limit),
    row('Is the device a media relay', () => (tried.hasMedia ? 'yes' : 'yes, unused')),
    '',
  ].join('\n');
}

const names = Object.keys(SUBJECTS).filter((name) => values.subjects.split(',').includes(name.toLowerCase()));
const reports: string[] = [];
for (const tried of values.cases.split(',').map((name) => CASES[name])) {
  if (tried === undefined) throw new Error('--cases takes tls and media');
  const found = new Map<string, Found>();
  for (const name of names) found.set(name, await find(name, tried));
  reports.push(report(tried, found));
}
console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; generator, devices, Redis and rtpengine on them\n`,
);
console.log(reports.join('\n'));
