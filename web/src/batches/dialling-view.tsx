import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { count, fullTime } from '../format.js';
import { Confirm } from '../parts/dialog.js';
import { FailureNote, useSubmit } from '../parts/form.js';
import { useLoaded } from '../polling.js';
import { ask } from '../session.js';

type Batch = Schemas['Batch'];

const POLL_MS = 1_000;
const FINAL: readonly (string | null)[] = [null, 'completed', 'stopped', 'failed'];

export const stateText = (state: string | null): string => (state ?? 'log').replace('_', ' ');

type Action = 'start' | 'pause' | 'resume';

/** What its button does, by the state. */
const NEXT: Readonly<Record<string, readonly [Action, string]>> = { ready: ['start', 'Start calling'], paused: ['resume', 'Go on'] };

const COUNTS = [
  ['validated', 'Numbers'],
  ['waiting', 'Waiting'],
  ['dialling', 'In progress'],
  ['successful', 'Successful'],
  ['failed', 'Failed'],
  ['ambiguous', 'Not known whether called'],
  ['abandoned_today', 'Abandoned today'],
] as const;

/** What would be dialled; the log names the refused rows. */
function Preview({
  counts,
  preview,
}: {
  readonly counts: NonNullable<Batch['counts']>;
  readonly preview: NonNullable<Batch['preview']>;
}): JSX.Element {
  const { refused, callable_now: now, callable_later: later, first_call_at: first, reserved_cost: cost } = preview;
  return (
    <>
      <p>
        Nothing is dialled yet: {count(counts.validated)} of {count(counts.requested)} rows are numbers to dial. {count(now)} may be called
        now, {count(later)} later{first === null ? '' : `, the first at ${fullTime(first)}`}. A call to each reserves up to{' '}
        {cost.toFixed(2)} in the operator's currency.
      </p>
      {refused > 0 && <p class="bad-text">{count(refused)} rows are refused: the log names them.</p>}
    </>
  );
}

/** How far a batch is that dials, live, with what can be done about it; nothing for one that is a log only. */
export function DiallingView({ id }: { readonly id: string }): JSX.Element | null {
  const [isOver, setIsOver] = useState(false);
  const [isStopping, setIsStopping] = useState(false);
  const loaded = useLoaded(
    async () => {
      const { data } = await ask((api) => api.GET('/v2/batches/{batch_id}', { params: { path: { batch_id: id } } }));
      setIsOver(FINAL.includes(data.state) && (data.counts?.dialling ?? 0) === 0);
      return data;
    },
    [id],
    isOver ? null : POLL_MS,
  );
  const move = async (action: Action | 'stop'): Promise<void> => {
    const path = { batch_id: id };
    await ask((api) => api.POST(`/v2/batches/{batch_id}/${action}`, { params: { path }, body: {} }));
    loaded.reload();
  };
  const batch: Batch | null = loaded.value;
  const [action, label] = NEXT[batch?.state ?? ''] ?? ['pause', 'Pause'];
  const toggle = useSubmit(() => move(action));
  if (batch === null || batch.counts === null) return null;
  const { state, counts, preview } = batch;
  return (
    <section class="card">
      <div class="head">
        <h2>{batch.name}</h2>
        <span class="pill fine" role="status">
          {stateText(state)}
        </span>
        {!FINAL.includes(state) && (
          <form class="actions" onSubmit={toggle.submit}>
            <button class={action === 'start' ? 'primary' : undefined} disabled={toggle.isBusy}>
              {label}
            </button>
            <button type="button" class="danger" onClick={() => setIsStopping(true)}>
              Stop
            </button>
          </form>
        )}
      </div>
      <FailureNote failure={toggle.failure} />
      {state === 'ready' && preview !== null && <Preview counts={counts} preview={preview} />}
      <dl class="facts">
        {COUNTS.map(([name, title]) => (
          <div key={name}>
            <dt>{title}</dt>
            <dd>{count(counts[name])}</dd>
          </div>
        ))}
      </dl>
      {isStopping && (
        <Confirm title="Stop the batch" action="Stop for good" work={() => move('stop')} onClose={() => setIsStopping(false)}>
          <p>It begins no more calls. Those in progress go on.</p>
        </Confirm>
      )}
    </section>
  );
}
