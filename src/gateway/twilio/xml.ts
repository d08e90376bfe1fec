import { SaxesParser } from 'saxes';
import { err, ok, type Result } from '../../lib/result.js';

export const MAX_XML_BYTES = 65_536;
const MAX_DEPTH = 8;

export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Element[];
  /** Text and children, in their order. */
  readonly content: readonly (string | Element)[];
  /** Its own text and that of what it contains. */
  readonly text: string;
}

interface OpenElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Element[];
  readonly content: (string | Element)[];
  text: string;
}

class XmlError extends Error {}

const SHOWN_CHARACTERS = 40;
const REFERENCE = /&(?:#\d+|#x[\da-f]+|[a-z_][\w:.-]*);/iuy;

/**
 * Reads a document; the error is a sentence for the person who wrote it. No document type and so no entities of its own: a small text cannot
 * grow.
 */
export function readXml(text: string): Result<Element, string> {
  if (Buffer.byteLength(text) > MAX_XML_BYTES) return err(`The document has more than ${String(MAX_XML_BYTES)} bytes.`);
  if (text.trim() === '') return err('The document is empty.');
  if (/^<(?:!doctype\s+)?html\b/iu.test(text.trimStart())) return err('The document is HTML, not TwiML.');
  if (!text.trimStart().startsWith('<')) return err(`The document is no XML: it begins with "${beginningOf(text)}".`);
  const open: OpenElement[] = [];
  let root: Element | undefined;
  const parser = new SaxesParser({ position: true });
  const fail = (message: string): never => {
    throw new XmlError(message);
  };
  // White space before the declaration is no XML, but common.
  const document = text.trimStart();
  parser.on('error', ({ message }) => {
    const ampersand = bareAmpersand(document);
    // The parser takes it for the beginning of a reference, and reads on for its end.
    const known = message.replace('undefined entity.', 'undefined entity: there are &amp; &lt; &gt; &quot; and &apos;');
    const cause = ampersand === null || ampersand >= parser.position ? known : `${placeOf(document, ampersand)}: a bare &: write &amp;`;
    fail(`The document is not well-formed XML (${cause}).`);
  });
  parser.on('doctype', () => fail('The document must not have a document type.'));
  parser.on('opentag', ({ name, attributes: given }) => {
    // Without `xmlns` each attribute is its text.
    const attributes = given as Record<string, string>;
    if (open.length === MAX_DEPTH) fail(`The document is nested more than ${String(MAX_DEPTH)} deep.`);
    open.push({ name, attributes, children: [], content: [], text: '' });
  });
  const addText = (part: string): void => {
    const element = open.at(-1);
    if (element === undefined) return;
    element.text += part;
    element.content.push(part);
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  parser.on('closetag', () => {
    const element = open.pop();
    const parent = open.at(-1);
    if (element === undefined) return;
    if (parent === undefined) root = element;
    else {
      parent.children.push(element);
      parent.content.push(element);
      parent.text += element.text;
    }
  });
  try {
    parser.write(document).close();
  } catch (error) {
    if (error instanceof XmlError) return err(error.message);
    throw error;
  }
  return root === undefined ? err('The document has no element.') : ok(root);
}

/** The first words of a document, for a person: one short line. */
export function beginningOf(text: string): string {
  return text
    .slice(0, 4 * SHOWN_CHARACTERS)
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, SHOWN_CHARACTERS);
}

/** Where the first `&` is that begins no reference; `null`: there is none outside of comments and CDATA. */
function bareAmpersand(document: string): number | null {
  const marks = /<!--|<!\[CDATA\[|&/gu;
  for (let mark = marks.exec(document); mark !== null; mark = marks.exec(document)) {
    const end = mark[0] === '<!--' ? '-->' : ']]>';
    REFERENCE.lastIndex = mark.index;
    if (mark[0] === '&' && !REFERENCE.test(document)) return mark.index;
    if (mark[0] === '&') continue;
    const after = document.indexOf(end, mark.index);
    if (after === -1) return null;
    marks.lastIndex = after + end.length;
  }
  return null;
}

/** Line and column, as the parser counts them. */
function placeOf(document: string, at: number): string {
  const lines = document.slice(0, at).split('\n');
  return `${String(lines.length)}:${String((lines.at(-1) ?? '').length)}`;
}
