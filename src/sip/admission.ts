import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { getHeader, type SipMessage } from './message/message.js';
import { SourceRates, SourceShares } from '../lib/source-rates.js';

export interface AdmissionLimits {
  /** New requests of one address; the stack answers more with 503. */
  readonly maxRequestsPerSecondPerSource: number;
  /** Multiple of that rate, over all messages, above which the stack drops them unparsed. */
  readonly dropAboveFactor: number;
  /** Substrings of User-Agent. */
  readonly scannerUserAgents: readonly string[];
  /** The response to a scanner: none, or 603. */
  readonly scannerAction: 'drop' | 'decline';
  readonly maxDialogs: number;
  readonly maxMemoryMb: number;
}

export interface AdmissionOptions {
  readonly limits: AdmissionLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly dialogCount: () => number;
  /** How far the applications that take calls are behind, if all of them are: the figure and its limit, for a person. `null`: one is not. */
  readonly behind: () => string | null;
  /** A call for which there is no capacity, by its Request-URI, and why: the figure and its limit. */
  readonly onFull: (uri: string, why: string) => void;
  /** Resident bytes of this process; throws while it has no file handle left. */
  readonly memory: { readonly rss: () => number };
}

/** Since the start. */
export interface AdmissionTotals {
  readonly scanners: number;
  readonly droppedByRate: number;
  readonly refusedByRate: number;
  readonly refusedByDialogs: number;
  readonly refusedByMemory: number;
  readonly refusedByDelay: number;
}

const MEMORY_SAMPLE_MS = 1_000;
/** Bounds what peers can make us store. */
const MAX_USER_AGENTS = 1_000;

/**
 * Overload control. A source above its rate loses new work first: the stack answers its requests outside dialogs with 503 and serves the
 * rest. Far above the rate it drops everything.
 */
export class Admission {
  readonly #newRequests: SourceRates;
  readonly #messages: SourceRates;
  readonly #shares: SourceShares;
  readonly #scanners: readonly string[];
  readonly #userAgents = new Map<string, boolean>();
  #totals: Record<keyof AdmissionTotals, number> = {
    scanners: 0,
    droppedByRate: 0,
    refusedByRate: 0,
    refusedByDialogs: 0,
    refusedByMemory: 0,
    refusedByDelay: 0,
  };
  #sampledMs = -Infinity;
  #isShortOfMemory = false;
  #residentMb = 0;

  constructor(private readonly options: AdmissionOptions) {
    const { limits, clock } = options;
    this.#newRequests = new SourceRates(limits.maxRequestsPerSecondPerSource, clock);
    this.#messages = new SourceRates(limits.maxRequestsPerSecondPerSource * limits.dropAboveFactor, clock);
    this.#shares = new SourceShares(clock);
    this.#scanners = limits.scannerUserAgents.map((part) => part.toLowerCase());
  }

  get totals(): AdmissionTotals {
    return this.#totals;
  }

  /** Call it for every message, before parsing. */
  isFlood(source: string): boolean {
    return !this.#messages.take(source) && this.#counted('droppedByRate');
  }

  /** The limit for one source. */
  get requestsPerSecond(): number {
    return this.options.limits.maxRequestsPerSecondPerSource;
  }

  get declinesScanners(): boolean {
    return this.options.limits.scannerAction === 'decline';
  }

  /**
   * A scanner looks for servers to abuse; any response confirms a find. User-Agent identifies it, or the display name of From, where
   * SIPVicious writes its name when User-Agent is changed.
   */
  isScanner(message: SipMessage): boolean {
    if (message.kind !== 'request' || this.#scanners.length === 0) return false;
    const caller = displayName(getHeader(message, 'from') ?? '');
    const isOne = this.#isScannerName(getHeader(message, 'user-agent') ?? '') || (caller !== '' && this.#scanners.includes(caller));
    return isOne && this.#counted('scanners');
  }

  /** Cached: the same few names recur. */
  #isScannerName(userAgent: string): boolean {
    const known = this.#userAgents.get(userAgent);
    if (known !== undefined) return known;
    const name = userAgent.toLowerCase();
    const isOne = this.#scanners.some((part) => name.includes(part));
    if (this.#userAgents.size < MAX_USER_AGENTS && userAgent.length <= 200) this.#userAgents.set(userAgent, isOne);
    return isOne;
  }

  /** Call it for a request outside dialogs that is not a retransmission. @param isAdmitted another process counted it against the rate */
  isOverRate(source: string, isAdmitted = false): boolean {
    this.#shares.count(source);
    return !isAdmitted && !this.#newRequests.take(source) && this.#counted('refusedByRate');
  }

  /** Counts a request that another process gets. False: it is over the rate, and is to be refused here. */
  admits(source: string): boolean {
    return this.#newRequests.take(source);
  }

  /**
   * Why the server has no capacity for another call of this source: the figure and its limit; `null`: it has. While the applications are
   * behind, the sources that send most lose their calls; one that sends less than half of an equal share of all new requests keeps its own.
   */
  lackOf(source: string, uri: string): string | null {
    const why = this.#lackOfRoom(source);
    if (why !== null) this.options.onFull(uri, why);
    return why;
  }

  #lackOfRoom(source: string): string | null {
    const { maxDialogs, maxMemoryMb } = this.options.limits;
    const dialogs = this.options.dialogCount();
    if (dialogs >= maxDialogs) {
      this.#counted('refusedByDialogs');
      return `calls in progress: ${String(dialogs)}, limit ${String(maxDialogs)}`;
    }
    if (this.#lacksMemory()) {
      this.#counted('refusedByMemory');
      return `${String(this.#residentMb)} MB of memory in use, limit ${String(maxMemoryMb)} MB`;
    }
    const behind = this.#shares.isModest(source) ? null : this.options.behind();
    if (behind !== null) this.#counted('refusedByDelay');
    return behind;
  }

  #counted(what: keyof AdmissionTotals): true {
    this.#totals[what] += 1;
    return true;
  }

  /** Reads memory at most once a second; logs each crossing once. */
  #lacksMemory(): boolean {
    const { clock, log, memory, limits } = this.options;
    if (clock.nowMs() - this.#sampledMs < MEMORY_SAMPLE_MS) return this.#isShortOfMemory;
    this.#sampledMs = clock.nowMs();
    let resident: number;
    try {
      resident = Math.round(memory.rss() / (1 << 20));
    } catch {
      return this.#isShortOfMemory;
    }
    this.#residentMb = resident;
    const isShort = resident > limits.maxMemoryMb;
    if (isShort !== this.#isShortOfMemory) {
      const fields = { resident_mb: resident, limit_mb: limits.maxMemoryMb };
      if (isShort) log.error(fields, 'sip.memory.high');
      else log.info(fields, 'sip.memory.normal');
    }
    this.#isShortOfMemory = isShort;
    return isShort;
  }
}

/** In lower case, without quotes; '' if absent. */
function displayName(from: string): string {
  const bracket = from.indexOf('<');
  if (bracket <= 0) return '';
  return from.slice(0, bracket).replaceAll('"', '').trim().toLowerCase();
}
