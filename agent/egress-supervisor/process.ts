/**
 * Supervises the egress process: restarts it when it dies, and sends it every sandbox at each start. While it is down,
 * redirected connections and DNS questions fail, and no policy can be replaced.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { NetworkCheck, NetworkLogEntry } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type {
  AskedValue,
  Begin,
  CertificateWithKey,
  CheckFlow,
  FromEgress,
  ResolvedValue,
  SandboxEgress,
} from "../egress/channel/messages.ts";
import { type EgressChannel, openChannel } from "./channel.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
/** A process that ran for this long is restarted without delay. */
const STEADY_MS = 10_000;

export interface EgressProcess {
  /** Resolves when it accepts connections for the first time. */
  readonly ready: Promise<void>;
  /** When it resolves, the policy is in force and forbidden flows are cut. Rejects while the process is down. */
  set(sandbox: SandboxEgress): Promise<void>;
  /** Ends the address's flows and forgets it; without an answer. */
  forget(address: string): void;
  check(address: string, flow: CheckFlow["flow"]): Promise<NetworkCheck>;
  /** Why the process does not serve; undefined when it serves. */
  readonly problem: string | undefined;
  stop(): Promise<void>;
}

/** Values of `${placeholder}` in headers. */
export interface PlaceholderSource {
  resolve(asked: AskedValue): Promise<ResolvedValue>;
  /** The egress process has used a value again that it had kept. */
  used(asked: AskedValue, count: number): void;
}

type Sent = "is" | "authority" | "extraCertificates" | "sandboxes";

/** The program and its settings. */
export interface EgressProgram {
  /** The program with its arguments, determined for each start. */
  readonly command: () => Promise<readonly string[]>;
  readonly environment: Readonly<Record<string, string>>;
  /** The agent sends this at each start, with what it reads then (`Sent`). */
  readonly begin: Omit<Begin, Sent>;
  readonly authority: () => Promise<CertificateWithKey>;
  /** PEM of authorities to trust besides the machine's, read for each start; empty: none. */
  readonly extraCertificates: () => Promise<string>;
  readonly log: Log;
}

/** The sandboxes that the process serves, and the agent's side of what it asks and tells. */
export interface EgressTask {
  /** All sandboxes that run already. */
  readonly sandboxes: readonly SandboxEgress[];
  readonly placeholders: PlaceholderSource;
  readonly onDecisions: OnDecisions;
}

type Decisions = Extract<FromEgress, { readonly is: "decisions" }>;
type OnDecisions = (sandboxId: string, entries: readonly NetworkLogEntry[], suppressed: number) => void;

/** Later changes of sandboxes are sent after those it is started with. */
export function startEgressProcess(program: EgressProgram, task: EgressTask): EgressProcess {
  const { command, environment, begin, authority, extraCertificates, log } = program;
  const { placeholders, onDecisions } = task;
  const sandboxes = new Map(task.sandboxes.map((sandbox) => [sandbox.address, sandbox]));
  const state = {
    channel: undefined as EgressChannel | undefined,
    serves: false,
    problem: "it does not accept connections yet" as string,
  };
  const stopping = new AbortController();
  const first = { ready: () => undefined as void };
  const firstReady = new Promise<void>((resolve) => {
    first.ready = resolve;
  });

  /** The receiver stores them: on a full disk that throws, and within an event it would end the agent. */
  const tell = ({ sandboxId, entries, suppressed }: Decisions) => {
    try {
      onDecisions(sandboxId, entries, suppressed);
    } catch (error) {
      log.warn({ err: error, sandboxId, entries: entries.length }, "could not store decisions for the network log");
    }
  };

  const once = async () => {
    const channel = openChannel({
      command: await command(),
      environment,
      begin: {
        is: "begin",
        ...begin,
        authority: await authority(),
        extraCertificates: await extraCertificates(),
        sandboxes: [...sandboxes.values()],
      },
      log,
      onMessage(message, reply) {
        if (message.is === "decisions") tell(message);
        else if (message.is === "used") {
          for (const { count, ...asked } of message.uses) placeholders.used(asked, count);
        } else if (message.is === "resolve") {
          const { id, executionId, placeholder, host } = message;
          placeholders
            .resolve({ executionId, placeholder, host })
            .catch((): ResolvedValue => ({ answer: { problem: "the node could not ask for its value" }, keepMs: 0 }))
            .then((resolved) => reply({ is: "resolved", id, ...resolved }))
            .catch(() => log.error({ executionId }, "could not send the value of a placeholder to the egress process"));
        }
      },
    });
    // Set at once, so that later changes are sent after `begin`, in order.
    state.channel = channel;
    try {
      await channel.ready;
      state.serves = true;
      first.ready();
      log.info({ sandboxes: sandboxes.size }, "the egress process is ready");
      await channel.ended;
      state.problem = "it ended and is being restarted";
    } finally {
      state.serves = false;
      state.channel = undefined;
    }
  };

  const supervise = async () => {
    let pause = FIRST_PAUSE_MS;
    while (!stopping.signal.aborted) {
      const begun = performance.now();
      try {
        await once();
      } catch (error) {
        state.problem = error instanceof Error ? error.message : "it cannot be started";
      }
      if (stopping.signal.aborted) return;
      log.error({ problem: state.problem }, "the egress process is down: redirected connections and names are refused");
      if (performance.now() - begun > STEADY_MS) pause = FIRST_PAUSE_MS;
      await delay(pause, undefined, { signal: stopping.signal }).catch(() => undefined);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  };

  const running = supervise();
  return {
    ready: firstReady,
    async set(sandbox) {
      sandboxes.set(sandbox.address, sandbox);
      const { channel } = state;
      if (channel === undefined) throw new AppError("unavailable", `the egress process is down: ${state.problem}`);
      await channel.ask({ is: "set", sandbox });
    },
    forget(address) {
      if (!sandboxes.delete(address)) return;
      state.channel?.ask({ is: "forget", address }).catch(() => undefined);
    },
    async check(address, flow) {
      if (state.channel === undefined) throw new AppError("unavailable", "the egress process is down");
      const answer = await state.channel.ask({ is: "check", address, flow });
      if (answer.is !== "checked")
        throw new AppError("internal", `the egress process answered ${answer.is} instead of checked`);
      return { ...answer.decision, addresses: [...answer.addresses] };
    },
    get problem() {
      return state.serves ? undefined : state.problem;
    },
    async stop() {
      stopping.abort();
      await state.channel?.stop();
      await running;
    },
  };
}
