import { describe, expect, it } from 'vitest';
import { DEFAULT_CONVERSATION } from '../../../../src/gateway/model/conversation.js';
import { parseTwiml } from '../../../../src/gateway/twilio/twiml.js';
import { afterVerb, enterDocument, nextStep, type VerbOutcome, type VoiceScript } from '../../../../src/gateway/twilio/voice-script.js';
import { MAX_XML_BYTES } from '../../../../src/gateway/twilio/xml.js';
import { cookieHeader, withCookies } from '../../../../src/gateway/twilio/cookies.js';
import { twilioSignature } from '../../../../src/gateway/twilio/signature.js';

const BASE = 'https://app.example/voice';
const DIAL_RULES = { ringTimeoutMs: 30_000, timeLimitMs: null, callerId: null, sipHeaders: {} };
const STREAM = { url: 'wss://bot.example/ws', name: null, tracks: ['inbound'], parameters: {}, statusCallback: null } as const;

function read(body: string) {
  const document = parseTwiml(`<?xml version="1.0" encoding="UTF-8"?>\n<Response>${body}</Response>`);
  if (!document.ok) throw new Error(document.error);
  return document.value;
}

function problem(text: string): string {
  const document = parseTwiml(text);
  return document.ok ? 'none' : document.error;
}

describe('a TwiML document', () => {
  it('says, plays and pauses, one after the other by one agent', () => {
    const { verbs, warnings } = read(
      '<Say voice="alice" language="de-DE" loop="2"> Hallo &amp; <break/>guten Tag </Say><Play>/a.wav</Play><Play digits="1w2"/><Pause length="3"/>',
    );
    expect(verbs).toEqual([
      {
        verb: 'speak',
        clips: [
          { kind: 'say', text: 'Hallo & guten Tag', language: 'de-DE', voice: 'alice', loop: 2 },
          { kind: 'play', url: '/a.wav', loop: 1 },
          { kind: 'digits', digits: '1w2' },
          { kind: 'pause', ms: 3_000 },
        ],
      },
    ]);
    expect(warnings).toEqual(['<break> in <Say> has no effect: its text is spoken.']);
  });

  it.each([
    ['One moment<break time="1s"/>555', 'One moment 555'],
    ['Call<say-as interpret-as="digits">555</say-as>now', 'Call 555 now'],
    ['<p>One.</p><p><s>Two.</s><s>Three</s></p>', 'One. Two. Three'],
    ['Is <emphasis>that</emphasis>, <prosody rate="slow">well</prosody>?', 'Is that, well?'],
    ['Tom &amp; Ann\n   are <![CDATA[<here>]]>', 'Tom & Ann are <here>'],
    ['The <sub alias="World Wide Web">WWW</sub>.', 'The World Wide Web.'],
    ['<break/>', undefined],
  ])('speaks the words of SSML apart: %s', (body, text) => {
    const [say] = read(`<Say>${body}</Say>`).verbs;
    expect(say).toMatchObject({ verb: 'speak', clips: text === undefined ? [] : [{ kind: 'say', text }] });
  });

  it('warns of SSML, voices and languages of Say that have no effect, also within Gather', () => {
    const say = '<Say voice="Polly.Joanna-Neural" language="tlh"><s>A</s><s><emphasis>B</emphasis></s><sub alias="C">c</sub></Say>';
    const expected = [
      '<s>, <emphasis> in <Say> has no effect: its text is spoken.',
      'The voice Polly.Joanna-Neural of <Say> is not here: the voice of its language speaks.',
      'The language tlh of <Say> has no voice here: an English one speaks.',
    ];
    expect(read(say).warnings).toEqual(expected);
    expect(read(`<Gather>${say}</Gather>`).warnings).toEqual(expected);
    const voices = ['man', 'Alice', 'woman', 'de', 'en-us+f3', 'Deepgram.aura-2-thalia-en', 'ElevenLabs.Rachel', 'OpenAI.coral'];
    const languages = ['en-US', 'de-AT', 'GER', 'zh-CN', 'nb-NO', 'fr', 'pt-BR'];
    const known = [...voices.map((voice) => `<Say voice="${voice}">A</Say>`), ...languages.map((tag) => `<Say language="${tag}">A</Say>`)];
    expect(read(known.join('')).warnings).toEqual([]);
    const many = Array.from({ length: 5_000 }, (_, n) => `<t${String(n)}/>`).join('');
    expect(read(`<Say>${many}</Say>`).warnings.join().length).toBeLessThan(200);
  });

  it('gathers digits by the defaults of Twilio', () => {
    expect(read('<Gather><Say>Press</Say></Gather>').verbs).toMatchObject([
      {
        verb: 'gather',
        clips: [{ text: 'Press' }],
        rules: { numDigits: null, finishOnKey: '#', timeoutMs: 5_000, action: null, actionOnEmptyResult: false },
      },
    ]);
    expect(
      read('<Gather input="dtmf" numDigits="4" finishOnKey="" timeout="9" action="/a" method="get" actionOnEmptyResult="true"/>').verbs,
    ).toMatchObject([
      { rules: { numDigits: 4, finishOnKey: '', timeoutMs: 9_000, action: { url: '/a', method: 'GET' }, actionOnEmptyResult: true } },
    ]);
  });

  it('connects a stream with its parameters, dials, redirects, rejects and hangs up', () => {
    expect(
      read(
        '<Connect action="/after"><Stream url="wss://bot.example/ws"><Parameter name="a" value="1"/><Parameter name="b" value="2"/></Stream></Connect>' +
          '<Dial>+15550100100</Dial><Dial><Number>+15550100101</Number></Dial><Dial><Sip>sips:a@b.example</Sip></Dial>' +
          '<Redirect method="GET">/next</Redirect><Reject reason="busy"/><Hangup/>',
      ).verbs,
    ).toEqual([
      { verb: 'stream', stream: { ...STREAM, parameters: { a: '1', b: '2' } }, action: { url: '/after', method: 'POST' } },
      { verb: 'dial', to: '+15550100100', rules: DIAL_RULES, action: null },
      { verb: 'dial', to: '+15550100101', rules: DIAL_RULES, action: null },
      { verb: 'dial', to: 'sips:a@b.example', rules: DIAL_RULES, action: null },
      { verb: 'redirect', to: { url: '/next', method: 'GET' } },
      { verb: 'reject', reason: 'busy' },
      { verb: 'hangup' },
    ]);
  });

  it('starts and stops streams beside the verbs', () => {
    expect(
      read(
        '<Start><Stream url="wss://bot.example/ws" name="copy" track="both_tracks" statusCallback="/s" statusCallbackMethod="GET"/></Start>' +
          '<Stop><Stream name="copy"/></Stop>',
      ),
    ).toEqual({
      verbs: [
        {
          verb: 'start-stream',
          stream: { ...STREAM, name: 'copy', tracks: ['inbound', 'outbound'], statusCallback: { url: '/s', method: 'GET' } },
        },
        { verb: 'stop-stream', name: 'copy' },
      ],
      warnings: [],
    });
  });

  it('connects a conversation with its rules, voices and parameters', () => {
    const { verbs, warnings } = read(
      '<Connect action="/after"><ConversationRelay url="wss://app.example/r" welcomeGreeting="Hi" welcomeGreetingInterruptible="false" ' +
        'interruptible="speech" interruptSensitivity="low" preemptible="true" dtmfDetection="true" reportInputDuringAgentSpeech="any" ' +
        'partialPrompts="true" hints="Ada, SRTP" language="de-DE" ttsProvider="ElevenLabs" voice="anna">' +
        '<Language code="en-US" voice="Deepgram.aura-2-thalia-en"/><Parameter name="a" value="1"/></ConversationRelay></Connect>',
    );
    expect(verbs).toEqual([
      {
        verb: 'conversation',
        conversation: {
          url: 'wss://app.example/r',
          parameters: { a: '1' },
          rules: {
            greeting: { text: 'Hi', interruptible: 'none' },
            interruptible: 'speech',
            sensitivity: 'low',
            preemptible: true,
            reportsDigits: true,
            reportsWhileSpeaking: 'any',
            partialPrompts: true,
            hints: ['Ada', 'SRTP'],
            ttsLanguage: 'de-DE',
            transcriptionLanguage: 'de-DE',
            voice: { provider: 'elevenlabs', voice: 'anna' },
            languages: { 'en-US': { provider: 'deepgram', voice: 'aura-2-thalia-en' } },
          },
        },
        action: { url: '/after', method: 'POST' },
      },
    ]);
    expect(warnings).toEqual([]);
  });

  it('warns of the parts of a conversation without effect here', () => {
    const { verbs, warnings } = read(
      '<Connect><ConversationRelay url="wss://app.example/r" ttsProvider="Google" voice="en-US-Journey-O" transcriptionProvider="Google" ' +
        'interruptible="loud" debug="all"><Language ttsProvider="Deepgram"/></ConversationRelay></Connect>',
    );
    expect(verbs).toMatchObject([{ conversation: { rules: { ...DEFAULT_CONVERSATION } } }]);
    expect(warnings).toEqual([
      'The attribute debug of <ConversationRelay> has no effect here.',
      'The attribute interruptible of <ConversationRelay> is none of none, false, dtmf, speech, any, true: the default holds.',
      'The transcriptionProvider Google is not here: Deepgram recognizes.',
      'The ttsProvider Google is not here: the default voice speaks.',
      '<Language> has no code: it is skipped.',
    ]);
  });

  it('skips what is unknown, with a warning', () => {
    const { verbs, warnings } = read('<Whistle/><Say rate="fast">Hi</Say><Gather speechTimeout="1" numDigits="99"/>');
    expect(verbs.map(({ verb }) => verb)).toEqual(['speak', 'gather']);
    expect(warnings).toEqual([
      '<Whistle> is no verb that is supported: it is skipped.',
      'The attribute rate of <Say> has no effect here.',
      'The attribute speechTimeout of <Gather> has no effect here.',
      'The attribute numDigits of <Gather> is not between 1 and 64: the default holds.',
    ]);
  });

  // Twilio warns of these, and the call goes on: errors 13214, 13223, 13310 to 13326, 13410, 13430, 13710, 13810, 13910.
  it.each([
    ['<Gather finishOnKey="#*"/>', { rules: { finishOnKey: '#' } }, 'finishOnKey of <Gather> is not one key'],
    ['<Gather finishOnKey="x"/>', { rules: { finishOnKey: '#' } }, 'finishOnKey of <Gather> is not one key'],
    ['<Gather input="voice"/>', { verb: 'gather' }, 'input of <Gather> is none of dtmf, speech'],
    ['<Gather input="DTMF,speech"/>', { verb: 'gather' }, '<Gather> takes keys only.'],
    ['<Gather method="PUT" action="/a"/>', { rules: { action: { method: 'POST' } } }, 'method of <Gather> is none of get, post'],
    ['<Gather timeout="-1" numDigits="all"/>', { rules: { timeoutMs: 5_000, numDigits: null } }, 'numDigits of <Gather>'],
    ['<Gather><Dial>+1</Dial></Gather>', { clips: [] }, '<Dial> has no effect here'],
    ['<Play digits="hello"/>', { verb: 'speak', clips: [] }, 'digits of <Play> are not'],
    ['<Play loop="-2">/a.wav</Play>', { clips: [{ loop: 1 }] }, 'loop of <Play> is not between'],
    ['<Pause length="soon"/>', { clips: [{ ms: 1_000 }] }, 'length of <Pause> is not between'],
    ['<Redirect method="PATCH">/a</Redirect>', { to: { method: 'POST' } }, 'method of <Redirect> is none of get, post'],
    ['<Reject reason="full"/>', { reason: 'rejected' }, 'reason of <Reject> is none of rejected, busy'],
    ['<Dial callerId="anonymous" timeout="9999">+15550100100</Dial>', { rules: DIAL_RULES }, 'callerId of <Dial> is not'],
    [
      '<Connect><Stream url="wss://x" track="both_tracks"/></Connect>',
      { stream: { tracks: ['inbound'] } },
      'track of <Stream> is none of inbound_track',
    ],
    ['<Connect><Stream url="wss://x" track="constructor"/></Connect>', { stream: { tracks: ['inbound'] } }, 'track of <Stream> is none of'],
    ['<Start><Stream url="wss://x" track="mine"/></Start>', { stream: { tracks: ['inbound'] } }, 'track of <Stream> is none of'],
    [
      '<Start><Stream url="wss://x" statusCallback="/s" statusCallbackMethod="PUT"/></Start>',
      { verb: 'start-stream' },
      'statusCallbackMethod of',
    ],
  ])('warns of an invalid value, and uses its default: %s', (body, verb, warning) => {
    const { verbs, warnings } = read(body);
    expect(verbs).toMatchObject([verb]);
    expect(warnings.join('\n')).toContain(warning);
  });

  it('skips a Dial without a number', () => {
    expect(read('<Dial action="/a"/><Hangup/>')).toEqual({
      verbs: [{ verb: 'hangup' }],
      warnings: ['<Dial> has no number: it is skipped.'],
    });
  });

  it.each([
    ['', /^The document is empty\.$/],
    [' \n ', /^The document is empty\.$/],
    ['<!-- nothing -->', /must contain a root element/],
    ['{"error":"no such  tenant"}', /^The document is no XML: it begins with "\{"error":"no such tenant"\}"\.$/],
    ['\u0000Hello'.repeat(50), /^The document is no XML: it begins with "Hello Hello.{1,40}"\.$/],
    ['<!doctype html><html><body>Not found</body></html>', /^The document is HTML, not TwiML\.$/],
    [' <HTML lang="en">', /^The document is HTML, not TwiML\.$/],
    ['<Response><Connect><Stream url="wss://a/b?x=1&y=2"/></Connect></Response>', /\(1:45: a bare &: write &amp;\)/],
    ['<Response>\n<Say>Tom & Ann</Say></Response>', /\(2:9: a bare &: write &amp;\)/],
    ['<Response><Say>Tom &amp; Ann, &#38;, R&D; </Say><Redirect>/a?b=1&c=2;</Redirect></Response>', /undefined entity/],
    ['<Response><!-- a & b --><Say><![CDATA[a & b]]></Say><Redirect>/a?b=1&c=2;</Redirect></Response>', /\(1:68: a bare &/],
    ['<Response><Say>a &', /a bare &/],
    ['<Response><!-- & --><Say>a</Response>', /unexpected close tag/],
    ['<Response><Say>a</Sya><Say>b & c</Say></Response>', /unexpected close tag/],
    ['<Response>', /not well-formed/],
    ['<Response><Say></Response>', /not well-formed/],
    ['<Twiml/>', /must be a <Response>/],
    ['<!DOCTYPE x [<!ENTITY a "b">]><Response/>', /document type/],
    [`<Response><Say>${'x'.repeat(MAX_XML_BYTES)}</Say></Response>`, /more than 65536 bytes/],
    [`${'<Response>'.repeat(9)}${'</Response>'.repeat(9)}`, /nested more than 8/],
    [`<Response>${'<Hangup/>'.repeat(201)}</Response>`, /more than 200 verbs/],
    ['<Response><Record/></Response>', /<Record> is not supported/],
    ['<Response><Gather input="speech"/></Response>', /takes keys only/],
    ['<Response><Connect><Room>x</Room></Connect></Response>', /<Room>, which is not supported/],
    ['<Response><Connect/></Response>', /exactly one noun/],
    ['<Response><Connect><Stream url="https://x"/></Connect></Response>', /must begin with wss/],
    ['<Response><Start><Siprec/></Start></Response>', /<Siprec>, which is not supported/],
    ['<Response><Stop><Stream/></Stop></Response>', /has no name/],
    ['<Response><Dial><Number>+1</Number><Number>+2</Number></Dial></Response>', /one number only/],
    ['<Response><Dial><Conference>x</Conference></Dial></Response>', /<Conference>, which is not supported/],
    ['<Response><Play/></Response>', /no URL/],
  ])('is refused: %#', (text, expected) => {
    expect(problem(text)).toMatch(expected);
  });
});

describe('the script of a call', () => {
  const enter = (body: string, before: VoiceScript | null = null): VoiceScript => {
    const entered = enterDocument(before, BASE, `<Response>${body}</Response>`);
    if (!entered.ok) throw new Error(entered.error);
    return entered.value.script;
  };

  it('runs its verbs, and hangs up after the last', () => {
    const first = nextStep(enter('<Say>One</Say><Gather/><Say>Two</Say>'), false);
    expect(first.step).toMatchObject({ do: 'speak', gather: null });
    const second = afterVerb(first.script, { type: 'gathered', digits: '', finishedOnKey: '' });
    expect(second.step).toMatchObject({ do: 'speak', gather: { finishOnKey: '#' } });
    const third = afterVerb(second.script, { type: 'gathered', digits: '', finishedOnKey: '' });
    expect(third.step).toMatchObject({ clips: [{ text: 'Two' }] });
    expect(afterVerb(third.script, { type: 'ended' }).step).toEqual({ do: 'hang-up' });
  });

  it('requests the action of a gather, or the document itself, for the next verbs', () => {
    const gathered = { type: 'gathered', digits: '12', finishedOnKey: '#' } as const;
    const own = nextStep(enter('<Gather/>'), true).script;
    expect(afterVerb(own, gathered).step).toEqual({
      do: 'request',
      request: { url: BASE, method: 'POST', parameters: { Digits: '12', msg: 'Gather End', FinishedOnKey: '#' } },
    });
    const action = nextStep(enter('<Gather action="menu?x=1" method="GET"/>'), true).script;
    expect(afterVerb(action, gathered).step).toMatchObject({ request: { url: 'https://app.example/menu?x=1', method: 'GET' } });
    const empty = nextStep(enter('<Gather actionOnEmptyResult="true"/>'), true).script;
    expect(afterVerb(empty, { ...gathered, digits: '', finishedOnKey: '' }).step).toMatchObject({ do: 'request' });
  });

  it('rejects before the 200 only, and hangs up and dials after it only', () => {
    expect(nextStep(enter('<Reject/>'), false).step).toEqual({ do: 'reject', reason: 'rejected' });
    expect(nextStep(enter('<Reject/>'), true).step).toEqual({ do: 'hang-up' });
    for (const [body, step] of [
      ['<Hangup/>', { do: 'hang-up' }],
      ['', { do: 'hang-up' }],
      ['<Dial>+15550100100</Dial>', { do: 'dial', to: '+15550100100', rules: DIAL_RULES }],
    ] as const) {
      const early = nextStep(enter(body), false);
      expect(early.step).toEqual({ do: 'speak', clips: [], gather: null });
      expect(afterVerb(early.script, { type: 'ended' }).step).toEqual(step);
    }
  });

  it('reports how a dial failed', () => {
    const dial = nextStep(enter('<Dial action="/done">+15550100100</Dial>'), true).script;
    const parametersOf = (outcome: VerbOutcome): unknown => {
      const { step } = afterVerb(dial, outcome);
      return step.do === 'request' ? step.request.parameters : step;
    };
    expect(parametersOf({ type: 'dial-ended', status: 'busy', leg: null })).toEqual({ DialCallStatus: 'busy' });
    const leg = { callSid: 'CA1', seconds: 7 };
    expect(parametersOf({ type: 'dial-ended', status: 'no-answer', leg })).toEqual({ DialCallStatus: 'no-answer', DialCallSid: 'CA1' });
    expect(parametersOf({ type: 'dial-ended', status: 'completed', leg })).toEqual({
      DialCallStatus: 'completed',
      DialCallSid: 'CA1',
      DialCallDuration: '7',
    });
  });

  it('ends a loop of redirects, but no menu that continues for hours', () => {
    let script: VoiceScript | null = null;
    for (let turn = 0; turn < 20; turn += 1) script = nextStep(enter('<Redirect>/voice</Redirect>', script), true).script;
    expect(enterDocument(script, BASE, '<Response/>')).toMatchObject({
      ok: false,
      error: expect.stringContaining('redirected 20 times') as string,
    });
    script = null;
    for (let turn = 0; turn < 100; turn += 1) script = nextStep(enter('<Gather/>', script), true).script;
    expect(script?.documents).toBe(0);
  });

  it('sends the action how a conversation ended, also before the 200', () => {
    const enterConversation = enter('<Connect action="/a"><ConversationRelay url="wss://app.example/r"/></Connect>');
    const { script, step } = nextStep(enterConversation, false);
    expect(step).toMatchObject({ do: 'conversation', conversation: { url: 'wss://app.example/r' } });
    const ended = { type: 'conversation-ended', sessionId: 'VX1', seconds: 3, handoffData: '{}', error: null } as const;
    expect(afterVerb(script, ended, false).step).toMatchObject({
      request: { parameters: { SessionId: 'VX1', SessionStatus: 'ended', SessionDuration: '3', HandoffData: '{}' } },
    });
    expect(afterVerb(script, { ...ended, handoffData: null, error: 'gone' }).step).toMatchObject({
      request: { parameters: { SessionStatus: 'failed', ErrorCode: '64105', ErrorMessage: 'gone' } },
    });
  });

  it('starts streams aside, up to four tracks and each name once, and stops them by name from another document too', () => {
    const start = (name: string, track: string): string => `<Start><Stream url="wss://x.example" name="${name}" track="${track}"/></Start>`;
    let move = nextStep(enter(`${start('a', 'both_tracks')}${start('a', 'inbound_track')}${start('b', 'both_tracks')}`), false);
    expect(move.step).toMatchObject({ do: 'start-fork', fork: { key: 0, stream: { name: 'a' } } });
    move = nextStep(move.script, false);
    expect(move.step).toMatchObject({ do: 'note', problem: expect.stringContaining('the name a') as string });
    move = nextStep(move.script, false);
    const next = nextStep(
      enter(`${start('c', 'inbound_track')}<Stop><Stream name="a"/></Stop><Stop><Stream name="a"/></Stop>`, move.script),
      true,
    );
    expect(next.step).toMatchObject({ do: 'note', problem: expect.stringContaining('at most 4 tracks') as string });
    const stopped = nextStep(next.script, true);
    expect(stopped.step).toEqual({ do: 'stop-fork', key: 0 });
    expect(stopped.script.forks.map(({ stream }) => stream.name)).toEqual(['b']);
    expect(nextStep(stopped.script, true).step).toMatchObject({ do: 'note', problem: expect.stringContaining('no stream') as string });
  });

  it('resolves a status callback where it is written, not where the call is later', () => {
    const { script } = nextStep(enter('<Start><Stream url="wss://x.example" statusCallback="status?n=1"/></Start>'), true);
    expect(script.forks[0]?.stream.statusCallback).toEqual({ url: 'https://app.example/status?n=1', method: 'POST' });
  });

  it('fails for a URL that cannot be read', () => {
    expect(nextStep(enter('<Redirect>http://</Redirect>'), true).step).toMatchObject({ do: 'fail' });
  });
});

describe('a signature for Twilio’s libraries', () => {
  it('equals that of Twilio’s documentation', () => {
    const parameters = {
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675309',
      Digits: '1234',
      From: '+14158675309',
      To: '+18005551212',
    };
    expect(twilioSignature('12345', 'https://mycompany.com/myapp.php?foo=1&bar=2', parameters)).toBe('RSOYDt4T1cUTdK1PDd93/VVr8B8=');
  });
});

describe('the cookies of a call', () => {
  const url = 'https://app.example/voice';

  it('go back to their origin only, whatever the path; an empty value, or Max-Age 0, removes one', () => {
    const first = withCookies({}, url, ['a=1; Path=/other; Secure', 'b="two"; Expires=Thu, 01 Jan 2037 00:00:00 GMT', 'no cookie', '=x']);
    expect(cookieHeader(first, 'https://app.example/next?x=1')).toBe('a=1; b="two"');
    expect(cookieHeader(first, 'https://app.example:8443/')).toBeNull();
    const second = withCookies(first, url, ['a=2', 'b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT']);
    expect(cookieHeader(second, url)).toBe('a=2');
    expect(withCookies(second, url, ['a=x; Max-Age=0'])).toEqual({});
  });

  it('are bounded: 20 of an origin, 4,096 characters each, eight origins', () => {
    const many = withCookies({}, url, [...Array.from({ length: 30 }, (_, at) => `c${String(at)}=1`), `big=${'x'.repeat(5_000)}`]);
    expect(Object.keys(many['https://app.example'] ?? {})).toHaveLength(20);
    const origins = Array.from({ length: 12 }, (_, at) => `https://app${String(at)}.example/`);
    expect(Object.keys(origins.reduce((jar, one) => withCookies(jar, one, ['a=1']), {}))).toHaveLength(8);
  });

  it('are not split by a line break', () => {
    expect(withCookies({}, url, ['a=1\r\nX-Other: 1'])).toEqual({});
  });
});
