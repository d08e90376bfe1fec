import type { AgentNote } from '../../model/media.js';
import type { ProviderSettings } from '../../model/provider-settings.js';
import type { Clock } from '../../../lib/clock.js';
import type { Log } from '../../../lib/log.js';
import { shownReason } from './json-message.js';

const MAX_WARNINGS = 5;

/** What the trace and the record of a call get of its agent's sessions at a provider. */
export class ProviderNotes {
  #dialledMs = 0;
  #warnings = 0;

  constructor(
    private readonly settings: Pick<ProviderSettings, 'provider' | 'url'>,
    private readonly emit: (note: AgentNote) => void,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  add(kind: AgentNote['kind'], text: string, isFailure = false): void {
    this.emit({ type: 'agent-note', kind, text, isFailure });
  }

  dialled(): void {
    this.#dialledMs = this.clock.nowMs();
  }

  accepted(): void {
    this.add('other', `session accepted by ${this.#name} after ${String(this.#tookMs)} ms`);
  }

  /** The session is over. */
  closed(message: string, isFailure: boolean): void {
    this.add('closed', `${this.#name}: ${message}`, isFailure);
  }

  /** The connection was not made, or did not last. */
  failed(message: string): void {
    this.add('other', `${this.#name}: ${shownReason(message)}, after ${String(this.#tookMs)} ms`, true);
  }

  /** The first ones of a call. @param isFailure it cost an answer */
  warn(message: string, isFailure = false): void {
    this.#warnings += 1;
    if (this.#warnings > MAX_WARNINGS) return;
    this.log.warn({ error: message }, 'agent.provider.warning');
    this.add('other', `${this.#name}: ${message}`, isFailure);
  }

  get #tookMs(): number {
    return Math.round(this.clock.nowMs() - this.#dialledMs);
  }

  /** Without the query, which may hold a credential. */
  get #name(): string {
    const { provider, url } = this.settings;
    return `${provider} (${URL.canParse(url) ? new URL(url).host : 'a URL that cannot be read'})`;
  }
}
