import { REASONS, type ReasonFacts } from '../../src/gateway/model/reasons.js';
import { table } from './table.js';

/** The reason table of src/gateway/model/reasons.ts. */
export function reasonTable(): string {
  const all: readonly [string, ReasonFacts][] = Object.entries(REASONS);
  const refusals = all.filter(([, facts]) => facts.sipStatus !== 200).sort(([, a], [, b]) => a.sipStatus - b.sipStatus);
  const endings = all.filter(([, facts]) => facts.sipStatus === 200);
  return [
    '### Refusals',
    table(
      ['code', 'SIP answer', 'Q.850', 'fault', 'retryable', 'explanation'],
      refusals.map(([code, facts]) => [
        `\`${code}\``,
        `${String(facts.sipStatus)} ${facts.sipPhrase}`,
        String(facts.q850),
        facts.fault,
        facts.retryAfter ? 'yes, with Retry-After' : facts.retryable ? 'yes' : 'no',
        facts.explanation,
      ]),
    ),
    '### Ends of answered calls',
    table(
      ['code', 'Q.850', 'fault', 'explanation'],
      endings.map(([code, facts]) => [`\`${code}\``, String(facts.q850), facts.fault, facts.explanation]),
    ),
  ].join('\n\n');
}
