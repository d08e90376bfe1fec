import { SaxesParser } from 'saxes';
import { err, ok, type Result } from '../../lib/result.js';

export const MAX_XML_BYTES = 65_536;
const MAX_DEPTH = 8;

export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Element[];
  /** Its own text and that of what it contains. */
  readonly text: string;
}

interface OpenElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Element[];
  text: string;
}

class XmlError extends Error {}

/**
 * Reads a document; the error is a sentence for the person who wrote it. No document type and so no entities of its own: a small text cannot
 * grow.
 */
export function readXml(text: string): Result<Element, string> {
  if (Buffer.byteLength(text) > MAX_XML_BYTES) return err(`The document has more than ${String(MAX_XML_BYTES)} bytes.`);
  const open: OpenElement[] = [];
  let root: Element | undefined;
  const parser = new SaxesParser({ position: true });
  const fail = (message: string): never => {
    throw new XmlError(message);
  };
  parser.on('error', ({ message }) => fail(`The document is not well-formed XML (${message}).`));
  parser.on('doctype', () => fail('The document must not have a document type.'));
  parser.on('opentag', ({ name, attributes: given }) => {
    // Without `xmlns` each attribute is its text.
    const attributes = given as Record<string, string>;
    if (open.length === MAX_DEPTH) fail(`The document is nested more than ${String(MAX_DEPTH)} deep.`);
    open.push({ name, attributes, children: [], text: '' });
  });
  const addText = (part: string): void => {
    const element = open.at(-1);
    if (element !== undefined) element.text += part;
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
      parent.text += element.text;
    }
  });
  try {
    // White space before the declaration is no XML, but common.
    parser.write(text.trimStart()).close();
  } catch (error) {
    if (error instanceof XmlError) return err(error.message);
    throw error;
  }
  return root === undefined ? err('The document is empty.') : ok(root);
}
