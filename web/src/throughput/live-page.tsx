import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { count } from '../format.js';
import { PageHead, Show } from '../parts/page.js';
import { Plot } from '../parts/plot.js';
import { useLoaded } from '../polling.js';
import { BASE } from '../routes.js';
import { ask } from '../session.js';
import { ratesOf, totalsOf, type Throughput } from './rates.js';

const POLL_MS = 5_000;

export function LivePage(): JSX.Element {
  const loaded = useLoaded(() => ask((api) => api.GET('/v1/throughput')), [], POLL_MS);
  return (
    <>
      <PageHead title="Live" />
      <Show loaded={loaded}>{(throughput) => <ThroughputView throughput={throughput} />}</Show>
    </>
  );
}

function ThroughputView({ throughput }: { readonly throughput: Throughput }): JSX.Element {
  const { x, begun, ended, refused } = useMemo(() => ratesOf(throughput), [throughput]);
  const totals = totalsOf(throughput);
  return (
    <>
      <div class="tiles">
        <a class="card tile" href={`${BASE}/calls?state=live`}>
          <strong>{count(throughput.in_progress)}</strong> in progress
        </a>
        <Tile value={totals.begun} text="started in 15 minutes" />
        <Tile value={totals.ended} text="ended" />
        <Tile value={totals.refused} text="refused or cancelled" />
      </div>
      <section class="card">
        <Plot
          title="Calls a second, over the last 15 minutes"
          unit="/s"
          x={x}
          isClock
          lines={[
            { label: 'Started', color: '--line-1', values: begun },
            { label: 'Ended', color: '--line-2', values: ended },
            { label: 'Refused', color: '--line-3', values: refused },
          ]}
        />
      </section>
    </>
  );
}

function Tile({ value, text }: { readonly value: number; readonly text: string }): JSX.Element {
  return (
    <p class="card tile">
      <strong>{count(value)}</strong> {text}
    </p>
  );
}
