/** An in-place radix-2 fast Fourier transform of one size. */
export class Fft {
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;

  /** @param size a power of two */
  constructor(readonly size: number) {
    if (size < 2 || (size & (size - 1)) !== 0) throw new RangeError(`FFT size ${size}`);
    this.#cosines = Float64Array.from({ length: size / 2 }, (_, i) => Math.cos((2 * Math.PI * i) / size));
    this.#sines = Float64Array.from({ length: size / 2 }, (_, i) => Math.sin((2 * Math.PI * i) / size));
  }

  /** Both arrays hold `size` values. */
  transform(real: Float64Array, imaginary: Float64Array): void {
    this.#reorder(real, imaginary);
    for (let half = 1; half < this.size; half *= 2) {
      const stride = this.size / (2 * half);
      for (let start = 0; start < this.size; start += 2 * half) {
        for (let i = 0; i < half; i += 1) this.#butterfly(real, imaginary, start + i, start + i + half, i * stride);
      }
    }
  }

  /** Undoes `transform`. */
  inverse(real: Float64Array, imaginary: Float64Array): void {
    // Exchanging the parts before and after turns the forward transform into the inverse one.
    this.transform(imaginary, real);
    for (let i = 0; i < this.size; i += 1) {
      real[i] = (real[i] ?? 0) / this.size;
      imaginary[i] = (imaginary[i] ?? 0) / this.size;
    }
  }

  #butterfly(real: Float64Array, imaginary: Float64Array, a: number, b: number, twiddle: number): void {
    const cosine = this.#cosines[twiddle] ?? 0;
    const sine = this.#sines[twiddle] ?? 0;
    const bReal = (real[b] ?? 0) * cosine + (imaginary[b] ?? 0) * sine;
    const bImaginary = (imaginary[b] ?? 0) * cosine - (real[b] ?? 0) * sine;
    const aReal = real[a] ?? 0;
    const aImaginary = imaginary[a] ?? 0;
    real[b] = aReal - bReal;
    imaginary[b] = aImaginary - bImaginary;
    real[a] = aReal + bReal;
    imaginary[a] = aImaginary + bImaginary;
  }

  #reorder(real: Float64Array, imaginary: Float64Array): void {
    for (let i = 1, j = 0; i < this.size; i += 1) {
      let bit = this.size >> 1;
      for (; (j & bit) !== 0; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i >= j) continue;
      [real[i], real[j]] = [real[j] ?? 0, real[i] ?? 0];
      [imaginary[i], imaginary[j]] = [imaginary[j] ?? 0, imaginary[i] ?? 0];
    }
  }
}
