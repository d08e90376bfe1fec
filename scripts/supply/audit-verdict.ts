import { z } from 'zod';

/** What a registry knows of the packages; or why it cannot be said. */
export type AuditVerdict =
  | { readonly kind: 'clean'; readonly lesser: number }
  | { readonly kind: 'vulnerable'; readonly packages: readonly string[] }
  | { readonly kind: 'not-audited'; readonly why: string };

const reportSchema = z.object({
  auditReportVersion: z.literal(2),
  vulnerabilities: z.record(z.string(), z.object({ severity: z.string(), range: z.string() })),
});

/** Reads the answer of `npm audit --json`: high and critical faults stop a build. */
export function auditVerdict(answer: string): AuditVerdict {
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer);
  } catch {
    return { kind: 'not-audited', why: 'the registry did not answer' };
  }
  const report = reportSchema.safeParse(parsed);
  if (!report.success) return { kind: 'not-audited', why: 'the registry has no audit, or refused it' };
  const found = Object.entries(report.data.vulnerabilities);
  const grave = found.filter(([, { severity }]) => severity !== 'info' && severity !== 'low' && severity !== 'moderate');
  if (grave.length === 0) return { kind: 'clean', lesser: found.length };
  return { kind: 'vulnerable', packages: grave.map(([name, { severity, range }]) => `${name} ${range}: ${severity}`) };
}
