/** Waits until the programs of a fleet serve again, and starts those that a test has kept from coming back. */

import { agentStatus } from "../platform/agent-pages.ts";
import { api, asAdmin, type Platform } from "../platform/platform.ts";
import { service, settingOf, status } from "../platform/programs.ts";
import { until } from "../runner/until.ts";
import { type Fleet, type Member, memberPid, members, nameOf, supervisorPid } from "./fleet.ts";

/** Restarts of a program that was killed often come up to ten seconds later each. */
const READY_MS = 120_000;

/** Waits until each of the programs is ready and both orchestrators have heard of each node that is not left out. */
export async function untilFleetReady(fleet: Fleet, without: readonly Member[] = []): Promise<void> {
  const gone = new Set(without.map(nameOf));
  const awaited = members(fleet).filter((one) => !gone.has(nameOf(one)));
  const waiting = { for: "" };
  const look = async () => {
    for (const member of awaited) {
      if (!(await isReady(member))) {
        waiting.for = nameOf(member);
        return false;
      }
    }
    for (const { platform } of fleet.orchestrators) {
      const known = await nodes(platform);
      const missing = fleet.nodes.find((node) => !gone.has(nameOf(node)) && known.get(node.id) !== "ready");
      if (missing !== undefined) {
        waiting.for = `node ${missing.id} at ${platform.apiUrl}, which calls it ${known.get(missing.id)}`;
        return false;
      }
    }
    return true;
  };
  await until(look, { what: "a ready fleet", timeoutMs: READY_MS, everyMs: 100 }).catch((error: unknown) => {
    throw new Error(`the fleet is not ready: it waits for ${waiting.for}`, { cause: error });
  });
}

/** Waits until another process than `former` is the member's program, and is ready. */
export async function untilBack(member: Member, former: number): Promise<void> {
  // While it is away it has no process.
  const pid = () => memberPid(member).catch(() => former);
  const back = async () => (await pid()) !== former && (await isReady(member));
  await until(back, { what: `the return of the ${nameOf(member)}`, timeoutMs: READY_MS, everyMs: 100 });
}

/**
 * Ends a program with SIGKILL so that it does not come back, as with its machine.
 * @returns the function that lets its supervisor start it again
 */
export async function endForGood(member: Member): Promise<() => Promise<void>> {
  const { platform, program } = member;
  const supervisor = await supervisorPid(member);
  const former = await memberPid(member);
  if (supervisor === undefined) await service(platform, "stop", program);
  else {
    process.kill(supervisor, "SIGSTOP");
    process.kill(former, "SIGKILL");
  }
  return async () => {
    if (supervisor === undefined) await service(platform, "start", program);
    else process.kill(supervisor, "SIGCONT");
    await untilBack(member, former);
  };
}

/** Whether a program says that it is ready. */
async function isReady({ program, platform }: Member): Promise<boolean> {
  switch (program) {
    case "orchestrator":
      return (await status(`${platform.apiUrl}/readyz`)) === 200;
    case "edge":
      return (await status(`http://127.0.0.1:${settingOf(platform, "edge", "SVC_EDGE_STATUS_PORT")}/readyz`)) === 200;
    case "agent":
      return (await agentStatus(platform)) === 200;
  }
}

/** The status of each node that an orchestrator knows; none while it does not answer. */
async function nodes(platform: Platform): Promise<ReadonlyMap<string, string>> {
  const reply = await api(platform, "GET", "/nodes", asAdmin(platform)).catch(() => undefined);
  if (reply?.status !== 200) return new Map();
  return new Map((reply.json as { id: string; status: string }[]).map(({ id, status }) => [id, status]));
}
