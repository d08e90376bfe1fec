import { signal, useSignal, type Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { Dialog } from '../parts/dialog.js';
import type { Failure } from '../parts/failure.js';
import { FailureNote, SelectField, TextField, useSubmit } from '../parts/form.js';
import { ifMatch } from '../parts/input.js';
import { ask } from '../session.js';
import { changesOf, formOf, FORMATS, type AgentForm, type JsonField } from './agent-fields.js';

interface AgentDialogProps {
  /** `null`: a new one. */
  readonly agent: Schemas['Agent'] | null;
  readonly voices: readonly Schemas['Voice'][];
  readonly tools: readonly Schemas['ToolRecord'][];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

type Fields = { readonly [Name in keyof AgentForm]: Signal<string> };

const JSON_FIELDS: readonly (readonly [JsonField, string, string])[] = [
  ['analysis_schema', 'Data points to extract', '{"guest_name": "string"}'],
  ['transfer_list', 'Transfer targets', '{"front desk": "+15551234567"}'],
  ['dynamic_data', 'Dynamic data', '{}'],
  ['metadata', 'Metadata', '{"customer": "42"}'],
  ['pronunciation_guide', 'Pronunciation', '[{"word": "ETA", "pronunciation": "E T A"}]'],
];

export function AgentDialog({ agent, voices, tools, onClose, onDone }: AgentDialogProps): JSX.Element {
  const before = useMemo(() => formOf(agent), [agent]);
  const fields = useFields(before);
  const warnings = useSignal<readonly { readonly path: string; readonly message: string }[]>([]);
  const { submit, isBusy, failure } = useSubmit(async () => {
    if (warnings.value.length > 0) {
      onDone();
      return;
    }
    const now = Object.fromEntries(Object.entries(fields).map(([name, { value }]) => [name, value])) as AgentForm;
    const body = changesOf(before, now);
    const answer =
      agent === null
        ? await ask((api) => api.POST('/v1/agents', { body }))
        : await ask((api) =>
            api.POST('/v1/agents/{agent_id}', { body, params: { path: { agent_id: agent.agent_id }, header: ifMatch(agent) } }),
          );
    warnings.value = answer.warnings;
    if (answer.warnings.length === 0) onDone();
  });
  return (
    <Dialog title={agent === null ? 'Create an agent' : `Edit ${agent.name}`} onClose={warnings.value.length > 0 ? onDone : onClose}>
      <form onSubmit={submit}>
        <FailureNote failure={failure} />
        {warnings.value.length > 0 && (
          <div class="note warn" role="alert">
            <p>Saved. Note:</p>
            {warnings.value.map(({ path, message }) => (
              <p key={path}>
                <code>{path}</code> {message}
              </p>
            ))}
          </div>
        )}
        <Speech fields={fields} failure={failure} voices={voices} />
        <Where fields={fields} failure={failure} hasToken={typeof agent?.stream === 'object' && agent.stream !== null} />
        <details>
          <summary>More settings</summary>
          <Tools agent={agent} tools={tools} value={fields.tools} />
          <TextField
            label="Webhook"
            value={fields.webhook}
            type="url"
            hint="Receives the record of each ended call"
            path="webhook"
            failure={failure}
          />
          <TextField label="Pathway id" value={fields.pathway_id} hint="Replaces the prompt" path="pathway_id" failure={failure} />
          <SelectField
            label="Model"
            value={fields.model}
            options={[
              ['', 'Default'],
              ['base', 'base'],
              ['turbo', 'turbo'],
            ]}
            path="model"
            failure={failure}
          />
          {JSON_FIELDS.map(([name, label, placeholder]) => (
            <TextField
              key={name}
              label={label}
              value={fields[name]}
              rows={3}
              isCode
              placeholder={placeholder}
              hint="JSON"
              path={name}
              failure={failure}
            />
          ))}
        </details>
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={isBusy}>
            {warnings.value.length > 0 ? 'Close' : agent === null ? 'Create' : 'Save'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** One signal a field, made once. */
function useFields(form: AgentForm): Fields {
  return useMemo(() => Object.fromEntries(Object.entries(form).map(([name, text]) => [name, signal(text)])) as unknown as Fields, [form]);
}

interface PartProps {
  readonly fields: Fields;
  readonly failure: Failure | null;
}

function Speech({ fields, failure, voices }: PartProps & { readonly voices: readonly Schemas['Voice'][] }): JSX.Element {
  const languages = [...new Set(voices.flatMap(({ language }) => (language === null ? [] : [language])))].sort();
  return (
    <>
      <TextField label="Name" value={fields.name} path="name" failure={failure} autofocus />
      <TextField label="Prompt" value={fields.prompt} rows={6} path="prompt" failure={failure} />
      <TextField label="First sentence" value={fields.first_sentence} hint="Under 200 characters" path="first_sentence" failure={failure} />
      <div class="columns">
        <TextField label="Language" value={fields.language} placeholder="ENG" suggestions={languages} path="language" failure={failure} />
        <TextField
          label="Voice"
          value={fields.voice}
          hint="Empty: the language's own"
          suggestions={voices.map(({ name }) => name)}
          path="voice"
          failure={failure}
        />
        <TextField
          label="Longest call, minutes"
          value={fields.max_duration}
          type="number"
          placeholder="30"
          path="max_duration"
          failure={failure}
        />
        <TextField
          label="Silence that ends a turn, ms"
          value={fields.interruption_threshold}
          type="number"
          placeholder="100"
          path="interruption_threshold"
          failure={failure}
        />
      </div>
    </>
  );
}

function Where({ fields, failure, hasToken }: PartProps & { readonly hasToken: boolean }): JSX.Element {
  return (
    <>
      <SelectField
        label="Who speaks"
        value={fields.stream}
        options={[
          ['', "The operator's default"],
          ['test-line', 'The built-in test line'],
          ['url', 'A bot of mine, by WebSocket'],
        ]}
        path="stream"
        failure={failure}
      />
      {fields.stream.value === 'url' && (
        <div class="columns">
          <TextField
            label="Address"
            value={fields.url}
            type="url"
            required
            placeholder="wss://bot.example.com/"
            path="stream.url"
            failure={failure}
          />
          <SelectField
            label="Format"
            value={fields.format}
            options={FORMATS.map((name) => [name, name] as const)}
            path="stream.format"
            failure={failure}
          />
          <TextField
            label="Bearer token"
            value={fields.bearer_token}
            type="password"
            autocomplete="new-password"
            hint={hasToken ? 'Never shown. Empty: unchanged' : 'Never shown again'}
            path="stream.bearer_token"
            failure={failure}
          />
        </div>
      )}
    </>
  );
}

interface ToolsProps {
  readonly agent: Schemas['Agent'] | null;
  readonly tools: readonly Schemas['ToolRecord'][];
  /** Ids, with spaces between. */
  readonly value: Signal<string>;
}

function Tools({ agent, tools, value }: ToolsProps): JSX.Element | null {
  // The API never shows their headers, so they could not be sent back whole.
  if (agent?.tools.some((tool) => typeof tool !== 'string') === true)
    return <p class="hint">This agent has inline tools. Change them through the API.</p>;
  if (tools.length === 0) return null;
  const chosen = new Set(value.value.split(' ').filter((id) => id !== ''));
  return (
    <fieldset>
      <legend>Tools</legend>
      {tools.map(({ tool_id: id, label, tool }) => (
        <label key={id} class="check">
          <input
            type="checkbox"
            checked={chosen.has(id)}
            onChange={(event) => {
              if (event.currentTarget.checked) chosen.add(id);
              else chosen.delete(id);
              value.value = [...chosen].join(' ');
            }}
          />
          {label ?? tool.name}
        </label>
      ))}
    </fieldset>
  );
}
