import { expect, test } from "vitest";
import { isInternalRoute } from "../../../../orchestrator/edge/internal-routes.ts";
import { ENVD_ROUTES } from "../../../../shared/agent-api/envd-routes.ts";

test.each(Object.entries(ENVD_ROUTES))("envd's route %s is %s", (path, who) => {
  expect(isInternalRoute(path)).toBe(who === "internal");
});

test.each([
  "/init",
  "/init?x=/files",
  "/init/",
  "//init",
  "/./init",
  "/files/../init",
  "/a/b/../../init",
  "/INIT",
  "/%69nit",
  "/%2569nit",
  "/%252569nit",
  "/files/%2e%2e/init",
  "/%2finit",
  "/init%2f",
  "/\\init",
  "/%5cinit",
  "/init;v=1",
  "/init%20",
  "/in%09it",
  "/a/../init%04",
  "/init//../a",
  "/connect?port=1",
  "/watches/suspend",
  "/logs?after=1",
  "/warm",
  "/ca-bundle",
  "/CA%2dbundle/",
  "/freeze?maxWaitMs=1",
  "/fsthaw",
  "/upgrade",
  "/%zz",
  "/%25%32%35%32%35",
])("%s is refused", (url) => {
  expect(isInternalRoute(url)).toBe(true);
});

test.each([
  "/",
  "*",
  "/health",
  "/files?path=/init",
  "/files?path=%2Finit&signature=v1_a%2Bb",
  "/files/compose",
  "/initial",
  "/process.Process/Start",
  "/filesystem.Filesystem/ListDir",
  "/a/init",
  "/metrics",
  "/%41",
])("%s is let through", (url) => {
  expect(isInternalRoute(url)).toBe(false);
});
