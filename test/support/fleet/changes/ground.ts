/** Where changes are made: a project of their own beside that of the fleet's tests, and all that goes away afterwards. */

import { randomUUID } from "node:crypto";
import { type ApiCall, api, asAdmin, type Platform } from "../../platform/platform.ts";
import { run } from "../../platform/programs.ts";
import { until } from "../../runner/until.ts";
import type { Fleet, FleetNode } from "../fleet.ts";

export interface Ground {
  readonly fleet: Fleet;
  /** The orchestrator that lives on. */
  readonly by: number;
  /** Begin of every name that is made. */
  readonly word: string;
  readonly project: OwnProject;
  /** Nodes that take no sandbox meanwhile, as an operator has said. The second one has no sandbox at all. */
  readonly cordoned: readonly [FleetNode, FleetNode];
  /** A template of the project that is built, with the tags `second` and `third`. */
  readonly built: Built;
  readonly volume: { readonly id: string; readonly token: string };
  /** A webhook is sent to it, and nothing that is sent to it leaves the machine. */
  readonly receiver: string;
}

export interface OwnProject {
  readonly id: string;
  readonly key: string;
}

interface Built {
  readonly name: string;
  readonly id: string;
  readonly buildId: string;
}

export const BODY = { templateID: "base", timeout: 3_600 } as const;
/** In the tests' range and without a role in their internet. */
const RECEIVER = "198.51.100.247";
const ROUTE = ["unreachable", `${RECEIVER}/32`] as const;

/** Asks for something that must be done, and resolves to the answer's body. */
export async function must<Body = unknown>(platform: Platform, route: string, call: ApiCall = {}): Promise<Body> {
  const [method = "", path = ""] = route.split(" ");
  const { status, text, json } = await api(platform, method, path, { timeoutMs: 120_000, ...call });
  if (status >= 300) throw new Error(`${route} answered ${status}: ${text}`);
  return json as Body;
}

/** The same of the orchestrator that lives on, as an operator. */
export function mustAsAdmin<Body = unknown>({ fleet, by }: Place, route: string, body?: object): Promise<Body> {
  const platform = fleet.through(by);
  return must<Body>(platform, route, { ...asAdmin(platform), ...(body === undefined ? {} : { body }) });
}

type Place = Pick<Ground, "fleet" | "by">;

/** What an orchestrator answers operators. */
export function readAsAdmin<Body>(through: Platform, path: string): Promise<Body> {
  return must<Body>(through, `GET ${path}`, asAdmin(through));
}

/** The status of a call with an API key: 200, or 401 for one that opens nothing. */
export async function statusWith(through: Platform, key: string): Promise<number> {
  return (await api(through, "GET", "/volumes", { key })).status;
}

/** An orchestrator as the callers of a project see it. */
export function of(project: OwnProject, through: Platform): Platform {
  return { ...through, apiKey: project.key };
}

/** The same of the ground's own project. */
export const own = ({ project }: Ground, through: Platform): Platform => of(project, through);

/** Asks the orchestrator that lives on for something that must be done in the ground's own project. */
export function make<Body = unknown>(ground: Ground, route: string, body?: object): Promise<Body> {
  return must<Body>(own(ground, ground.fleet.through(ground.by)), route, body === undefined ? {} : { body });
}

/** What a list of the ground's own project has. */
export function all<One>(ground: Ground, through: Platform, path: string): Promise<One[]> {
  return must<One[]>(own(ground, through), `GET ${path}`);
}

/** Another project, for what concerns a whole project. */
export async function makeProject(place: Place, name: string): Promise<OwnProject> {
  const { teamID: id } = await mustAsAdmin<{ teamID: string }>(place, "POST /admin/projects", { name, slug: name });
  const { key } = await mustAsAdmin<{ key: string }>(place, `POST /admin/teams/${id}/api-keys`, { name });
  return { id, key };
}

/** Asks for a build of a template by one command. */
export async function startBuild(
  platform: Platform,
  name: string,
  command: string,
  tags: readonly string[] = [],
): Promise<Built> {
  const body = { name, tags: ["default", ...tags] };
  const made = await must<{ templateID: string; buildID: string }>(platform, "POST /v3/templates", { body });
  const { templateID: id, buildID: buildId } = made;
  await must(platform, `POST /v2/templates/${id}/builds/${buildId}`, { body: stepsOf(command) });
  return { name, id, buildId };
}

export function stepsOf(command: string): object {
  return { fromTemplate: "base", steps: [{ type: "RUN", args: [command] }] };
}

export async function buildStatus(through: Platform, { id, buildId }: Pick<Built, "id" | "buildId">): Promise<string> {
  const path = `/templates/${id}/builds/${buildId}/status`;
  return (await must<{ status: string }>(through, `GET ${path}`)).status;
}

/** Does the work on a ground of its own, and removes what was made there, also when the work fails. */
export async function onGround(fleet: Fleet, by: number, work: (ground: Ground) => Promise<void>): Promise<void> {
  const place = { fleet, by };
  const word = `kills-${randomUUID().slice(0, 8)}`;
  const [, ...cordoned] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
  await run("ip", ["route", "replace", ...ROUTE]);
  try {
    for (const { id } of cordoned) await mustAsAdmin(place, `POST /nodes/${id}`, { status: "draining" });
    await work(await prepared(place, word, cordoned));
  } finally {
    try {
      for (const { id } of cordoned) await mustAsAdmin(place, `POST /nodes/${id}`, { status: "ready" });
      await removeAll(place, word);
    } finally {
      await run("ip", ["route", "del", ...ROUTE]);
    }
  }
}

async function prepared(place: Place, word: string, cordoned: Ground["cordoned"]): Promise<Ground> {
  const project = await makeProject(place, word);
  const through = of(project, place.fleet.through(place.by));
  const built = await startBuild(through, word, "echo built >built.txt", ["second", "third"]);
  const volume = await must<{ volumeID: string; token: string }>(through, "POST /volumes", { body: { name: word } });
  const isReady = async () => {
    const status = await buildStatus(through, built);
    if (status === "error") throw new Error(`the template ${word} could not be built`);
    return status === "ready";
  };
  await until(isReady, { what: `the build of ${word}`, timeoutMs: 150_000, everyMs: 300 });
  const receiver = `https://${RECEIVER}/hook`;
  return { ...place, word, project, cordoned, built, volume: { id: volume.volumeID, token: volume.token }, receiver };
}

/** Removes the projects and workspaces of that name, and waits for the end of the sandboxes in them, which count on their nodes. */
async function removeAll(place: Place, word: string): Promise<void> {
  const projects = await mustAsAdmin<{ teamID: string; name: string }[]>(place, "GET /admin/projects");
  for (const { teamID, name } of projects) {
    if (name.startsWith(word)) await mustAsAdmin(place, `DELETE /admin/projects/${teamID}`);
  }
  const workspaces = await mustAsAdmin<{ workspaceID: string; name: string }[]>(place, "GET /admin/workspaces");
  for (const { workspaceID, name } of workspaces) {
    if (name.startsWith(word)) await mustAsAdmin(place, `DELETE /admin/workspaces/${workspaceID}`);
  }
  const left = async () => {
    const listed = await mustAsAdmin<{ projectName: string | null }[]>(place, "GET /admin/sandboxes?limit=100");
    return !listed.some(({ projectName }) => projectName?.startsWith(word) === true);
  };
  await until(left, { what: `the end of the sandboxes of ${word}`, timeoutMs: 120_000, everyMs: 300 });
}
