/** The page's frame: log-in, navigation, and the screen that the address names. */

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type AroundNavHandler, Link, Route, Router, Switch, useLocation } from "wouter-preact";
import { navigate } from "wouter-preact/use-browser-location";
import { logOut, operatorProject, projectId, type Session, session } from "./base/session.ts";
import { changeTheme, theme } from "./base/theme.ts";
import { DoneScreen } from "./code/done.tsx";
import { EventsScreen } from "./events/events.tsx";
import { WebhooksScreen } from "./events/webhooks.tsx";
import { LoginByLink } from "./login/by-link.tsx";
import { Login } from "./login/login.tsx";
import { Choice } from "./parts/field.tsx";
import { isCtrlK } from "./parts/keys.ts";
import { Palette } from "./parts/palette.tsx";
import { Empty } from "./parts/parts.tsx";
import { mayLeave } from "./parts/unsaved.ts";
import { PlatformScreen } from "./platform/platform.tsx";
import { ProjectOfPlatformScreen } from "./platform/projects/project.tsx";
import { ProjectScreen } from "./project/project.tsx";
import { SandboxScreen } from "./sandbox/sandbox.tsx";
import { CreateScreen } from "./sandboxes/create.tsx";
import { SandboxesScreen } from "./sandboxes/list.tsx";
import { SecretsScreen } from "./stored/secrets.tsx";
import { SnapshotsScreen } from "./stored/snapshots.tsx";
import { VolumeScreen } from "./stored/volume.tsx";
import { VolumesScreen } from "./stored/volumes.tsx";
import { BuildScreen } from "./templates/build.tsx";
import { TemplateScreen } from "./templates/template.tsx";
import { TemplatesScreen } from "./templates/templates.tsx";
import { waysOf } from "./ways.ts";

interface Place {
  readonly path: string;
  readonly name: string;
  readonly screen: ComponentType;
  /** In no navigation: another screen leads there, and Ctrl K. */
  readonly isHidden?: true;
}

/** Screens of a project. */
const PLACES: readonly Place[] = [
  { path: "/", name: "Sandboxes", screen: SandboxesScreen },
  { path: "/create", name: "Create", screen: CreateScreen },
  { path: "/templates", name: "Templates", screen: TemplatesScreen },
  { path: "/build", name: "Build a template", screen: BuildScreen, isHidden: true },
  { path: "/snapshots", name: "Snapshots", screen: SnapshotsScreen },
  { path: "/volumes", name: "Volumes", screen: VolumesScreen },
  { path: "/secrets", name: "Secrets", screen: SecretsScreen },
  { path: "/events", name: "Events", screen: EventsScreen },
  { path: "/webhooks", name: "Webhooks", screen: WebhooksScreen },
  { path: "/project", name: "Project", screen: ProjectScreen },
];
/** Also for operators who have not chosen a project. */
const DONE: Place = { path: "/done", name: "Done here", screen: DoneScreen };
const PLATFORM: Place = { path: "/platform", name: "Platform", screen: PlatformScreen };

const BASE = "/console";

export function App() {
  const now = session.value;
  if (now.kind === "asking") return <main class="login" aria-busy="true" />;
  if (now.kind === "none") return <Login />;
  if (now.kind === "link") return <LoginByLink offer={now} />;
  return (
    <Router base={BASE} aroundNav={leaving}>
      <Frame places={now.kind === "admin" ? [PLATFORM, ...PLACES, DONE] : [...PLACES, DONE]} />
    </Router>
  );
}

const leaving: AroundNavHandler = (navigate, to, options) => {
  if (mayLeave()) navigate(to, options);
};

function Frame({ places }: { readonly places: readonly Place[] }) {
  const [searching, setSearching] = useState(false);
  const [path, go] = useLocation();
  const now = session.value;
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (!isCtrlK(event)) return;
      event.preventDefault();
      setSearching(true);
    };
    document.addEventListener("keydown", open);
    return () => document.removeEventListener("keydown", open);
  }, []);
  // A screen that was opened by keyboard begins at its heading.
  useEffect(() => {
    document.title = `${places.find((place) => place.path === path)?.name ?? "Console"} · Console`;
  }, [path, places]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <nav aria-label="Screens">
        <Whose />
        <button type="button" class="quiet" onClick={() => setSearching(true)}>
          Find or do <kbd>Ctrl K</kbd>
        </button>
        {places
          .filter(({ isHidden }) => isHidden !== true)
          .map((place) => (
            <Link key={place.path} href={place.path} aria-current={place.path === path ? "page" : undefined}>
              {place.name}
            </Link>
          ))}
        <div class="bottom">
          <p class="small">{whoOf(now)}</p>
          <button type="button" class="quiet" onClick={changeTheme}>
            {theme.value === "dark" ? "Light" : "Dark"} theme
          </button>
          <button type="button" class="quiet" onClick={() => void (mayLeave() && logOut())}>
            Log out
          </button>
        </div>
      </nav>
      <main id="main" tabIndex={-1} key={projectId.value ?? ""}>
        <Switch>
          <Route path={PLATFORM.path}>{now.kind === "admin" ? <PlatformScreen /> : <NoScreen />}</Route>
          <Route path="/platform/projects/:id">
            {({ id }) => (now.kind === "admin" ? <ProjectOfPlatformScreen key={id} id={id} /> : <NoScreen />)}
          </Route>
          <Route path={DONE.path}>
            <DoneScreen />
          </Route>
          {projectId.value === undefined && (
            <Route>
              <NoProject />
            </Route>
          )}
          <Route path="/sandboxes/:id/:tab?">{({ id, tab }) => <SandboxScreen key={id} id={id} tab={tab} />}</Route>
          <Route path="/templates/:id">{({ id }) => <TemplateScreen key={id} id={id} />}</Route>
          <Route path="/volumes/:id">{({ id }) => <VolumeScreen key={id} id={id} />}</Route>
          {PLACES.map(({ path: each, screen: Screen }) => (
            <Route key={each} path={each}>
              <Screen />
            </Route>
          ))}
          <Route>
            <NoScreen />
          </Route>
        </Switch>
      </main>
      {searching && (
        <Palette
          places={places}
          ways={waysOf({ hasProject: projectId.value !== undefined, isOperator: now.kind === "admin" })}
          go={go}
          close={() => setSearching(false)}
        />
      )}
    </>
  );
}

/** The console shows this project's objects. A person with several projects chooses one. */
function Whose() {
  const now = session.value;
  const [, drawAgain] = useState(0);
  if (now.kind !== "person" || now.projects.length < 2) {
    const [only] = now.kind === "person" ? now.projects : [];
    return <p class="strong">{now.kind === "key" ? now.project.name : (only?.name ?? "Operator")}</p>;
  }
  const choose = (id: string) => {
    if (!mayLeave()) {
      // The browser shows what was chosen until the field is drawn again.
      drawAgain((count) => count + 1);
      return;
    }
    operatorProject.value = id;
    // Not by the router, which would ask once more.
    navigate(`${BASE}/`);
  };
  return (
    <Choice
      label="Project"
      value={operatorProject.value ?? ""}
      options={now.projects.map(({ id, name }) => [id, name] as const)}
      onValue={choose}
    />
  );
}

function whoOf(now: Session): string {
  if (now.kind === "person") return now.name;
  return now.kind === "key" ? `${now.key.name} · ${now.key.mask}` : "admin token";
}

function NoScreen() {
  return (
    <Empty title="There is no such screen.">
      <Link href="/">To the sandboxes</Link>
    </Empty>
  );
}

function NoProject() {
  return (
    <Empty title="An operator looks at one project at a time.">
      <Link href="/platform">Choose a project</Link>
      {operatorProject.value}
    </Empty>
  );
}
