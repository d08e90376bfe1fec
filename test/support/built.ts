// What starts threads is tested as it is built: a thread loads plain JavaScript, and starts in a fraction of the time.

const built = (module: string): Promise<unknown> => import(new URL(`../../dist/${module}.js`, import.meta.url).href);

type MediaServiceModule = typeof import('../../src/gateway/media-thread/media-service.js');
type AudioFileModule = typeof import('../../src/gateway/agents/audio-file.js');
type ResultPathsModule = typeof import('../../src/gateway/agents/result-paths.js');
type BatchReaderModule = typeof import('../../src/gateway/api/batch-reader.js');
type PortsModule = typeof import('../../src/gateway/ports/ports.js');

export const { createMediaService } = (await built('gateway/media-thread/media-service')) as MediaServiceModule;
export const { ThreadedAudioDecoder } = (await built('gateway/agents/audio-file')) as AudioFileModule;
export const { ThreadedResultPaths } = (await built('gateway/agents/result-paths')) as ResultPathsModule;
export const { batchReader } = (await built('gateway/api/batch-reader')) as BatchReaderModule;
/** The class that these modules throw: another one than that of the sources. */
export const { MediaUnavailableError } = (await built('gateway/ports/ports')) as PortsModule;
