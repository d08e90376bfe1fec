export interface OverloadLimits {
  readonly maxEventLoopDelayMs: number;
  /** 100 is one core. */
  readonly maxCpuPercent: number;
}

export interface OverloadSample {
  readonly delayMs: number;
  readonly cpuPercent: number;
}

export interface OverloadVerdict {
  readonly isOverloaded: boolean;
  /** Samples in a row that contradict the verdict. */
  readonly against: number;
}

export const NOT_OVERLOADED: OverloadVerdict = { isOverloaded: false, against: 0 };

/** Samples in a row that reverse the verdict: one long garbage collection must not refuse calls. */
const TURN_AFTER = 2;
/** An overloaded process recovers only well below the limits, so that the verdict does not oscillate. */
const RELIEF = 0.8;

export function nextVerdict(verdict: OverloadVerdict, sample: OverloadSample, limits: OverloadLimits): OverloadVerdict {
  const factor = verdict.isOverloaded ? RELIEF : 1;
  const isOver = sample.delayMs > limits.maxEventLoopDelayMs * factor || sample.cpuPercent > limits.maxCpuPercent * factor;
  if (isOver === verdict.isOverloaded) return { ...verdict, against: 0 };
  const against = verdict.against + 1;
  return against >= TURN_AFTER ? { isOverloaded: isOver, against: 0 } : { ...verdict, against };
}
