/**
 * Another program of the host drops the packets of this platform's sandboxes and lets them pass again. Within the stated time
 * every place that speaks of the network names the rule, and after its removal says that all is well. A sysctl of the whole host
 * cannot be changed here: test/docker/network/reach.test.ts does that on a node that is a network namespace of its own.
 */

import { Sandbox } from "e2b";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { SAID_WITHIN_MS } from "../../agent/network/reach/reach.ts";
import { ADDRESS } from "../support/internet/plan.ts";
import { agentPage } from "../support/platform/agent-pages.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, asAdmin, openPlatform } from "../support/platform/platform.ts";
import { run, service, settingOf, untilReady } from "../support/platform/programs.ts";
import { restartWith } from "../support/platform/settings.ts";
import { reach } from "../support/sandbox/egress.ts";
import { ownSandbox, refusal } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const network = settingOf(platform, "agent", "SVC_NETWORK_NAME");
const TABLE = `${network}_cut`;
const CULPRIT = `table inet ${TABLE}, chain site: rule "iifname "${network}-*" counter drop"`;
const STATED = { timeout: SAID_WITHIN_MS, interval: 200 };

beforeAll(() => untilReady(platform), 90_000);

/** Drops what comes from the links of this platform's sandboxes, and nothing of other platforms. */
async function cut(): Promise<void> {
  onTestFinished(async () => void (await mend().catch(() => undefined)));
  const rule = `iifname ${network}-* counter drop`;
  const chain = "{ type filter hook forward priority 10; policy accept; }";
  await run("nft", [
    `add table inet ${TABLE}; add chain inet ${TABLE} site ${chain}; add rule inet ${TABLE} site ${rule}`,
  ]);
}

const mend = () => run("nft", ["delete", "table", "inet", TABLE]);

/** What each place says about the network: the log only in the lines that came after the first `known` ones. */
async function places(sandbox: Sandbox, known: number): Promise<Readonly<Record<string, string>>> {
  const authorization = `Bearer ${settingOf(platform, "agent", "SVC_ORCHESTRATOR_TOKEN")}`;
  const own = async (path: string) => (await agentPage(platform, path, { authorization })).text;
  const check = `/sandboxes/${sandbox.sandboxId}/network/check?host=${ADDRESS.google}&port=443`;
  const metrics = (await own("/metrics")).split("\n");
  return {
    "/readyz of the agent": await own("/readyz"),
    "/readyz of the orchestrator": (await api(platform, "GET", "/readyz?verbose", { key: null })).text,
    "GET /nodes": (await api(platform, "GET", "/nodes", asAdmin(platform))).text,
    "network/check": (await api(platform, "GET", check)).text,
    "the log": (await logLines()).slice(known).join("\n"),
    "the metrics": metrics.filter((line) => /^svc_network_passes.*forward|network\.forward/.test(line)).join("\n"),
  };
}

const logLines = async () => (await service(platform, "log", "agent")).trimEnd().split("\n");

/** The places that do not name the rule. */
function silent({ "the metrics": metrics = "", ...texts }: Readonly<Record<string, string>>): readonly string[] {
  const words = Object.entries(texts).filter(([, text]) => !text.replaceAll('\\"', '"').includes(CULPRIT));
  const counted = /^svc_network_passes\{.*"forward".*\} 0$/m.test(metrics) && metrics.includes("svc_node_finding");
  return [...words.map(([place]) => place), ...(counted ? [] : ["the metrics"])];
}

/** The places that speak of the rule still, or do not say that packets pass. */
function alarmed({ "the log": log = "", "the metrics": metrics = "", ...texts }: Readonly<Record<string, string>>) {
  const words = Object.entries(texts).filter(([, text]) => text.includes(TABLE));
  const passes = /^svc_network_passes\{.*"forward".*\} 1$/m.test(metrics) && !metrics.includes("svc_node_finding");
  return [
    ...words.map(([place]) => place),
    ...(log.includes("come through again") ? [] : ["the log"]),
    ...(passes ? [] : ["the metrics"]),
  ];
}

const passes = (sandbox: Sandbox) => reach(sandbox, ADDRESS.google);

test("a rule that cuts the sandboxes off is named everywhere within the stated time, and its end is noticed within it", async () => {
  const sandbox = await ownSandbox();
  expect(await passes(sandbox)).toEqual({ [ADDRESS.google]: "ok" });
  const before = (await logLines()).length;
  await cut();
  await expect.poll(async () => silent(await places(sandbox, before)), STATED).toEqual([]);
  expect(await passes(sandbox)).toEqual({ [ADDRESS.google]: "silence" });
  expect((await api(platform, "GET", "/readyz", { key: null })).status).toBe(503);
  // Without a setting that refuses them, sandboxes begin as before: not every one needs the network.
  expect((await (await ownSandbox()).commands.run("echo here")).stdout).toBe("here\n");

  const since = (await logLines()).length;
  await mend();
  await expect.poll(async () => alarmed(await places(sandbox, since)), STATED).toEqual([]);
  expect(await passes(sandbox)).toEqual({ [ADDRESS.google]: "ok" });
  await untilReady(platform);
  await expectNoProblems(platform);
}, 180_000);

test("a node that is told so takes no sandbox that needs the network while it is cut off, and takes them again afterwards", async () => {
  await restartWith(platform, "agent", "SVC_WITHOUT_NETWORK=refuse");
  const asked = () =>
    Sandbox.create({ timeoutMs: 60_000 }).then(
      async (made) => ((await made.kill()) ? "taken" : "lost"),
      (error: Error) => error.message,
    );
  expect(await asked()).toBe("taken");
  await cut();
  await expect.poll(asked, STATED).toContain("no node gives sandboxes a network now");
  expect((await refusal(Sandbox.create())).message).toContain(CULPRIT);
  const closed = await ownSandbox({ allowInternetAccess: false });
  expect((await closed.commands.run("echo here")).stdout).toBe("here\n");

  await mend();
  await expect.poll(asked, STATED).toBe("taken");
  const open = await ownSandbox();
  expect(await passes(open)).toEqual({ [ADDRESS.google]: "ok" });
  await expectNoProblems(platform);
}, 240_000);
