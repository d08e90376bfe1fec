import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { Confirm, Dialog } from '../parts/dialog.js';
import { FailureNote, SelectField, TextField, useSubmit } from '../parts/form.js';
import { jsonOf, jsonText, numberOf, refuse } from '../parts/input.js';
import { PageHead, Show } from '../parts/page.js';
import { useLoaded } from '../polling.js';
import { ask } from '../session.js';

type ToolRecord = Schemas['ToolRecord'];
type Open = { readonly dialog: 'make' } | { readonly dialog: 'invoke' | 'delete'; readonly tool: ToolRecord } | null;

export function ToolsPage(): JSX.Element {
  const [open, setOpen] = useState<Open>(null);
  const loaded = useLoaded(async () => (await ask((api) => api.GET('/v1/tools'))).tools, []);
  const close = (): void => setOpen(null);
  const changed = (): void => {
    close();
    loaded.reload();
  };
  return (
    <>
      <PageHead title="Tools">
        <button type="button" class="primary" onClick={() => setOpen({ dialog: 'make' })}>
          Create a tool
        </button>
      </PageHead>
      <Show loaded={loaded}>
        {(tools) =>
          tools.length === 0 ? (
            <p class="card empty">No tools yet. A tool is an HTTP API that agents call during a conversation.</p>
          ) : (
            <ul class="cards" aria-label="Tools">
              {tools.map((record) => (
                <ToolCard key={record.tool_id} record={record} onOpen={setOpen} />
              ))}
            </ul>
          )
        }
      </Show>
      {open?.dialog === 'make' && <MakeDialog onClose={close} onDone={changed} />}
      {open?.dialog === 'invoke' && <InvokeDialog record={open.tool} onClose={close} />}
      {open?.dialog === 'delete' && (
        <Confirm
          title={`Delete ${open.tool.label ?? open.tool.tool.name}?`}
          action="Delete"
          onClose={close}
          work={async () => {
            await ask((api) => api.DELETE('/v1/tools/{tool_id}', { params: { path: { tool_id: open.tool.tool_id } } }));
            changed();
          }}
        >
          <p>Agents that use it continue without it.</p>
        </Confirm>
      )}
    </>
  );
}

function ToolCard({ record, onOpen }: { readonly record: ToolRecord; readonly onOpen: (open: Open) => void }): JSX.Element {
  const { tool, label, tool_id: id } = record;
  return (
    <li class="card">
      <div>
        <h2>{label ?? tool.name}</h2>
        <p>
          <code>
            {tool.method} {tool.url}
          </code>
        </p>
        <p class="muted">
          {tool.description} <code>{id}</code>
        </p>
      </div>
      <div class="buttons">
        <button type="button" aria-label={`Try ${label ?? tool.name}`} onClick={() => onOpen({ dialog: 'invoke', tool: record })}>
          Try
        </button>
        <button type="button" aria-label={`Delete ${label ?? tool.name}`} onClick={() => onOpen({ dialog: 'delete', tool: record })}>
          Delete
        </button>
      </div>
    </li>
  );
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

function objectOf(path: string, text: string): Record<string, unknown> | null {
  const value = jsonOf(path, text);
  if (value === null) return null;
  return typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : refuse(path, 'must be an object');
}

/** The API checks that the values are texts. */
const textsOf = (path: string, text: string): Record<string, string> => (objectOf(path, text) ?? {}) as Record<string, string>;

function MakeDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }): JSX.Element {
  const [label, name, description, speech, url, headers, body, response, timeout] = [
    useSignal(''),
    useSignal(''),
    useSignal(''),
    useSignal(''),
    useSignal(''),
    useSignal(''),
    useSignal(''),
    useSignal(''),
    useSignal('10000'),
  ];
  const method = useSignal('POST');
  const input = useSignal('{\n  "type": "object",\n  "required": [],\n  "properties": {}\n}');
  const { submit, isBusy, failure } = useSubmit(async () => {
    const tool = {
      name: name.value,
      description: description.value,
      speech: speech.value === '' ? null : speech.value,
      method: METHODS.find((one) => one === method.value) ?? 'POST',
      url: url.value,
      headers: textsOf('tool.headers', headers.value),
      body: objectOf('tool.body', body.value),
      input_schema: (objectOf('tool.input_schema', input.value) ?? {}) as { type?: 'object' },
      response: textsOf('tool.response', response.value),
      timeout: numberOf('tool.timeout', timeout.value) ?? 10_000,
    };
    await ask((api) => api.POST('/v1/tools', { body: { label: label.value === '' ? null : label.value, tool } }));
    onDone();
  });
  return (
    <Dialog title="Create a tool" onClose={onClose}>
      <form onSubmit={submit}>
        <FailureNote failure={failure} />
        <div class="columns">
          <TextField label="Name" value={name} required placeholder="BookTable" path="tool.name" failure={failure} autofocus />
          <TextField label="Label" value={label} hint="For people" path="label" failure={failure} />
        </div>
        <TextField
          label="Description"
          value={description}
          rows={2}
          required
          hint="When the agent should use it"
          path="tool.description"
          failure={failure}
        />
        <div class="columns">
          <SelectField
            label="Method"
            value={method}
            options={METHODS.map((one) => [one, one] as const)}
            path="tool.method"
            failure={failure}
          />
          <TextField
            label="URL"
            value={url}
            type="url"
            required
            placeholder="https://api.example.com/bookings"
            path="tool.url"
            failure={failure}
          />
        </div>
        <TextField label="What the agent says while it waits" value={speech} path="tool.speech" failure={failure} />
        <TextField
          label="Input"
          value={input}
          rows={5}
          isCode
          hint="JSON: required, properties with a description each"
          path="tool.input_schema"
          failure={failure}
        />
        <details>
          <summary>Headers, body, response</summary>
          <TextField
            label="Headers"
            value={headers}
            rows={3}
            isCode
            placeholder={'{"x-api-key": "…"}'}
            hint="JSON. Never shown again"
            path="tool.headers"
            failure={failure}
          />
          <TextField
            label="Body"
            value={body}
            rows={3}
            isCode
            placeholder={'{"day": "{{input.day}}"}'}
            hint="JSON. Empty: the input itself"
            path="tool.body"
            failure={failure}
          />
          <TextField
            label="Response"
            value={response}
            rows={3}
            isCode
            placeholder={'{"booking_id": "$.booking.id"}'}
            hint="JSON. Empty: the whole answer"
            path="tool.response"
            failure={failure}
          />
          <TextField label="Timeout, ms" value={timeout} type="number" path="tool.timeout" failure={failure} />
        </details>
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={isBusy}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function InvokeDialog({ record, onClose }: { readonly record: ToolRecord; readonly onClose: () => void }): JSX.Element {
  const { example, properties } = record.tool.input_schema;
  const input = useSignal(jsonText(example) || JSON.stringify(properties, null, 2));
  const result = useSignal<string | null>(null);
  const { submit, isBusy, failure } = useSubmit(async () => {
    result.value = null;
    const body = { input: objectOf('input', input.value) ?? {} };
    const {
      http_status,
      took_ms,
      result: told,
    } = await ask((api) => api.POST('/v1/tools/{tool_id}/invoke', { params: { path: { tool_id: record.tool_id } }, body }));
    result.value = `HTTP ${String(http_status)} after ${String(took_ms)} ms\n${JSON.stringify(told, null, 2)}`;
  });
  return (
    <Dialog title={`Try ${record.label ?? record.tool.name}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>The tool is called as an agent does in a conversation.</p>
        <FailureNote failure={failure} />
        <TextField label="Input" value={input} rows={6} isCode hint="JSON" path="input" failure={failure} autofocus />
        <div role="status">{result.value !== null && <pre>{result.value}</pre>}</div>
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button class="primary" disabled={isBusy}>
            {isBusy ? 'Calling…' : 'Call'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
