/** Input of the E-model. */
export interface HeardQuality {
  /** Share of lost packets, 0 to 1. */
  readonly lossRate: number;
  /** From mouth to ear, one way, in milliseconds. */
  readonly delayMs: number;
}

/** ITU-T G.107 (06/2015) §7.7: R with all parameters at their defaults. */
const DEFAULT_R = 93.2;
/** Ie and Bpl of ITU-T G.113 Appendix I for G.711 with packet loss concealment, at random loss. */
const G711_EQUIPMENT_IMPAIRMENT = 0;
const G711_LOSS_ROBUSTNESS = 25.1;
/** One-way delay from which turn-taking suffers. */
const DELAY_KNEE_MS = 177.3;

/** The mean opinion score of G.711, 1.0 to 4.5, by the E-model of ITU-T G.107 with defaults for all but loss and delay. */
export function meanOpinionScore({ lossRate, delayMs }: HeardQuality): number {
  return scoreOfRating(DEFAULT_R - delayImpairment(Math.max(0, delayMs)) - lossImpairment(Math.min(1, Math.max(0, lossRate))));
}

/** G.107 §7.5 with BurstR = 1: Ie,eff = Ie + (95 - Ie) · Ppl / (Ppl + Bpl). */
function lossImpairment(lossRate: number): number {
  const percent = 100 * lossRate;
  return G711_EQUIPMENT_IMPAIRMENT + ((95 - G711_EQUIPMENT_IMPAIRMENT) * percent) / (percent + G711_LOSS_ROBUSTNESS);
}

/**
 * Id of G.107 §7.4 at the default echo loss, as two straight lines: Cole and Rosenbluth, “Voice over IP performance monitoring”,
 * ACM SIGCOMM Computer Communication Review 31(2), 2001.
 */
function delayImpairment(delayMs: number): number {
  return 0.024 * delayMs + 0.11 * Math.max(0, delayMs - DELAY_KNEE_MS);
}

/** G.107 Annex B: R, 0 to 100, as a mean opinion score. */
export function scoreOfRating(r: number): number {
  if (r <= 0) return 1;
  if (r >= 100) return 4.5;
  // The cubic dips below 1 for the smallest of R.
  return Math.max(1, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6);
}
