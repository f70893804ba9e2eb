/** Handlers of the routes that change a sandbox's state: pause, resume, fork, rewind. */

import type { sandboxStateApi } from "../../shared/api/sandboxes/sandbox-states.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import type { Callers } from "../access/wire.ts";
import type { Background } from "../base/background.ts";
import { checkedId } from "../lifecycle/not-found.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import { checkTimeout } from "./options.ts";
import type { Timed } from "./timed.ts";
import { toResult, toSandbox, type ViewDeps } from "./view.ts";

export interface SandboxStatesDeps {
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
  readonly templates: Pick<TemplateNames, "resolve">;
  readonly background: Background;
  readonly view: ViewDeps;
  readonly timed: Timed;
  readonly drains: Pick<Store["drains"], "leavePaused">;
}

/** Timeout of a fork, a resume, or a rewind of a paused sandbox that names none, seconds. */
const DEFAULT_TIMEOUT_S = 300;

export function createSandboxStateHandlers(deps: SandboxStatesDeps): Handlers<typeof sandboxStateApi, Project> {
  const { pausing, connecting, forking, rewinding, ending } = deps.lifecycle;
  const { limits } = deps.callers;
  return {
    async pause({ params, body }, { caller }) {
      const id = checkedId(params.sandboxID);
      try {
        await pausing.pause(caller, id, body.memory ?? true, body.frozen ?? true);
      } catch (error) {
        // Between two nodes it is paused already, and would start again.
        if (isError(error, "conflict") && (await deps.drains.leavePaused(id))) return;
        throw error;
      }
      // This pause may have been joined to that of a drain.
      await deps.drains.leavePaused(id);
    },

    async resume({ params, body }, { caller }) {
      const { timeout: seconds = DEFAULT_TIMEOUT_S, memory, autoPause } = body;
      checkTimeout(seconds, limits.hours(caller));
      const onTimeout = autoPause === undefined ? undefined : autoPause ? "pause" : "kill";
      const ask = { seconds, memory, onTimeout } as const;
      return toSandbox(await connecting.resume(caller, checkedId(params.sandboxID), ask), deps.view);
    },

    async rewind({ params, body }, { caller }) {
      const { snapshotID: name, memory = true, timeout: seconds } = body;
      if (seconds !== undefined) checkTimeout(seconds, limits.hours(caller));
      const id = checkedId(params.sandboxID);
      const snapshot = await snapshotNamed(caller, name);
      const ask = { name, snapshot, memory, seconds, pausedSeconds: DEFAULT_TIMEOUT_S };
      return toSandbox(await rewinding.rewind(caller, id, ask), deps.view);
    },

    async fork({ params, body }, context) {
      const { timeout: seconds = DEFAULT_TIMEOUT_S, count = 1, memory = true } = body;
      const { caller, signal } = context;
      checkTimeout(seconds, limits.hours(caller));
      const forks = await deps.timed("fork", context, (timing) =>
        forking.fork(caller, checkedId(params.sandboxID), { count, seconds, memory, signal, timing }),
      );
      return forks.map((fork) => {
        if (signal.aborted && "record" in fork) {
          // The client has disconnected and cannot learn the sandbox's id.
          deps.background.run("kill unwanted fork", () => ending.kill(fork.record.id, "abandoned"));
        }
        return toResult(fork, deps.view);
      });
    },
  };

  /** @throws {AppError} template_not_found; bad_request for a template */
  async function snapshotNamed(project: Project, name: string): Promise<Build> {
    const { template, build } = await deps.templates.resolve(project, name);
    if (template.kind === "snapshot" && template.projectId === project.id) return build;
    throw new AppError(
      "bad_request",
      `body field 'snapshotID': '${name}' is a template, and no snapshot of this project`,
    );
  }
}
