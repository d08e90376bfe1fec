import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Schemas } from '../../../src/client/index.js';
import { Dialog } from '../parts/dialog.js';
import { CheckField, FailureNote, SelectField, TextField, useSubmit } from '../parts/form.js';
import { ifMatch, numberOf, refuse, wordsOf } from '../parts/input.js';
import { ask } from '../session.js';

type NumberConfiguration = Schemas['SipConfiguration'];
export type AgentName = Pick<Schemas['Agent'], 'agent_id' | 'name'>;

interface NumberDialogProps {
  /** `null`: a new one. */
  readonly number: NumberConfiguration | null;
  readonly agents: readonly AgentName[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Attaches a number, or sets the directions of one. */
export function NumberDialog({ number, agents, onClose, onDone }: NumberDialogProps): JSX.Element {
  const inbound = number?.inbound;
  const options = inbound?.options;
  const phone = useSignal(number?.phone_number ?? '');
  const isInbound = useSignal(number === null || number.inbound !== null);
  const isOutbound = useSignal(number?.outbound != null);
  const agent = useSignal(inbound?.agent_id ?? '');
  const sources = useSignal(options?.allowed_sources.join('\n') ?? '');
  const calls = useSignal(textOf(options?.max_concurrent_calls));
  const rate = useSignal(textOf(options?.max_calls_per_second));
  const encryption = useSignal<string>(options?.media_encryption ?? 'required');
  const endpoint = useSignal(number?.outbound?.sip_endpoint ?? '');
  const { submit, isBusy, failure } = useSubmit(async () => {
    const directions = [...(isInbound.value ? (['inbound'] as const) : []), ...(isOutbound.value ? (['outbound'] as const) : [])];
    if (directions.length === 0) refuse('directions', 'select inbound, outbound, or both');
    const body = {
      phone_number: phone.value,
      directions,
      service: 'sip' as const,
      ...(isOutbound.value ? { sip_endpoint: endpoint.value } : {}),
      ...(isInbound.value
        ? {
            agent_id: agent.value === '' ? null : agent.value,
            options: {
              allowed_sources: wordsOf(sources.value),
              max_concurrent_calls: numberOf('options.max_concurrent_calls', calls.value),
              max_calls_per_second: numberOf('options.max_calls_per_second', rate.value),
              media_encryption: encryption.value === 'optional' ? ('optional' as const) : ('required' as const),
            },
          }
        : {}),
    };
    // A direction that is attached is replaced by this, which is what an update of both would do in two steps.
    await ask((api) => api.POST('/sip/attach', { body, ...(number === null ? {} : { params: { header: ifMatch(number) } }) }));
    onDone();
  });
  return (
    <Dialog title={number === null ? 'Attach a number' : `Update ${number.phone_number}`} onClose={onClose}>
      <form onSubmit={submit}>
        <FailureNote failure={failure} />
        {number === null && (
          <TextField
            label="Phone number"
            value={phone}
            type="tel"
            required
            placeholder="+15551234567"
            path="phone_number"
            failure={failure}
            autofocus
          />
        )}
        <fieldset>
          <legend>Directions</legend>
          <CheckField label="Inbound: the gateway answers calls to the number" value={isInbound} />
          <CheckField label="Outbound: calls from it use your endpoint" value={isOutbound} />
          {failure?.errorAt('directions') !== undefined && <p class="hint bad-text">{failure.errorAt('directions')}</p>}
        </fieldset>
        {isInbound.value && (
          <>
            <SelectField
              label="Agent"
              value={agent}
              options={[['', "The operator's default"], ...agents.map(({ agent_id: id, name }) => [id, name] as const)]}
              path="agent_id"
              failure={failure}
            />
            <TextField
              label="Allowed sources"
              value={sources}
              rows={3}
              isCode
              hint="Addresses and CIDR blocks, one a line. Empty: any source."
              path="options.allowed_sources"
              failure={failure}
            />
            <div class="columns">
              <TextField
                label="Concurrent calls"
                value={calls}
                type="number"
                hint="Empty: no limit"
                path="options.max_concurrent_calls"
                failure={failure}
              />
              <TextField
                label="Calls a second"
                value={rate}
                type="number"
                hint="Empty: no limit"
                path="options.max_calls_per_second"
                failure={failure}
              />
            </div>
            <SelectField
              label="Media encryption"
              value={encryption}
              options={[
                ['required', 'SRTP required'],
                ['optional', 'SRTP optional, if the operator allows it'],
              ]}
              path="options.media_encryption"
              failure={failure}
            />
          </>
        )}
        {isOutbound.value && (
          <TextField
            label="SIP endpoint"
            value={endpoint}
            required
            placeholder="sips:pbx.example.com:5061"
            hint="A sip: or sips: URI, or host:port"
            path="sip_endpoint"
            failure={failure}
          />
        )}
        <p class="hint">Clearing a direction here does not change it: use Detach to remove it.</p>
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={isBusy}>
            {number === null ? 'Attach' : 'Update'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function textOf(value: number | null | undefined): string {
  return value == null ? '' : String(value);
}
