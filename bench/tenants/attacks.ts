import type { Attacker, Page } from './attacker.js';

/** One turn of an attack; many run at once, each again and again. */
export type Turn = () => Promise<void>;

export interface Attack {
  /** The place in docs/security.md where it makes the gateway work. */
  readonly place: string;
  readonly what: string;
  /** Makes what it needs; the turn begins when it is asked. */
  readonly prepare: (attacker: Attacker) => Promise<Turn>;
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_none, index) => make(index));
const page =
  (type: string, body: string): Page =>
  (_request, response) =>
    void response.writeHead(200, { 'content-type': type }).end(body);
const json = (body: string): Page => page('application/json', body);
const xml = (body: string): Page => page('text/xml', body);

/** As deep as a body may be, and wide. */
const DEEP = `${'{"a":'.repeat(28)}[${times(50_000, () => '1').join(',')}]${'}'.repeat(28)}`;

async function tool(attacker: Attacker, path: string, fields: object): Promise<Turn> {
  const id = await attacker.tool({
    name: `t${path.slice(1)}`,
    method: 'POST',
    url: `http://${attacker.host}${path}`,
    body: {},
    input_schema: { type: 'object', example: null, required: [], properties: {} },
    timeout: 10_000,
    ...fields,
  });
  return async () => void (await attacker.api('POST', `/v1/tools/${id}/invoke`, { input: {} }));
}

/** Calls to a number with a voice webhook that answers this. */
async function twiml(attacker: Attacker, path: string, body: string): Promise<Turn> {
  attacker.pages.set(path, xml(body));
  const number = await attacker.numberFor({ options: { voice_url: `http://${attacker.host}${path}` } });
  return () => attacker.call(number);
}

/** Calls to a number whose agent is a bot that does this. */
async function bot(
  attacker: Attacker,
  path: string,
  onStart: (streamSid: string, send: (message: object | string) => void) => void,
): Promise<Turn> {
  attacker.bots.set(path, (socket) => {
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) return;
      const message = JSON.parse(data.toString()) as { readonly event: string; readonly streamSid?: string };
      if (message.event !== 'start' || message.streamSid === undefined) return;
      const send = (out: object | string): void => socket.send(typeof out === 'string' ? out : JSON.stringify(out));
      const timer = setInterval(() => onStart(message.streamSid ?? '', send), 20);
      socket.once('close', () => clearInterval(timer));
    });
  });
  const agent = await attacker.agent({ stream: { url: `ws://${attacker.host}${path}`, format: 'twilio' } });
  const number = await attacker.numberFor({ agent_id: agent });
  return () => attacker.call(number);
}

function batch(rows: readonly string[]): (attacker: Attacker) => Promise<Turn> {
  const csv = ['phone_number,time_zone,name', ...rows].join('\n');
  return async (attacker) => {
    const [from, agent] = [await attacker.outboundNumber(), await attacker.agent({})];
    const fields = { name: 'attack', from, agent_id: agent, calls_per_second: '1', max_concurrent_calls: '1', start: 'true' };
    const query = new URLSearchParams(fields).toString();
    return async () => void (await attacker.api('POST', `/v2/batches?${query}`, csv, 'text/csv'));
  };
}

export const ATTACKS: readonly Attack[] = [
  {
    place: 'JSONPath over a tool’s answer',
    what: '50 paths `$..*` over 480 kB of nested arrays',
    prepare: (attacker) => {
      attacker.pages.set('/arrays', json(JSON.stringify(times(160_000, () => []))));
      return tool(attacker, '/arrays', { response: Object.fromEntries(times(50, (at) => [`n${String(at)}`, '$..*'])) });
    },
  },
  {
    place: 'templates of tools and prompts',
    what: 'a body of 60,000 characters full of placeholders',
    prepare: (attacker) => {
      attacker.pages.set('/template', json('{}'));
      return tool(attacker, '/template', { body: { text: '{{input.a.b.c.d}}'.repeat(3_400) }, response: {} });
    },
  },
  {
    place: 'tool results',
    what: 'answers of 130 kB of JSON, 60 deep, which the agent gets in whole',
    prepare: (attacker) => {
      attacker.pages.set('/result', json(`${'{"a":'.repeat(60)}[${times(65_000, () => '1').join(',')}]${'}'.repeat(60)}`));
      return tool(attacker, '/result', { response: { id: '$.a' } });
    },
  },
  {
    place: 'TwiML',
    what: 'documents of 60 KiB, 8 deep, 200 verbs, and one that redirects to itself',
    prepare: async (attacker) => {
      const verbs = times(190, () => `<Say>${'word '.repeat(55)}</Say>`).join('');
      const long = await twiml(attacker, '/long', `<Response>${verbs}</Response>`);
      const loop = await twiml(attacker, '/loop', `<Response><Redirect>http://${attacker.host}/loop</Redirect></Response>`);
      return async () => void (await Promise.all([long(), loop()]));
    },
  },
  {
    place: 'CSV of a batch',
    what: '100,000 rows of quoted cells',
    prepare: batch(times(100_000, (at) => `"+1555${String(1_000_000 + at)}","","""${String(at)}"""`)),
  },
  {
    place: 'time zones',
    what: '30,000 rows with odd spellings of a zone',
    prepare: batch(times(30_000, (at) => `+1555${String(1_000_000 + at)},${oddly('america/argentina/comodrivadavia', at)},x`)),
  },
  {
    place: 'JSON bodies',
    what: 'bodies of 100 kB, 30 deep, with 50,000 values',
    prepare: (attacker) =>
      Promise.resolve(async () => void (await attacker.api('POST', '/v1/agents', `{"name":"x","prompt":"x","metadata":${DEEP}}`))),
  },
  {
    place: 'patterns',
    what: 'names and filters that a pattern would backtrack on',
    prepare: (attacker) => {
      const text = encodeURIComponent(`${'a'.repeat(250)}!`);
      return Promise.resolve(async () => void (await attacker.api('GET', `/v1/calls?from=${text}&sip_call_id=${text}&limit=500`)));
    },
  },
  {
    place: 'transcripts',
    what: '100 entries of 2,000 characters in each message',
    prepare: (attacker) =>
      bot(attacker, '/transcripts', (streamSid, send) =>
        send({
          event: 'transcript',
          streamSid,
          transcript: { entries: times(100, () => ({ speaker: 'agent', text: 'word '.repeat(400) })) },
        }),
      ),
  },
  {
    place: 'pronunciation guide',
    what: '500 words, spoken in each call',
    prepare: async (attacker) => {
      const guide = times(500, (at) => ({
        word: `${'a'.repeat(at % 60)}b${String(at)}`,
        pronunciation: 'x',
        case_sensitive: false,
        spaced: false,
      }));
      const agent = await attacker.agent({ pronunciation_guide: guide, first_sentence: 'a'.repeat(190) });
      const number = await attacker.numberFor({ agent_id: agent });
      return () => attacker.call(number);
    },
  },
  {
    place: 'webhook answers',
    what: 'a voice webhook that answers 60 MB, and one that answers a byte a second',
    prepare: async (attacker) => {
      attacker.pages.set(
        '/huge',
        (_request, response) => void response.writeHead(200, { 'content-type': 'text/xml' }).end(Buffer.alloc(60 << 20, 32)),
      );
      attacker.pages.set('/slow', (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/xml' });
        const timer = setInterval(() => response.write(' '), 1_000);
        response.once('close', () => clearInterval(timer));
      });
      const numbers = await Promise.all(
        ['/huge', '/slow'].map((path) => attacker.numberFor({ options: { voice_url: `http://${attacker.host}${path}` } })),
      );
      return async () => void (await Promise.all(numbers.map((number) => attacker.call(number))));
    },
  },
  {
    place: 'WebSocket messages',
    what: '100 messages of 20 kB each 20 ms, and broken ones',
    prepare: (attacker) =>
      bot(attacker, '/flood', (streamSid, send) => {
        const payload = 'A'.repeat(20_000);
        for (let message = 0; message < 100; message += 1) send({ event: 'media', streamSid, media: { payload } });
        send('{"event":');
        send('['.repeat(10_000));
      }),
  },
  {
    place: 'audio files',
    what: '`<Play>` of 8 MB that are no audio',
    prepare: (attacker) => {
      const noise = Buffer.alloc(8_000_000, 0xff);
      for (let frame = 0; frame < noise.length; frame += 417) noise.set([0xff, 0xfb, 0x90, 0x00], frame);
      attacker.pages.set('/noise.mp3', (_request, response) => void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(noise));
      return twiml(attacker, '/play', `<Response><Play>http://${attacker.host}/noise.mp3</Play></Response>`);
    },
  },
  {
    place: 'Twilio’s lists',
    what: 'pages of 1,000 with every filter',
    prepare: (attacker) =>
      Promise.resolve(async () => {
        const filters = 'PageSize=1000&Status=completed&StartTime%3E=2020-01-01&From=%2B15557000001&To=%2B15557000001';
        await Promise.all([attacker.twilio(`/Calls.json?${filters}`), attacker.twilio('/Calls.json?PageSize=1000')]);
      }),
  },
  {
    place: 'names of hosts',
    what: 'bots and tools at names whose DNS server says nothing',
    prepare: async (attacker) => {
      const invoke = await tool(attacker, '/mute', { url: 'http://nobody.mute.test/tool', response: {} });
      const agent = await attacker.agent({ stream: { url: 'ws://nobody.mute.test/bot', format: 'twilio' } });
      const number = await attacker.numberFor({ agent_id: agent });
      return async () => void (await Promise.all([invoke(), attacker.call(number)]));
    },
  },
];

/** A spelling of a name, another for each number. */
function oddly(name: string, number: number): string {
  return Array.from(name, (letter, at) => ((number >> (at % 16)) & 1 ? letter.toUpperCase() : letter)).join('');
}
