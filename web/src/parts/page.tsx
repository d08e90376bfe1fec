import type { ComponentChildren, JSX } from 'preact';
import type { Loaded } from '../polling.js';
import { failureOf } from './failure.js';
import { FailureNote } from './form.js';

interface PageHeadProps {
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The heading of a page, with what can be done on it. */
export function PageHead({ title, children }: PageHeadProps): JSX.Element {
  return (
    <div class="head">
      <h1>{title}</h1>
      <div class="actions">{children}</div>
    </div>
  );
}

/** What was loaded, or that it is under way, or why it is not here. */
export function Show<T>({
  loaded,
  children,
}: {
  readonly loaded: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  if (loaded.value !== null) return <>{children(loaded.value)}</>;
  if (loaded.refused !== null) return <FailureNote failure={failureOf(loaded.refused)} />;
  return (
    <p class="muted" role="status">
      Loading…
    </p>
  );
}
