import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Schemas } from '../../../src/client/index.js';
import { Confirm } from '../parts/dialog.js';
import { CheckField } from '../parts/form.js';
import { ifMatch, refuse } from '../parts/input.js';
import { ask } from '../session.js';

interface DetachDialogProps {
  readonly number: Schemas['SipConfiguration'];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function DetachDialog({ number, onClose, onDone }: DetachDialogProps): JSX.Element {
  const inbound = useSignal(number.inbound !== null);
  const outbound = useSignal(number.outbound !== null);
  return (
    <Confirm
      title={`Detach ${number.phone_number}?`}
      action="Detach"
      onClose={onClose}
      work={async () => {
        const directions = [...(inbound.value ? (['inbound'] as const) : []), ...(outbound.value ? (['outbound'] as const) : [])];
        if (directions.length === 0) refuse('directions', 'select at least one');
        const body = { phone_number: number.phone_number, directions, service: 'sip' as const };
        await ask((api) => api.POST('/sip/detach', { body, params: { header: ifMatch(number) } }));
        onDone();
      }}
    >
      <p>The gateway refuses new calls with NUMBER_NOT_ATTACHED. Calls in progress continue.</p>
      {number.inbound !== null && <CheckField label="Inbound" value={inbound} />}
      {number.outbound !== null && <CheckField label="Outbound" value={outbound} />}
    </Confirm>
  );
}
