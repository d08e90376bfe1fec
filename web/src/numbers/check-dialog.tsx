import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Schemas } from '../../../src/client/index.js';
import { Dialog } from '../parts/dialog.js';
import { FailureNote, TextField, useSubmit } from '../parts/form.js';
import { reasons } from '../reasons.js';
import { ask } from '../session.js';

/** How a call would be decided at this moment, without one. */
export function CheckDialog({ number, onClose }: { readonly number: string; readonly onClose: () => void }): JSX.Element {
  const phone = useSignal(number);
  const source = useSignal('');
  const sdp = useSignal('');
  const result = useSignal<Schemas['CheckResult'] | null>(null);
  const { submit, isBusy, failure } = useSubmit(async () => {
    result.value = null;
    const body = {
      phone_number: phone.value,
      ...(source.value.trim() === '' ? {} : { source_ip: source.value.trim() }),
      // As it stands in a message: lines end with CRLF.
      ...(sdp.value.trim() === '' ? {} : { sdp: `${sdp.value.trim().replace(/\r?\n/g, '\r\n')}\r\n` }),
    };
    result.value = (await ask((api) => api.POST('/sip/check', { body }))).data;
  });
  return (
    <Dialog title="Check a call" onClose={onClose}>
      <form onSubmit={submit}>
        <p>Dry run: how the gateway would decide a call now. It places no call and counts none.</p>
        <FailureNote failure={failure} />
        <TextField label="Called number" value={phone} type="tel" required path="phone_number" failure={failure} autofocus />
        <TextField
          label="From address"
          value={source}
          placeholder="203.0.113.7"
          hint="Empty: the source is not checked"
          path="source_ip"
          failure={failure}
        />
        <TextField label="SDP offer" value={sdp} rows={4} isCode hint="Empty: the check skips the media" path="sdp" failure={failure} />
        <div role="status">{result.value !== null && <Result result={result.value} />}</div>
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button class="primary" disabled={isBusy}>
            Check
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Result({ result }: { readonly result: Schemas['CheckResult'] }): JSX.Element {
  const { outcome, sip_status: status, reason, explanation, codec } = result;
  const advice = reason === null ? undefined : reasons.value.get(reason)?.advice;
  return (
    <div class={outcome === 'accept' ? 'note good' : 'note bad'}>
      <p>
        <strong>
          {outcome === 'accept' ? 'Would be answered' : 'Would be refused'} ({status}
          {reason === null ? '' : ` ${reason}`})
        </strong>
      </p>
      <p>{explanation}</p>
      {advice !== undefined && <p>{advice}</p>}
      {codec !== null && <p>Codec {codec}.</p>}
    </div>
  );
}
