import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { clockTime, count, fullTime } from '../format.js';
import { PageHead, Show } from '../parts/page.js';
import { Plot } from '../parts/plot.js';
import { useLoaded } from '../polling.js';
import { navigate } from '../location.js';
import { BASE, batchPath } from '../routes.js';
import { ask } from '../session.js';
import { BatchDialog } from './batch-dialog.js';
import { DiallingView, stateText } from './dialling-view.js';
import { otherFigures, seriesOf, totalsOf, type LogEntry } from './series.js';

const PAGE = 100;
const POLL_MS = 5_000;
/** What `trunkline load` writes each second. */
const FIGURES = 'figures';
const LOG_PAGE = 1_000;
const MAX_LOG = 10_000;

export function BatchesPage(): JSX.Element {
  const [take, setTake] = useState(PAGE);
  const [isOpen, setIsOpen] = useState(false);
  const loaded = useLoaded(async () => (await ask((api) => api.GET('/v2/batches', { params: { query: { take } } }))).data, [take]);
  return (
    <>
      <PageHead title="Batches">
        <button type="button" class="primary" onClick={() => setIsOpen(true)}>
          Call many numbers
        </button>
      </PageHead>
      {isOpen && <BatchDialog onClose={() => setIsOpen(false)} onDone={(id) => navigate(batchPath(id))} />}
      <Show loaded={loaded}>
        {(batches) =>
          batches.length === 0 ? (
            <p class="card empty">
              No batches yet. Each load test (<code>trunkline load</code>) creates one.
            </p>
          ) : (
            <>
              <BatchTable batches={batches} />
              {batches.length === take && take < 1_000 && (
                <button type="button" onClick={() => setTake(Math.min(1_000, take + PAGE))}>
                  Show more
                </button>
              )}
            </>
          )
        }
      </Show>
    </>
  );
}

function BatchTable({ batches }: { readonly batches: readonly Schemas['Batch'][] }): JSX.Element {
  return (
    <div class="table-wrap card">
      <table>
        <thead>
          <tr>
            <th scope="col">Created</th>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">Id</th>
          </tr>
        </thead>
        <tbody>
          {batches.map((batch) => (
            <tr key={batch.batch_id}>
              <td>{clockTime(batch.created_at, new Date())}</td>
              <th scope="row">
                <a href={batchPath(batch.batch_id)}>{batch.name}</a>
              </th>
              <td>{stateText(batch.state)}</td>
              <td>
                <code>{batch.batch_id}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The newest that a batch keeps, oldest first. */
async function readLog(batchId: string): Promise<readonly LogEntry[]> {
  const all: LogEntry[] = [];
  while (all.length < MAX_LOG) {
    const params = { path: { batch_id: batchId }, query: { take: LOG_PAGE, skip: all.length, direction: 'asc' as const } };
    const { data } = await ask((api) => api.GET('/v2/batches/{batch_id}/logs', { params }));
    all.push(...data);
    if (data.length < LOG_PAGE) break;
  }
  return all;
}

export function BatchPage({ id }: { readonly id: string }): JSX.Element {
  const [isOver, setIsOver] = useState(false);
  const loaded = useLoaded(
    async () => {
      const log = await readLog(id);
      if (totalsOf(log) !== null) setIsOver(true);
      return log;
    },
    [id],
    isOver ? null : POLL_MS,
  );
  return (
    <>
      <p class="back">
        <a href={`${BASE}/batches`}>← Batches</a>
      </p>
      <PageHead title="Batch">
        <code>{id}</code>
      </PageHead>
      <DiallingView id={id} />
      <Show loaded={loaded}>{(log) => <LogView log={log} />}</Show>
    </>
  );
}

function LogView({ log }: { readonly log: readonly LogEntry[] }): JSX.Element {
  const totals = totalsOf(log);
  const lines = log.filter(({ event_type: type }) => type !== FIGURES);
  return (
    <>
      {totals !== null && (
        <section class="card">
          <dl class="facts">
            <div>
              <dt>Calls</dt>
              <dd>{count(totals.total)}</dd>
            </div>
            <div>
              <dt>Successful</dt>
              <dd>{count(totals.successful)}</dd>
            </div>
            <div>
              <dt>Failed</dt>
              <dd class={totals.failed > 0 ? 'bad-text' : undefined}>{count(totals.failed)}</dd>
            </div>
          </dl>
        </section>
      )}
      <LogPlots log={log} />
      <section class="card">
        <h2>Log</h2>
        {lines.length === 0 && <p class="muted">No entries yet.</p>}
        <ol class="log">
          {lines.slice(-500).map((entry) => (
            <li key={entry.id}>
              <time dateTime={entry.timestamp}>{fullTime(entry.timestamp)}</time> <span class="pill fine">{entry.event_type}</span>{' '}
              {entry.event_type === 'rows_refused' ? <RefusedRows rows={entry.payload['rows'] as Rows} /> : textOf(entry)}
            </li>
          ))}
        </ol>
      </section>
    </>
  );
}

type Rows = readonly Schemas['RefusedRow'][];

function RefusedRows({ rows }: { readonly rows: Rows }): JSX.Element {
  return (
    <ul>
      {rows.map(({ row, phone_number: number, message }) => (
        <li key={row}>
          Row {row}: {number} {message}
        </li>
      ))}
    </ul>
  );
}

function textOf({ event_type: type, payload }: LogEntry): string {
  return type === 'lifecycle' ? `${String(payload['state_change'])}: ${String(payload['message'])}` : JSON.stringify(payload);
}

const PLOTS: readonly { readonly title: string; readonly unit: string; readonly fields: readonly string[] }[] = [
  { title: 'Calls started a second', unit: '/s', fields: ['calls_per_second'] },
  { title: 'Calls in progress', unit: '', fields: ['in_progress'] },
  { title: 'Calls answered and failed, in total', unit: '', fields: ['answered', 'failed'] },
  { title: 'INVITE to 200, ms', unit: ' ms', fields: ['setup_p50_ms', 'setup_p99_ms'] },
];

function LogPlots({ log }: { readonly log: readonly LogEntry[] }): JSX.Element | null {
  const plots = useMemo(() => {
    const known = PLOTS.map((plot) => ({ ...plot, series: seriesOf(log, FIGURES, plot.fields) }));
    const others = otherFigures(log, [FIGURES, 'lifecycle', 'complete']).map(({ type, fields }) => ({
      title: type,
      unit: '',
      series: seriesOf(log, type, fields),
    }));
    return [...known, ...others].filter(({ series }) => series.lines.length > 0 && series.x.length > 1);
  }, [log]);
  if (plots.length === 0) return null;
  return (
    <section class="card">
      <h2>Figures</h2>
      <div class="plots">
        {plots.map(({ title, unit, series }) => (
          <Plot
            key={title}
            title={title}
            unit={unit}
            x={series.x}
            isClock
            lines={series.lines.map(({ name, values }, index) => ({
              label: name.replaceAll('_', ' '),
              color: `--line-${String(index + 1)}`,
              values,
            }))}
          />
        ))}
      </div>
    </section>
  );
}
