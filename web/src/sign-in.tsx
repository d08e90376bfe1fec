import type { JSX } from 'preact';
import { useSignal } from '@preact/signals';
import { FailureNote, TextField, useSubmit } from './parts/form.js';
import { Mark, ThemeSwitch } from './parts/masthead.js';
import { signedOutBecause, signIn } from './session.js';

export function SignIn(): JSX.Element {
  const key = useSignal('');
  const { submit, isBusy, failure } = useSubmit(() => signIn(key.value.trim()));
  return (
    <main id="main" class="sign-in" tabIndex={-1}>
      <div class="corner">
        <ThemeSwitch />
      </div>
      <form class="card" onSubmit={submit} aria-label="Sign in">
        <h1>
          <Mark /> Trunkline
        </h1>
        {signedOutBecause.value !== null && failure === null && (
          <p class="note warn" role="alert">
            {signedOutBecause.value}
          </p>
        )}
        <FailureNote failure={failure} />
        <TextField
          label="API key"
          value={key}
          type="password"
          required
          autofocus
          autocomplete="off"
          hint="It stays in this tab until you close it. trunkline key create prints one."
        />
        <button class="primary" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
