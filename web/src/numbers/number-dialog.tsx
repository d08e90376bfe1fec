import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { Dialog } from '../parts/dialog.js';
import { CheckField, FailureNote, SelectField, TextField, useSubmit } from '../parts/form.js';
import { ask } from '../session.js';
import { formOf, save, type NumberForm } from './number-form.js';

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
  // What an attempt has saved, when a later step of it failed.
  const latest = useRef(number);
  const form = formOf(number);
  const phone = useSignal(form.phone);
  const isInbound = useSignal(form.isInbound);
  const isOutbound = useSignal(form.isOutbound);
  const agent = useSignal(form.agent);
  const sources = useSignal(form.sources);
  const calls = useSignal(form.calls);
  const rate = useSignal(form.rate);
  const encryption = useSignal(form.encryption);
  const options = useSignal(form.options);
  const endpoint = useSignal(form.endpoint);
  const trunk = useSignal(form.trunk);
  const { submit, isBusy, failure } = useSubmit(async () => {
    const now: NumberForm = {
      phone: phone.value,
      isInbound: isInbound.value,
      isOutbound: isOutbound.value,
      agent: agent.value,
      sources: sources.value,
      calls: calls.value,
      rate: rate.value,
      encryption: encryption.value,
      options: options.value,
      endpoint: endpoint.value,
      trunk: trunk.value,
    };
    await ask((api) =>
      save(api, latest.current, now, (record) => {
        latest.current = record;
      }),
    );
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
            <TextField
              label="Other options"
              value={options}
              rows={3}
              isCode
              hint="JSON, such as voice_url, status_callback and refer. Empty: none."
              path="options"
              failure={failure}
            />
          </>
        )}
        {isOutbound.value && (
          <>
            <TextField
              label="SIP endpoint"
              value={endpoint}
              required
              placeholder="sips:pbx.example.com:5061"
              hint="A sip: or sips: URI, or host:port"
              path="sip_endpoint"
              failure={failure}
            />
            <TextField
              label="Other settings of the trunk"
              value={trunk}
              rows={3}
              isCode
              hint="JSON, such as username and tls_names. Password and key are not shown, and stay as long as they are not given."
              path="trunk"
              failure={failure}
            />
          </>
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
