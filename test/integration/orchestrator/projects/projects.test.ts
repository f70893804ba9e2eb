/** Projects and workspaces through the operators' routes, and the calls of a project that an operator has closed. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { ADMIN_TOKEN, type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { good, pathOf } from "../../../support/samples.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { regions: "US,EU", supportContact: "ops@example.com", nodeLostMs: 60_000 } });
});
afterAll(() => cluster.stop());

interface Shown {
  readonly teamID: string;
  readonly projectID: string;
  readonly workspaceID: string;
  readonly slug: string;
}

const ADMIN = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const admin = (method: string, path: string, body?: unknown): Promise<Answer> =>
  cluster.ask(method, `/admin${path}`, body === undefined ? ADMIN : { ...ADMIN, body });

async function shown(answer: Promise<Answer>, status = 200): Promise<Shown> {
  const { status: given, text, body } = await answer;
  expect(given, text).toBe(status);
  return body as Shown;
}

describe("operators", () => {
  test("create projects in workspaces and regions, read, rename and limit them", async () => {
    const workspace = await shown(admin("POST", "/workspaces", { name: "Company" }), 201);
    const body = {
      name: "Agents",
      slug: "agents-1",
      region: "eu",
      workspaceID: workspace.workspaceID,
      limits: { sandboxes: 2 },
    };
    const project = await shown(admin("POST", "/projects", body), 201);
    expect(project).toMatchObject({
      slug: "agents-1",
      region: "EU",
      status: "active",
      statusReason: null,
      limits: { sandboxes: 2 },
    });
    expect(project.projectID).toMatch(/^prj_/);
    expect(workspace.workspaceID).toMatch(/^wrk_/);
    expect(await shown(admin("GET", `/projects/${project.projectID.toUpperCase()}`))).toEqual(project);
    const path = `/projects/${project.teamID}`;
    const changed = await shown(
      admin("PATCH", path, { name: "New", limits: { sandboxes: null, snapshots: 0, totalCPU: 4 } }),
    );
    expect(changed).toEqual({ ...project, name: "New", limits: { snapshots: 0, totalCPU: 4 } });
    expect((await admin("GET", `/projects?workspaceID=${workspace.workspaceID}`)).body).toEqual([changed]);
    const taken = await admin("POST", "/projects", { name: "x", slug: "agents-1" });
    expect([taken.status, taken.text]).toEqual([
      409,
      expect.stringContaining("another project has the slug 'agents-1'"),
    ]);
    const nowhere = await admin("POST", "/projects", { name: "x", region: "moon" });
    expect([nowhere.status, nowhere.text]).toEqual([400, expect.stringContaining("SVC_REGIONS: US, EU")]);
    expect((await admin("POST", "/projects", { name: "x", workspaceID: "wrk_none" })).status).toBe(404);
    expect((await admin("GET", "/projects/prj_none")).status).toBe(404);
    expect((await admin("GET", "/projects/none")).status).toBe(400);
    expect((await cluster.ask("GET", "/admin/projects")).status).toBe(401);
  });

  test("rename a workspace, and delete it once it is empty; the default one stays", async () => {
    const { workspaceID } = await shown(admin("POST", "/workspaces", { name: "Old" }), 201);
    expect(await shown(admin("PATCH", `/workspaces/${workspaceID}`, { name: "Team" }))).toMatchObject({ name: "Team" });
    const project = await shown(admin("POST", "/projects", { name: "inside", workspaceID }), 201);
    const full = await admin("DELETE", `/workspaces/${workspaceID}`);
    expect([full.status, full.text]).toEqual([409, expect.stringContaining("has projects")]);
    const list = (await admin("GET", "/workspaces")).body as { workspaceID: string; isDefault: boolean }[];
    const own = list.find(({ isDefault }) => isDefault)?.workspaceID ?? "";
    expect(await shown(admin("PATCH", `/projects/${project.teamID}`, { workspaceID: own }))).toMatchObject({
      workspaceID: own,
    });
    expect((await admin("DELETE", `/workspaces/${workspaceID}`)).status).toBe(204);
    expect((await admin("DELETE", `/workspaces/${workspaceID}`)).status).toBe(404);
    expect((await admin("DELETE", `/workspaces/${own}`)).status).toBe(409);
    expect((await shown(admin("GET", `/projects/${cluster.teamId}`))).workspaceID).toBe(own);
  });

  test("list the keys of a project, masked, and the sandboxes of all of them, page by page", async () => {
    const other = await cluster.addProject("Second");
    const keys = (await admin("GET", `/teams/${other.projectId}/api-keys`)).body as { name: string }[];
    expect(keys).toMatchObject([{ name: "test", mask: { prefix: "svc_" } }]);
    expect(JSON.stringify(keys)).not.toContain(other.key.slice(4));
    const ids: string[] = [];
    for (const key of [cluster.key, other.key, other.key]) {
      const made = await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
      ids.push((made.body as { sandboxID: string }).sandboxID);
    }
    const listed = async (query: string) => {
      const { status, headers, body, text } = await admin("GET", `/sandboxes?${query}`);
      expect(status, text).toBe(200);
      return { found: body as { sandboxID: string }[], next: headers.get("x-next-token") };
    };
    const first = await listed("limit=2");
    const second = await listed(`limit=2&nextToken=${first.next ?? ""}`);
    expect(second.next).toBeNull();
    const found = [...first.found, ...second.found];
    expect(new Set(found.map(({ sandboxID }) => sandboxID))).toEqual(new Set(ids));
    expect(found.find(({ sandboxID }) => sandboxID === ids[1])).toMatchObject({
      teamID: other.teamId,
      projectID: other.projectId,
      projectName: "Second",
      nodeID: "n1",
      state: "running",
      cpuCount: 2,
      memoryMB: 1_024,
      ageSeconds: expect.any(Number) as number,
    });
    expect((await listed(`teamID=${other.projectId}`)).found).toHaveLength(2);
    expect((await listed("nodeID=n2")).found).toEqual([]);
    expect((await listed("state=paused,gone")).found).toEqual([]);
    expect((await admin("GET", "/sandboxes?state=sleeping")).status).toBe(400);
    for (const key of [cluster.key, other.key]) {
      for (const id of ids) await cluster.ask("DELETE", `/sandboxes/${id}`, { key });
    }
    expect((await listed("state=gone")).found).toHaveLength(3);
  });
});

describe("a project that an operator has closed", () => {
  const routes = Object.entries(publicApi as Readonly<Record<string, Route>>).filter(
    ([, { access, removed }]) => (access === "project" || access === "team") && removed !== true,
  );
  const call = (route: Route, key: string, teamId: string): Promise<Answer> => {
    const body = route.body === undefined ? {} : { body: good(route.body) };
    if (route.access === "project") return cluster.ask(route.method, pathOf(route), { key, ...body });
    return cluster.ask(route.method, pathOf(route), {
      key: null,
      headers: { ...ADMIN.headers, "x-team-id": teamId },
      ...body,
    });
  };

  test("reads and deletes while it is disabled, does nothing while it is banned, and all again when it is enabled", async () => {
    const { key, teamId } = await cluster.addProject("closed");
    const create = () => cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
    const { sandboxID } = (await create()).body as { sandboxID: string };
    expect(routes.length).toBeGreaterThan(40);

    await shown(admin("POST", `/projects/${teamId}/disable`, { reason: "test-reason" }));
    for (const [name, route] of routes) {
      const { status, body } = await call(route, key, teamId);
      const blocked = { code: 403, message: "team is blocked: test-reason" };
      if (route.method === "GET" || route.method === "DELETE") expect(body, name).not.toMatchObject(blocked);
      else expect([status, body], name).toEqual([403, expect.objectContaining(blocked)]);
    }
    // Before the object is looked up, and for one that is there.
    for (const id of [sandboxID, "inone"]) {
      expect((await cluster.ask("POST", `/sandboxes/${id}/pause`, { key })).text).toContain(
        "team is blocked: test-reason",
      );
    }
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`, { key })).status).toBe(200);

    await shown(admin("POST", `/projects/${teamId}/ban`));
    for (const [name, route] of routes) {
      const { status, body } = await call(route, key, teamId);
      expect([status, body], name).toEqual([403, expect.objectContaining({ message: "team is banned" })]);
    }

    await shown(admin("POST", `/projects/${teamId}/enable`));
    expect((await create()).status).toBe(201);
    await admin("POST", `/teams/${teamId}/sandboxes/kill`);
  });

  test("is not resumed by traffic", async () => {
    const { key, teamId } = await cluster.addProject("asleep");
    const body = { templateID: "base", autoPause: true, autoResume: { enabled: true } };
    const { sandboxID } = (await cluster.ask("POST", "/v2/sandboxes", { key, body })).body as { sandboxID: string };
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`, { key })).status).toBe(204);
    await shown(admin("POST", `/projects/${teamId}/disable`, { reason: "unpaid" }));
    const visited = await fetch(cluster.edgeUrl, {
      headers: { "e2b-sandbox-id": sandboxID, "e2b-sandbox-port": "8000" },
    });
    expect(visited.status).toBe(502);
    const { body: read } = await cluster.ask("GET", `/sandboxes/${sandboxID}`, { key });
    expect(read).toMatchObject({ state: "paused" });
  });
});

describe("regions", () => {
  test("a project's sandboxes run on nodes of its region, and a refusal names the region", async () => {
    const far = await startCluster({
      agent: { facts: { labels: { region: "US" } } },
    });
    try {
      const made = async (region: string) => {
        const answer = await far.ask("POST", "/admin/projects", { ...ADMIN, body: { name: region, region } });
        const { teamID } = answer.body as Shown;
        const { key } = (await far.ask("POST", `/admin/teams/${teamID}/api-keys`, { ...ADMIN, body: { name: "k" } }))
          .body as { key: string };
        return far.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
      };
      expect((await made("US")).status).toBe(201);
      const refused = await made("EU");
      expect([refused.status, refused.body]).toEqual([
        503,
        expect.objectContaining({
          error_code: "no_compatible_node",
          message: expect.stringContaining("region EU") as string,
        }),
      ]);
      expect((await far.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(201);
    } finally {
      await far.stop();
    }
  });
});

describe("labels of nodes", () => {
  test("a project's sandboxes run on nodes that have all of its labels, and a refusal names the labels and the node without them", async () => {
    const far = await startCluster({ agent: { facts: { labels: { gpu: "yes", rack: "7" } } } });
    try {
      const project = async (name: string, nodeLabels: object) => {
        const answer = await far.ask("POST", "/admin/projects", { ...ADMIN, body: { name, nodeLabels } });
        expect([answer.status, answer.body]).toEqual([201, expect.objectContaining({ nodeLabels })]);
        const { teamID } = answer.body as Shown;
        const { key } = (await far.ask("POST", `/admin/teams/${teamID}/api-keys`, { ...ADMIN, body: { name: "k" } }))
          .body as { key: string };
        return { teamID, start: () => far.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } }) };
      };
      expect((await (await project("has", { gpu: "yes" })).start()).status).toBe(201);
      const lacks = await project("lacks", { gpu: "yes", rack: "8" });
      const refused = await lacks.start();
      expect([refused.status, refused.body]).toEqual([
        503,
        expect.objectContaining({
          error_code: "no_compatible_node",
          message: expect.stringContaining("labels that the project's nodes must have (gpu=yes, rack=8)") as string,
        }),
      ]);
      const { templateID } = (await far.ask("GET", "/templates/aliases/base")).body as { templateID: string };
      const explained = await far.ask("GET", `/nodes?explain=${templateID}&teamID=${lacks.teamID}`, ADMIN);
      expect(explained.body).toMatchObject([{ placement: { fits: false, reason: "does not have the label rack=8" } }]);
      expect((await far.ask("GET", `/nodes?teamID=${lacks.teamID}`, ADMIN)).status).toBe(400);
      const changed = await far.ask("PATCH", `/admin/projects/${lacks.teamID}`, { ...ADMIN, body: { nodeLabels: {} } });
      expect(changed.body).toMatchObject({ name: "lacks", nodeLabels: {} });
      expect((await lacks.start()).status).toBe(201);
      const bad = await far.ask("PATCH", `/admin/projects/${lacks.teamID}`, {
        ...ADMIN,
        body: { nodeLabels: { "a=b": "c" } },
      });
      expect(bad.status).toBe(400);
    } finally {
      await far.stop();
    }
  });
});

describe("GET /teams", () => {
  const bearer = { key: null, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
  const teams = async (on: Cluster) =>
    (await on.ask("GET", "/teams", bearer)).body as { teamID: string; apiKey: string; isDefault: boolean }[];

  test("shows no key unless the operator allows the CLI's login", async () => {
    const [first, ...rest] = await teams(cluster);
    expect(first).toMatchObject({ teamID: cluster.teamId, apiKey: "", isDefault: true });
    expect(rest.some(({ apiKey, isDefault }) => apiKey !== "" || isDefault)).toBe(false);
  });

  test("then has a key that works, and the next login replaces it and no other key", async () => {
    await cluster.restart({ cliLogin: true });
    const keyOf = async () => (await teams(cluster)).find(({ teamID }) => teamID === cluster.teamId)?.apiKey ?? "";
    const reads = async (key: string) => (await cluster.ask("GET", "/v2/sandboxes", { key })).status;
    const former = await keyOf();
    expect(await reads(former)).toBe(200);
    const next = await keyOf();
    expect([await reads(former), await reads(next), await reads(cluster.key)]).toEqual([401, 200, 200]);
    const keys = (await admin("GET", `/teams/${cluster.teamId}/api-keys`)).body as { name: string }[];
    expect(keys.map(({ name }) => name).sort()).toEqual(["e2b CLI", "test"]);
    await cluster.restart({ cliLogin: false });
  });
});
