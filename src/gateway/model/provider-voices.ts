import type { ProviderName } from './provider.js';

// Voices that providers name in their libraries. They add voices, and have those of their customers: any other name is taken too.

export interface ProviderVoice {
  readonly name: string;
  /** A language code of the product; `null`: any language. */
  readonly language: string | null;
  readonly provider: ProviderName;
}

const OPENAI = 'alloy ash ballad cedar coral echo marin sage shimmer verse';
const GEMINI =
  'Achernar Achird Algenib Algieba Alnilam Aoede Autonoe Callirrhoe Charon Despina Enceladus Erinome Fenrir Gacrux Iapetus Kore Laomedeia ' +
  'Leda Orus Pulcherrima Puck Rasalgethi Sadachbia Sadaltager Schedar Sulafat Umbriel Vindemiatrix Zephyr Zubenelgenubi';
/** By ISO 639-1. */
const DEEPGRAM: Readonly<Record<string, { readonly language: string; readonly names: string }>> = {
  en: {
    language: 'ENG',
    names:
      'amalthea andromeda apollo arcas aries asteria athena atlas aurora callista cora cordelia delia draco electra harmonia helena hera hermes hyperion iris janus juno jupiter luna mars minerva neptune odysseus ophelia orion orpheus pandora phoebe pluto saturn selene thalia theia vesta zeus',
  },
  es: {
    language: 'SPA',
    names: 'agustina alvaro antonia aquila carina celeste diana estrella gloria javier luciano nestor olivia selena silvia sirio valerio',
  },
  de: { language: 'GER', names: 'aurelia elara fabian julius kara lara viktoria' },
  nl: { language: 'DUT', names: 'beatrix cornelia daphne hestia lars leda rhea roman sander' },
  fr: { language: 'FRE', names: 'agathe hector' },
  it: { language: 'ITA', names: 'cesare cinzia demetra dionisio elio flavio livia maia melia perseo' },
  ja: { language: 'JPN', names: 'ama ebisu fujin izanami uzume' },
};

const named = (provider: ProviderName, names: string): ProviderVoice[] =>
  names.split(' ').map((name) => ({ name, language: null, provider }));

export const PROVIDER_VOICES: readonly ProviderVoice[] = [
  ...named('openai-realtime', OPENAI),
  ...Object.entries(DEEPGRAM).flatMap(([code, { language, names }]) =>
    names.split(' ').map((name): ProviderVoice => ({ name: `aura-2-${name}-${code}`, language, provider: 'deepgram' })),
  ),
  ...named('gemini-live', GEMINI),
];
