import type { SipServer } from './server.js';
import type { CertificateFacts } from '../tls/certificate-files.js';
import type { Metrics } from '../observability/metrics/registry.js';

/** Metrics of the embedded SIP server. A drachtio-server has its own. */
export function collectSipServer(
  metrics: Metrics,
  server: Pick<SipServer, 'counts' | 'totals'>,
  certificates: () => readonly CertificateFacts[],
): void {
  metrics.collect((figures) => {
    const { counts, totals } = server;
    figures.set('trunkline_sip_transactions', {}, counts['transactions'] ?? 0);
    figures.set('trunkline_sip_dialogs', {}, counts['dialogs'] ?? 0);
    figures.set('trunkline_sip_connections', {}, counts['connections'] ?? 0);
    figures.set('trunkline_sip_applications', {}, counts['applications'] ?? 0);
    figures.set('trunkline_sip_timers', {}, counts['timers'] ?? 0);
    figures.set('trunkline_sip_dialogs_restored', {}, totals.restoredDialogs);
    figures.set('trunkline_sip_journal_bytes', {}, totals.journalBytes);
    figures.set('trunkline_sip_journal_failures_total', {}, totals.journalFailures);
    figures.set('trunkline_sip_messages_total', { kind: 'taken' }, totals.taken);
    figures.set('trunkline_sip_messages_total', { kind: 'malformed' }, totals.malformed);
    figures.set('trunkline_sip_tls_handshakes_total', { outcome: 'ok' }, totals.handshakes);
    figures.set('trunkline_sip_tls_handshakes_total', { outcome: 'failed' }, totals.failedHandshakes);
    figures.set('trunkline_sip_refused_total', { cause: 'rate' }, totals.refusedByRate);
    figures.set('trunkline_sip_refused_total', { cause: 'dialogs' }, totals.refusedByDialogs);
    figures.set('trunkline_sip_refused_total', { cause: 'memory' }, totals.refusedByMemory);
    figures.set('trunkline_sip_refused_total', { cause: 'application_delay' }, totals.refusedByDelay);
    figures.set('trunkline_sip_refused_total', { cause: 'connections_per_source' }, totals.refusedPerSource);
    figures.set('trunkline_sip_refused_total', { cause: 'file_handles' }, totals.refusedByHandles);
    figures.set('trunkline_sip_refused_total', { cause: 'stranger' }, totals.closedStrangers);
    figures.set('trunkline_sip_dropped_total', { cause: 'rate' }, totals.droppedByRate);
    figures.set('trunkline_sip_dropped_total', { cause: 'scanner' }, totals.scanners);
    certificates().forEach(({ expires }, index) => {
      const certificate = index === 0 ? 'sip.cert_file' : `sip.certificates.${String(index - 1)}`;
      figures.set('trunkline_certificate_end_seconds', { certificate }, Date.parse(expires) / 1_000);
    });
  });
}
