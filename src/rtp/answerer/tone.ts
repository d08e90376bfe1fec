import { FRAME_SAMPLES, G711_CLOCK_RATE_HZ } from '../codec/g711.js';

/** 50 Hz each. */
const BIN_HZ = G711_CLOCK_RATE_HZ / FRAME_SAMPLES;
/** Without the hum of the mains. */
const FIRST_BIN = 5;
const LAST_BIN = 72;
/** A sine behind a Hann window fills two bins on either side; two tones 50 Hz apart do as well. */
const LOBE_BINS = 2;
/** Share of the energy that is in the lobe. */
const LEAST_SHARE = 0.8;

const WINDOW = Float64Array.from({ length: FRAME_SAMPLES }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (n + 0.5)) / FRAME_SAMPLES));
const COSINE = Float64Array.from({ length: FRAME_SAMPLES }, (_, n) => Math.cos((2 * Math.PI * n) / FRAME_SAMPLES));
const SINE = Float64Array.from({ length: FRAME_SAMPLES }, (_, n) => Math.sin((2 * Math.PI * n) / FRAME_SAMPLES));

const windowed = new Float64Array(FRAME_SAMPLES);
const power = new Float64Array(LAST_BIN + 1);

/** The frequency in hertz of a frame of 20 ms (16 bits, 8 kHz) that is one tone, or two close together; `null`: it is something else. */
export function frameTone(samples: Int16Array): number | null {
  for (let n = 0; n < FRAME_SAMPLES; n += 1) windowed[n] = (samples[n] ?? 0) * (WINDOW[n] ?? 0);
  let total = 0;
  let peak = FIRST_BIN;
  for (let bin = FIRST_BIN; bin <= LAST_BIN; bin += 1) {
    let [real, imaginary] = [0, 0];
    for (let n = 0, at = 0; n < FRAME_SAMPLES; n += 1, at = (at + bin) % FRAME_SAMPLES) {
      real += (windowed[n] ?? 0) * (COSINE[at] ?? 0);
      imaginary += (windowed[n] ?? 0) * (SINE[at] ?? 0);
    }
    const energy = real * real + imaginary * imaginary;
    power[bin] = energy;
    total += energy;
    if (energy > (power[peak] ?? 0)) peak = bin;
  }
  let [lobe, centre] = [0, 0];
  for (let bin = Math.max(FIRST_BIN, peak - LOBE_BINS); bin <= Math.min(LAST_BIN, peak + LOBE_BINS); bin += 1) {
    lobe += power[bin] ?? 0;
    centre += bin * (power[bin] ?? 0);
  }
  return total === 0 || lobe < LEAST_SHARE * total ? null : (centre / lobe) * BIN_HZ;
}
