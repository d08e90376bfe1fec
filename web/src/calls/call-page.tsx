import type { ComponentChildren, JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ApiError, type Client, type Schemas } from '../../../src/client/index.js';
import { duration, fullTime, milliseconds, sinceBegin } from '../format.js';
import { Confirm } from '../parts/dialog.js';
import { PageHead, Show } from '../parts/page.js';
import { useLoaded } from '../polling.js';
import { isOperator, orgName } from '../organizations.js';
import { reasons } from '../reasons.js';
import { BASE } from '../routes.js';
import { ask } from '../session.js';
import { callers } from './call-list.js';
import { LadderView } from './ladder-view.js';
import type { TraceEntry } from './ladder.js';
import { qualityOf, type QualitySample } from './quality.js';
import { QualityPlots } from './quality-plots.js';
import { StatePill } from './state-pill.js';

const POLL_MS = 2_000;

type CallDetail = Schemas['CallDetail'];

interface Shown {
  readonly call: CallDetail;
  readonly trace: readonly TraceEntry[];
  readonly samples: readonly QualitySample[];
}

async function read(api: Client, callId: string): Promise<Shown> {
  const params = { path: { call_id: callId } };
  const { call } = await api.GET('/v1/calls/{call_id}', { params });
  const { trace } = await api.GET('/v1/calls/{call_id}/trace', { params });
  return { call, trace, samples: await qualityOf(api, callId) };
}

/** A call that has just ended is in progress no more and its record is written in a moment: until then it is shown as it was. */
function ofMoment(last: Shown | null, error: unknown): Shown {
  if (last !== null && error instanceof ApiError && error.status === 404) return last;
  throw error;
}

export function CallPage({ id }: { readonly id: string }): JSX.Element {
  const [isOver, setIsOver] = useState(false);
  const last = useRef<Shown | null>(null);
  const loaded = useLoaded(
    async () => {
      const shown = await ask((api) => read(api, id)).catch((error: unknown) => ofMoment(last.current, error));
      last.current = shown;
      if (shown.call.state === 'ended') setIsOver(true);
      return shown;
    },
    [id],
    isOver ? null : POLL_MS,
  );
  return (
    <>
      <p class="back">
        <a href={`${BASE}/calls`}>← Calls</a>
      </p>
      <Show loaded={loaded}>{(shown) => <CallView {...shown} onStopped={loaded.reload} />}</Show>
    </>
  );
}

function CallView({ call, trace, samples, onStopped }: Shown & { readonly onStopped: () => void }): JSX.Element {
  const [isStopping, setIsStopping] = useState(false);
  return (
    <>
      <PageHead
        title={
          <>
            {callers(call)} → {call.to}
          </>
        }
      >
        <StatePill call={call} />
        {call.state !== 'ended' && (
          <button type="button" class="danger" onClick={() => setIsStopping(true)}>
            Stop the call
          </button>
        )}
      </PageHead>
      {isStopping && (
        <Confirm
          title="Stop this call?"
          action="Stop the call"
          onClose={() => setIsStopping(false)}
          work={async () => {
            await ask((api) => api.POST('/v1/calls/{call_id}/stop', { params: { path: { call_id: call.call_id } }, body: {} }));
            onStopped();
          }}
        >
          <p>
            The gateway disconnects the caller {call.from} immediately. The call’s record gets the reason <code>API_STOPPED</code>.
          </p>
        </Confirm>
      )}
      <Why call={call} />
      <Facts call={call} />
      <section class="card">
        <h2>Trace</h2>
        {trace.length === 0 ? <p class="muted">No trace is stored for this call.</p> : <LadderView trace={trace} />}
      </section>
      <section class="card">
        <h2>Quality</h2>
        <QualityPlots samples={samples} />
        <Totals call={call} />
      </section>
      <Said call={call} />
    </>
  );
}

function Why({
  call: { reason, reason_detail: detail, state, agent_error: agentError, signalling_error: signallingError, q850_cause: cause },
}: {
  readonly call: CallDetail;
}): JSX.Element | null {
  const facts = reason === null ? undefined : reasons.value.get(reason);
  const failures = [
    ...(detail === null ? [] : [`In detail: ${detail}.`]),
    ...(agentError === null ? [] : [`The connection to the agent: ${agentError}`]),
    ...(cause === null ? [] : [`The other side gave the Q.850 cause ${String(cause)}.`]),
    ...(signallingError === null ? [] : [`A request to the carrier: ${signallingError}`]),
  ].map((text) => <p key={text}>{text}</p>);
  if (reason === null && failures.length > 0) return <section class="card why">{failures}</section>;
  if (reason === null || facts === undefined) return state === 'ended' ? <p>{reason}</p> : null;
  return (
    <section class="card why" aria-label="Why it ended">
      <p>
        <strong>{facts.explanation}</strong>
        {facts.retryable && ' The same call may succeed later.'}
      </p>
      {failures}
      <p>{facts.advice}</p>
    </section>
  );
}

function Facts({ call }: { readonly call: CallDetail }): JSX.Element {
  const { source, timings, turns, identity, caller } = call;
  const endMs = call.ended_at === null ? Date.now() : Date.parse(call.ended_at);
  const talked = call.answered_at === null ? null : endMs - Date.parse(call.answered_at);
  return (
    <section class="card" aria-label="Facts">
      <dl class="facts">
        <Fact name="Direction">{call.direction}</Fact>
        <Fact name="Began">{fullTime(call.started_at)}</Fact>
        <Fact name="Answered after">{milliseconds(timings.answer_ms)}</Fact>
        <Fact name="First audio after">{milliseconds(timings.first_audio_ms)}</Fact>
        <Fact name="Agent heard after">{milliseconds(turns.first_audio_ms)}</Fact>
        <Fact name="Turns">{String(turns.delays_ms.length)}</Fact>
        <Fact name="Delay of a turn, p50 and p95">{`${milliseconds(turns.p50_ms)}, ${milliseconds(turns.p95_ms)}`}</Fact>
        {turns.delays_ms.length > 0 && <Fact name="Each turn">{turns.delays_ms.map(milliseconds).join(', ')}</Fact>}
        <Fact name="Length">{talked === null ? '–' : duration(talked)}</Fact>
        <Fact name="SIP status">{call.sip_status ?? '–'}</Fact>
        <Fact name={call.direction === 'outbound' ? 'Trunk' : 'From address'}>
          {source.ip}:{source.port}, {source.tls_version ?? source.transport}
        </Fact>
        <Fact name="Codec">{call.codec ?? '–'}</Fact>
        <Fact name="SRTP">{call.crypto_suite ?? (call.answered_at === null ? '–' : 'none')}</Fact>
        <Fact name="Agent">{call.agent_id === null ? "operator's default" : <AgentName id={call.agent_id} />}</Fact>
        {isOperator.value && <Fact name="Organization">{orgName(call.org_id)}</Fact>}
        {caller?.display_name != null && <Fact name="Caller's name">{caller.display_name}</Fact>}
        {identity !== null && (
          <Fact name="STIR/SHAKEN">
            {[identity.verdict, identity.attestation === null ? null : `attestation ${identity.attestation}`, identity.detail]
              .filter(Boolean)
              .join(', ')}
          </Fact>
        )}
        <Fact name="Call id">
          <code>{call.call_id}</code>
        </Fact>
        <Fact name="SIP Call-ID">
          <code>{call.sip_call_id}</code>
        </Fact>
      </dl>
    </section>
  );
}

/** One that was deleted since has its id only. */
function AgentName({ id }: { readonly id: string }): JSX.Element {
  const agent = useLoaded(
    async () => (await ask((api) => api.GET('/v1/agents/{agent_id}', { params: { path: { agent_id: id } } }))).agent,
    [id],
  );
  return <span title={id}>{agent.value?.name ?? id}</span>;
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Totals({ call: { quality } }: { readonly call: CallDetail }): JSX.Element | null {
  const { endpoint, relay } = quality;
  if (relay === null && endpoint === null) return null;
  const streams =
    relay === null
      ? []
      : ([
          ['Carrier → gateway', relay.from_carrier],
          ['Agent → carrier', relay.from_agent],
        ] as const);
  return (
    <div class="table-wrap">
      <table>
        <caption>Total</caption>
        <thead>
          <tr>
            <th scope="col">Stream</th>
            <th scope="col">Packets</th>
            <th scope="col">Lost</th>
            <th scope="col">Jitter</th>
            <th scope="col">Round trip</th>
            <th scope="col">MOS</th>
          </tr>
        </thead>
        <tbody>
          {streams.map(([name, stream]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{stream.packets}</td>
              <td>{stream.lost ?? '–'}</td>
              <td>{milliseconds(stream.jitter_ms)}</td>
              <td>{milliseconds(stream.round_trip_ms)}</td>
              <td>{stream.mos ?? '–'}</td>
            </tr>
          ))}
          {endpoint !== null && (
            <tr>
              <th scope="row">At the agent</th>
              <td>{endpoint.packets_received}</td>
              <td>{endpoint.packets_lost}</td>
              <td>{milliseconds(endpoint.jitter_ms)}</td>
              <td>{milliseconds(endpoint.round_trip_ms)}</td>
              <td>–</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function Said({ call }: { readonly call: CallDetail }): JSX.Element {
  const {
    transcript,
    analysis,
    analysis_rejected: rejected,
    analysis_error: unread,
    transcript_state: state,
    transcript_error: missing,
  } = call;
  return (
    <section class="card">
      <h2>Transcript</h2>
      {transcript.length === 0 ? (
        <p class="muted">{call.state === 'ended' ? 'The agent sent no transcript.' : 'Nothing is transcribed yet.'}</p>
      ) : (
        <ol class="transcript">
          {transcript.map((entry) => (
            <li key={`${String(entry.at_ms)} ${entry.text}`} class={entry.speaker}>
              <span class="muted">
                {entry.speaker === 'agent' ? 'Agent' : 'Caller'} {sinceBegin(entry.at_ms)}
              </span>
              <p>
                {entry.text}
                {entry.interrupted === true && <span class="muted"> (interrupted)</span>}
              </p>
            </li>
          ))}
        </ol>
      )}
      {state !== null && state !== 'complete' && (
        <p class="muted">
          {state === 'partial' ? 'Not complete' : 'Failed'}: {missing}.
        </p>
      )}
      <Told title="Analysis" fields={analysis} />
      {unread !== null && <p class="muted">No analysis: {unread}</p>}
      <Told title="Rejected: does not match analysis_schema" fields={rejected} />
    </section>
  );
}

function Told({
  title,
  fields,
}: {
  readonly title: string;
  readonly fields: Readonly<Record<string, unknown>> | null;
}): JSX.Element | null {
  if (fields === null) return null;
  return (
    <>
      <h3>{title}</h3>
      <dl class="facts">
        {Object.entries(fields).map(([name, value]) => (
          <Fact key={name} name={name}>
            {typeof value === 'string' ? value : JSON.stringify(value)}
          </Fact>
        ))}
      </dl>
    </>
  );
}
