/** What Ctrl K finds: every kind of object, and the acts of the screen that is shown. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { actsOnScreen } from "../../../../console/src/parts/acts-on-screen.ts";
import { pageFile } from "../page-files.ts";

interface Found {
  readonly name: string;
  readonly path: string;
  readonly project?: string;
}
interface Held {
  value: unknown;
}

const { loadObjects } = await pageFile<{ readonly loadObjects: (signal: AbortSignal) => Promise<readonly Found[]> }>(
  "parts/objects.ts",
);
const { session, operatorProject } = await pageFile<{ readonly session: Held; readonly operatorProject: Held }>(
  "base/session.ts",
);

/** One of each, by its route. */
const LISTS: Readonly<Record<string, object>> = {
  "/v2/templates": { templateID: "t1", names: ["app"] },
  "/snapshots": { snapshotID: "s1:default", sourceSandboxID: "i1" },
  "/volumes": { name: "data", volumeID: "v1" },
  "/secrets": { name: "token" },
  "/events/webhooks": { name: "hook", url: "https://hook.example/" },
  "/api-keys": { name: "of an agent", mask: { maskedValueSuffix: "beef" } },
  "/nodes": { id: "node-1" },
  "/admin/projects": { name: "Research", teamID: "p2" },
};
let refused: string;

beforeEach(() => {
  refused = "";
  session.value = { kind: "key", project: { id: "p1", name: "Default" } };
  vi.stubGlobal("fetch", (path: string) => {
    const route = new URL(path, "http://localhost").pathname.replace("/console/api", "");
    if (route === refused) return Promise.resolve(Response.json({ message: "no" }, { status: 403 }));
    return Promise.resolve(Response.json([LISTS[route]]));
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  session.value = { kind: "asking" };
  operatorProject.value = undefined;
});

const found = () => loadObjects(new AbortController().signal);
const OF_PROJECT: readonly Found[] = [
  { name: "Template app", path: "/templates/t1" },
  { name: "Snapshot s1:default", path: "/sandboxes/i1/snapshots" },
  { name: "Volume data", path: "/volumes/v1" },
  { name: "Secret token", path: "/secrets" },
  { name: "Webhook hook https://hook.example/", path: "/webhooks" },
  { name: "API key of an agent …beef", path: "/project" },
];
const OF_PLATFORM: readonly Found[] = [
  { name: "Node node-1", path: "/platform" },
  { name: "Project Research", path: "/", project: "p2" },
  { name: "Project Research: limits, keys and state", path: "/platform/projects/p2" },
];

test("Ctrl K finds every kind of object of the project", async () => {
  expect(await found()).toEqual(OF_PROJECT);
});

test("Ctrl K finds the rest where one list is refused", async () => {
  refused = "/secrets";
  expect(await found()).toEqual(OF_PROJECT.filter(({ path }) => path !== "/secrets"));
});

test("Ctrl K finds nodes and projects for an operator, also before one is chosen", async () => {
  session.value = { kind: "admin" };
  expect(await found()).toEqual(OF_PLATFORM);
  operatorProject.value = "p1";
  expect(await found()).toEqual([...OF_PROJECT, ...OF_PLATFORM]);
});

test("Ctrl K finds the projects of a person", async () => {
  session.value = { kind: "person", name: "Maria", projects: [{ id: "p3", name: "Third", scopes: ["read"] }] };
  expect(await found()).toEqual([{ name: "Project Third", path: "/", project: "p3" }]);
});

test("an act of the screen is found by its name once, and a press of it has the focus", () => {
  const pressed: string[] = [];
  const element = (textContent: string, label: string | null = null) => ({
    textContent,
    getAttribute: () => label,
    focus: () => void pressed.push("focus"),
    click: () => void pressed.push(label ?? textContent),
  });
  const elements = [element(" Fork "), element("Delete", "Delete a"), element("Delete", "Delete a"), element("")];
  const acts = actsOnScreen({ querySelectorAll: () => elements });
  expect(acts.map(({ name }) => name)).toEqual(["Fork", "Delete a"]);
  acts[1]?.run();
  expect(pressed).toEqual(["focus", "Delete a"]);
  expect(actsOnScreen(null)).toEqual([]);
  const [first] = elements;
  if (first !== undefined) first.textContent = "Unfork";
  acts[0]?.run();
  expect(pressed, "of another name now").toHaveLength(2);
});
