/** The scope of every route of the public API, as a table: a new route must get a line here. */

import { expect, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { lackedScope, SCOPES, type Scope, scopeOf } from "../../../../shared/http/scopes.ts";

const TABLE: Readonly<Record<Scope, string>> = {
  read: `listRunning list metricsOfMany get logsV1 logs metrics checkNetwork networkLog listSnapshots listTemplatesV1
    listTemplates findAlias getTemplate buildStatus buildLogs listTags listVolumes listSecrets getSecret listEvents
    listSandboxEvents listWebhooks getWebhook teamMetrics teamMetricsMax listKeys listAllEvents
    listDeliveries projectLimits dashboardBuilds dashboardBuildStatuses dashboardBuild dashboardTemplates
    dashboardDefaultTemplates dashboardTemplate dashboardTagGroups dashboardTagCount dashboardTagExists
    dashboardTagAssignments`,
  sandboxes: `createV1 create kill connectV1 connect setTimeout refresh pause resume rewind fork updateNetwork createSnapshot
    createVolume getVolume`,
  templates: `deleteTemplate updateTemplateV1 updateTemplate requestBuild requestBuildV2 buildFiles startBuild assignTags
    deleteTags`,
  admin: `deleteVolume createSecret updateSecret deleteSecret createWebhook updateWebhook deleteWebhook createKey renameKey
    deleteKey testWebhook redeliver listAudit`,
};

/** What else reads a kind of object: the scope that changes it. */
const READERS: Readonly<Partial<Record<Scope, string>>> = {
  sandboxes: `listRunning list metricsOfMany get logsV1 logs metrics checkNetwork networkLog listSnapshots listVolumes
    listEvents listSandboxEvents listAllEvents`,
  templates: `listTemplatesV1 listTemplates findAlias getTemplate buildStatus buildLogs listTags dashboardBuilds
    dashboardBuildStatuses dashboardBuild dashboardTemplates dashboardDefaultTemplates dashboardTemplate dashboardTagGroups
    dashboardTagCount dashboardTagExists dashboardTagAssignments`,
  admin:
    "listSecrets getSecret listWebhooks getWebhook teamMetrics teamMetricsMax listKeys listDeliveries projectLimits",
};

const names = (text = "") => text.split(/\s+/).filter((name) => name !== "");
const routes: [string, Route][] = Object.entries(publicApi);

test("every route that takes an API key needs the scope of the table, and no other route needs one", () => {
  const needed = Object.fromEntries(SCOPES.flatMap((scope) => names(TABLE[scope]).map((name) => [name, scope])));
  const found = routes.map(([name, route]) => [name, scopeOf(route)]).filter(([, scope]) => scope !== undefined);
  expect(Object.fromEntries(found)).toEqual(needed);
  expect(routes.filter(([name, { access }]) => (access === "project") !== Object.hasOwn(needed, name))).toEqual([]);
});

test.each(SCOPES)(
  "a key with the scope %s alone may call its routes, reads their objects, and lacks one scope elsewhere",
  (scope) => {
    const allowed = new Set([...names(TABLE[scope]), ...names(READERS[scope])]);
    for (const [name, route] of routes) {
      const lacked = lackedScope([scope], route);
      if (route.access !== "project" || allowed.has(name)) expect(lacked, name).toBeUndefined();
      else expect(lacked, name).toBe(scopeOf(route));
    }
  },
);

test("a key with all scopes may call every route, and one with none no route", () => {
  for (const [name, route] of routes.filter(([, { access }]) => access === "project")) {
    expect(lackedScope(SCOPES, route), name).toBeUndefined();
    expect(lackedScope([], route), name).toBe(scopeOf(route));
  }
});

test("a route with a tag that no one has listed needs the widest scope", () => {
  expect(scopeOf({ method: "POST", tag: "Something new", access: "project" })).toBe("admin");
});
