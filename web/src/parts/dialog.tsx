import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { FailureNote, useSubmit } from './form.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** The browser's own modal: it keeps the focus, closes on Escape, and gives the focus back. */
export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const [before, shown] = [document.activeElement, dialog.current];
    shown?.showModal();
    return () => {
      shown?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  // The browser would close it first and send `close` later: a key pressed meanwhile would be lost.
  const onCancel = (event: Event): void => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog ref={dialog} aria-labelledby={id} onCancel={onCancel} onClose={() => dialog.current !== null && onClose()}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet icon" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps extends DialogProps {
  /** Text of the button. */
  readonly action: string;
  readonly work: () => Promise<void>;
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, action, work, onClose, children }: ConfirmProps): JSX.Element {
  const { submit, isBusy, failure } = useSubmit(async () => {
    await work();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        <FailureNote failure={failure} />
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="danger" disabled={isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
