import { chromium, type Browser, type BrowserContext, type Locator, type Page } from 'playwright-core';
import { HANG_GUARD_MS } from './hang-guard.js';

const CHROMIUM = '/usr/bin/chromium';

/** Headless, and of no user of this machine. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page complained of: errors of its own, and what its content security policy refused. */
  readonly complaints: string[];
}

interface VisitOptions {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
}

/** A visitor with a session of their own. */
export async function visit(
  browser: Browser,
  baseURL: string,
  { width = 1280, height = 800, colorScheme = 'light' }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ baseURL, viewport: { width, height }, colorScheme });
  context.setDefaultTimeout(HANG_GUARD_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // The browser notes each answer that is no success; the page shows those itself.
    const isAnswer = message.text().startsWith('Failed to load resource') && /\/(v1|v2|sip)\b/.test(message.location().url);
    if (['error', 'warning'].includes(message.type()) && !isAnswer) complaints.push(message.text());
  });
  return { page, context, complaints };
}

const MAX_TABS = 60;

/** Goes on by the Tab key until this has the focus. */
export async function tabTo(page: Page, to: Locator): Promise<void> {
  for (let tabs = 0; tabs < MAX_TABS; tabs += 1) {
    if (await hasFocus(page, to)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the Tab key does not lead to ${to.toString()}`);
}

export async function hasFocus(page: Page, locator: Locator): Promise<boolean> {
  return (await locator.and(page.locator(':focus')).count()) > 0;
}

/** How much wider than the window a page is. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}
