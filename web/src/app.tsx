import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { AgentsPage } from './agents/agents-page.js';
import { BatchPage, BatchesPage } from './batches/batches-page.js';
import { CallPage } from './calls/call-page.js';
import { CallsPage } from './calls/calls-page.js';
import { place } from './location.js';
import { NumbersPage } from './numbers/numbers-page.js';
import { chosenOrg, isOperator, NO_ORG, organizations, readOrganizations } from './organizations.js';
import { trouble, usePolling } from './polling.js';
import { keepReasons } from './reasons.js';
import { BASE, pageOf, type Page } from './routes.js';
import { apiKey, ask, signOut } from './session.js';
import { Mark, ThemeSwitch } from './parts/masthead.js';
import { SignIn } from './sign-in.js';
import { LivePage } from './throughput/live-page.js';
import { ToolsPage } from './tools/tools-page.js';

const TABS = [
  ['calls', 'Calls'],
  ['live', 'Live'],
  ['numbers', 'Numbers'],
  ['agents', 'Agents'],
  ['tools', 'Tools'],
  ['batches', 'Batches'],
] as const;

export function App(): JSX.Element {
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      {apiKey.value === null ? <SignIn /> : <SignedIn key={`${apiKey.value} ${chosenOrg.value}`} />}
    </>
  );
}

function SignedIn(): JSX.Element {
  const page = pageOf(place.value.pathname);
  usePolling(async () => keepReasons((await ask((api) => api.GET('/v1/reasons'))).reasons), null, []);
  usePolling(() => ask(readOrganizations), null, []);
  return (
    <>
      <header class="bar">
        <a class="brand" href={`${BASE}/`}>
          <Mark /> Trunkline
        </a>
        <nav aria-label="Pages">
          {TABS.map(([name, title]) => (
            <a key={name} href={`${BASE}/${name}`} aria-current={isWithin(page, name) ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="bar-end">
          <OrganizationChoice />
          <ThemeSwitch />
          <button type="button" class="quiet" onClick={() => signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <Trouble />
      <Main page={page} />
    </>
  );
}

/** For an operator: whose records are shown. */
function OrganizationChoice(): JSX.Element | null {
  if (!isOperator.value) return null;
  return (
    <select
      aria-label="Organization"
      value={chosenOrg.value}
      onChange={(event) => {
        chosenOrg.value = event.currentTarget.value;
      }}
    >
      <option value="">All organizations</option>
      <option value={NO_ORG}>Without an organization</option>
      {organizations.value.map((org) => (
        <option key={org.org_id} value={org.org_id}>
          {org.name}
        </option>
      ))}
    </select>
  );
}

function isWithin(page: Page, tab: string): boolean {
  return page.name === tab || (page.name === 'call' && tab === 'calls') || (page.name === 'batch' && tab === 'batches');
}

function Main({ page }: { readonly page: Page }): JSX.Element {
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const address = 'id' in page ? `${page.name} ${page.id}` : page.name;
  useEffect(() => {
    // After following a link, move the focus to the page; at the first load, leave it at the top.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    document.title = `${TITLES[page.name]} · Trunkline`;
  }, [address]);
  return (
    <main id="main" ref={main} tabIndex={-1} key={address}>
      {contentOf(page)}
    </main>
  );
}

const TITLES: Readonly<Record<Page['name'], string>> = {
  calls: 'Calls',
  call: 'Call',
  live: 'Live',
  numbers: 'Numbers',
  agents: 'Agents',
  tools: 'Tools',
  batches: 'Batches',
  batch: 'Batch',
  unknown: 'Page not found',
};

function contentOf(page: Page): ComponentChildren {
  switch (page.name) {
    case 'calls':
      return <CallsPage />;
    case 'call':
      return <CallPage id={page.id} />;
    case 'live':
      return <LivePage />;
    case 'numbers':
      return <NumbersPage />;
    case 'agents':
      return <AgentsPage />;
    case 'tools':
      return <ToolsPage />;
    case 'batches':
      return <BatchesPage />;
    case 'batch':
      return <BatchPage id={page.id} />;
    case 'unknown':
      return (
        <section class="card empty">
          <h1>Page not found</h1>
          <p>
            <a href={`${BASE}/calls`}>Open the calls</a>
          </p>
        </section>
      );
  }
}

function Trouble(): JSX.Element {
  return (
    <div class="trouble" role="status">
      {trouble.value}
    </div>
  );
}
