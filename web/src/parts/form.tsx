import type { Signal } from '@preact/signals';
import type { ComponentChildren, JSX, TargetedEvent } from 'preact';
import { useId, useState } from 'preact/hooks';
import { asApiError } from '../polling.js';
import { failureOf, type Failure } from './failure.js';

export interface Submission {
  readonly submit: (event: Event) => void;
  readonly isBusy: boolean;
  readonly failure: Failure | null;
}

/** Sends a form once at a time, and keeps why it failed. */
export function useSubmit(work: () => Promise<void>): Submission {
  const [isBusy, setIsBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const send = async (): Promise<void> => {
    setIsBusy(true);
    setFailure(null);
    try {
      await work();
    } catch (error) {
      setFailure(failureOf(asApiError(error)));
    }
    setIsBusy(false);
  };
  return {
    isBusy,
    failure,
    submit: (event) => {
      event.preventDefault();
      if (!isBusy) void send();
    },
  };
}

/** Why a form, or a page, could not be had. */
export function FailureNote({ failure }: { readonly failure: Failure | null }): JSX.Element | null {
  if (failure === null) return null;
  return (
    <div class="note bad" role="alert">
      <p>{failure.message}</p>
      {failure.advice !== null && <p>{failure.advice}</p>}
    </div>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: Signal<string>;
  readonly hint?: ComponentChildren;
  /** As the API names it in its failures. */
  readonly path?: string;
  readonly failure?: Failure | null;
  readonly required?: boolean;
}

interface TextProps extends FieldProps {
  readonly type?: 'text' | 'password' | 'url' | 'number' | 'tel' | 'datetime-local';
  readonly rows?: number;
  readonly isCode?: boolean;
  readonly placeholder?: string;
  readonly suggestions?: readonly string[];
  readonly autofocus?: boolean;
  readonly autocomplete?: string;
}

/** A line, or with `rows` several. */
export function TextField(props: TextProps): JSX.Element {
  const { label, value, type = 'text', rows, required = false, placeholder, suggestions, autocomplete = 'off' } = props;
  const id = useId();
  const error = errorOf(props);
  const shared = {
    id,
    required,
    placeholder,
    value: value.value,
    autofocus: props.autofocus === true,
    class: props.isCode === true ? 'code' : undefined,
    'aria-invalid': error !== undefined,
    'aria-describedby': `${id}-more`,
    spellcheck: false,
    onInput: (event: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) => {
      value.value = event.currentTarget.value;
    },
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input {...shared} type={type} autocomplete={autocomplete} list={suggestions === undefined ? undefined : `${id}-list`} />
      ) : (
        <textarea {...shared} rows={rows} />
      )}
      {suggestions !== undefined && (
        <datalist id={`${id}-list`}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
      <More id={`${id}-more`} error={error} hint={props.hint} />
    </div>
  );
}

interface SelectProps extends FieldProps {
  readonly options: readonly (readonly [value: string, label: string])[];
}

export function SelectField(props: SelectProps): JSX.Element {
  const { label, value, options } = props;
  const id = useId();
  const error = errorOf(props);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value.value}
        aria-invalid={error !== undefined}
        aria-describedby={`${id}-more`}
        onChange={(event) => {
          value.value = event.currentTarget.value;
        }}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
      <More id={`${id}-more`} error={error} hint={props.hint} />
    </div>
  );
}

export function CheckField({ label, value }: { readonly label: string; readonly value: Signal<boolean> }): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.checked;
        }}
      />
      {label}
    </label>
  );
}

function errorOf({ path, failure }: FieldProps): string | undefined {
  return path === undefined ? undefined : failure?.errorAt(path);
}

function More({
  id,
  error,
  hint,
}: {
  readonly id: string;
  readonly error: string | undefined;
  readonly hint: ComponentChildren;
}): JSX.Element {
  return (
    <p id={id} class={error === undefined ? 'hint' : 'hint bad-text'}>
      {error ?? hint}
    </p>
  );
}
