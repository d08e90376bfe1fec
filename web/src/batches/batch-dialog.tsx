import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { readAgents } from '../agents/read-agents.js';
import { Dialog } from '../parts/dialog.js';
import { FailureNote, SelectField, TextField, useSubmit } from '../parts/form.js';
import { useLoaded } from '../polling.js';
import { ask } from '../session.js';

const MOST_AGENTS = 500;

interface BatchDialogProps {
  readonly onClose: () => void;
  /** With the id of the new batch. */
  readonly onDone: (batchId: string) => void;
}

/** A batch that dials: its numbers pasted, or chosen as a file. */
export function BatchDialog({ onClose, onDone }: BatchDialogProps): JSX.Element {
  const [name, from, agent, csv] = [useSignal(''), useSignal(''), useSignal(''), useSignal('')];
  const [rate, calls, opens, closes] = [useSignal('1'), useSignal('10'), useSignal('09:00'), useSignal('20:00')];
  const agents = useLoaded(() => readAgents(MOST_AGENTS), []).value?.agents ?? [];
  const { submit, isBusy, failure } = useSubmit(async () => {
    const body = {
      name: name.value,
      from: from.value,
      csv: csv.value,
      ...(agent.value === '' ? {} : { agent_id: agent.value }),
      calls_per_second: Number(rate.value),
      max_concurrent_calls: Number(calls.value),
      hours: {
        from: opens.value,
        to: closes.value,
        days: ['mon' as const, 'tue' as const, 'wed' as const, 'thu' as const, 'fri' as const, 'sat' as const],
      },
    };
    // Its page shows what would be dialled, and starts it.
    onDone((await ask((api) => api.POST('/v2/batches', { params: {}, body }))).data.batch_id);
  });
  const readFile = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) csv.value = await file.text();
  };
  return (
    <Dialog title="Call many numbers" onClose={onClose}>
      <form onSubmit={submit}>
        <FailureNote failure={failure} />
        <TextField label="Name" value={name} path="name" failure={failure} required autofocus />
        <div class="columns">
          <TextField
            label="From"
            value={from}
            type="tel"
            hint="A number of yours, attached outbound"
            path="from"
            failure={failure}
            required
          />
          <SelectField
            label="Agent"
            value={agent}
            options={[['', "The operator's default"], ...agents.map((one) => [one.agent_id, one.name] as const)]}
            path="agent_id"
            failure={failure}
          />
          <TextField label="Calls a second" value={rate} type="number" path="calls_per_second" failure={failure} />
          <TextField label="Calls at once" value={calls} type="number" path="max_concurrent_calls" failure={failure} />
          <TextField
            label="Earliest"
            value={opens}
            hint="In the time zone of each person, Monday to Saturday"
            path="hours.from"
            failure={failure}
          />
          <TextField label="Latest" value={closes} path="hours.to" failure={failure} />
        </div>
        <TextField
          label="Numbers"
          value={csv}
          rows={8}
          isCode
          placeholder="phone_number,time_zone,name"
          hint="One a line, or CSV with the columns phone_number, time_zone and your own"
          path="csv"
          failure={failure}
          required
        />
        <label class="field">
          CSV file
          <input type="file" accept=".csv,text/csv,text/plain" onChange={(event) => void readFile(event.currentTarget.files?.[0])} />
        </label>
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={isBusy}>
            Check
          </button>
        </div>
      </form>
    </Dialog>
  );
}
