/** The package has no types. These are the used part of libfvad, WebRTC's voice activity detector. */
declare module '@echogarden/fvad-wasm' {
  export interface FvadModule {
    _malloc(bytes: number): number;
    _fvad_new(): number;
    _fvad_free(instance: number): void;
    _fvad_set_mode(instance: number, mode: number): number;
    _fvad_set_sample_rate(instance: number, rateHz: number): number;
    /** 1: voice, 0: none, -1: invalid frame length. */
    _fvad_process(instance: number, frame: number, samples: number): number;
    /** Replaced when the memory grows: read it again each time. */
    readonly HEAP16: Int16Array;
  }

  export default function load(): Promise<FvadModule>;
}
