// What the changes of rate share.

const KAISER_BETA = 5.6;

/** Kaiser's window for more than 55 dB in the stop band, not scaled. @param position 0 is its middle, 1 its end */
export function kaiser(position: number): number {
  return bessel(KAISER_BETA * Math.sqrt(1 - position ** 2));
}

/** The modified Bessel function of the first kind and order 0. */
function bessel(x: number): number {
  let [sum, term] = [1, 1];
  for (let k = 1; k < 30; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/** The nearest sample of 16 bits. */
export function toSample(value: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(value)));
}
