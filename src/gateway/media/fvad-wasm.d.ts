/** The package has no types of its own. The part of it that is used: libfvad, which is WebRTC's voice activity detector. */
declare module '@echogarden/fvad-wasm' {
  export interface FvadModule {
    _malloc(bytes: number): number;
    _fvad_new(): number;
    _fvad_free(instance: number): void;
    _fvad_set_mode(instance: number, mode: number): number;
    _fvad_set_sample_rate(instance: number, rateHz: number): number;
    /** 1: voice, 0: none, -1: not a length of frame that it takes. */
    _fvad_process(instance: number, frame: number, samples: number): number;
    /** Another array when the memory has grown: to be read anew each time. */
    readonly HEAP16: Int16Array;
  }

  export default function load(): Promise<FvadModule>;
}
