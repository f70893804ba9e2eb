/** Handlers of the sandbox routes that create, read, extend and kill. */

import type { CreateBody } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import type { sandboxApi } from "../../shared/api/sandboxes/sandboxes.ts";
import { defined } from "../../shared/defined.ts";
import type { Context, Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Timing } from "../../shared/program/tracing/timing.ts";
import { hasScope, type ProjectCaller } from "../access/project-caller.ts";
import type { Callers } from "../access/wire.ts";
import { instant } from "../forms/time.ts";
import { checkedId } from "../lifecycle/not-found.ts";
import type { ConnectAsk } from "../lifecycle/pausing/connect.ts";
import { placeOf } from "../lifecycle/whereabouts.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Project } from "../store/projects/record.ts";
import type { SandboxFilter } from "../store/sandboxes/filter.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import { DEFAULT_TAG, possibleTemplateReference } from "../templates/reference.ts";
import type { Creating } from "./create/create.ts";
import { fromToken, type Order, parseMetadata, parseStates, STATES, toToken } from "./lists.ts";
import { checkTimeout } from "./options.ts";
import type { Timed } from "./timed.ts";
import type { Totals } from "./totals.ts";
import { toDetail, toListed, toResult, toSandbox, type ViewDeps } from "./view.ts";

export interface SandboxesDeps {
  readonly store: Store;
  readonly nodes: Pick<Nodes, "get">;
  readonly creating: Creating;
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
  readonly templates: TemplateNames;
  readonly view: ViewDeps;
  readonly timed: Timed;
  readonly totals: Totals;
}

type SandboxHandlers = Omit<
  Handlers<typeof sandboxApi, ProjectCaller>,
  "metricsOfMany" | "metrics" | "logsV1" | "logs"
>;

/** Timeouts of a create request that names none. */
const DEFAULT_TIMEOUT_S = 300;
const DEFAULT_TIMEOUT_V1_S = 15;

export function createSandboxHandlers(deps: SandboxesDeps): SandboxHandlers {
  const { store } = deps;
  const { ending, lifetime, connecting, history } = deps.lifecycle;
  const { limits } = deps.callers;

  async function create(body: CreateBody, defaultTimeoutSeconds: number, context: Context<Project>) {
    const { count = 1 } = body;
    const { caller, signal } = context;
    if (count === 1) {
      const create = (timing: Timing) => deps.creating.one(caller, body, { defaultTimeoutSeconds, signal, timing });
      return toSandbox(await deps.timed("create", context, create), deps.view);
    }
    const outcomes = await deps.timed("create", context, (timing) =>
      deps.creating.many(caller, body, { defaultTimeoutSeconds, signal, timing, count }),
    );
    return outcomes.map((outcome) => toResult(outcome, deps.view));
  }

  async function filterOf(project: Project, query: { metadata?: string; template?: string; startedAfter?: string }) {
    const metadata = parseMetadata(query.metadata);
    const filter: Omit<SandboxFilter, "states"> = {
      projectId: project.id,
      ...(metadata.size === 0 ? {} : { metadata }),
      ...(query.startedAfter === undefined ? {} : { startedAfter: instant(query.startedAfter) }),
    };
    if (query.template === undefined || query.template === "") return filter;
    const reference = possibleTemplateReference(query.template);
    if (reference !== undefined && reference.tag !== DEFAULT_TAG) {
      throw new AppError(
        "bad_request",
        `query field 'template' must not have the tag '${reference.tag}': sandboxes of all builds of a template are listed`,
      );
    }
    const template = reference === undefined ? undefined : await deps.templates.find(project, reference);
    // An unknown or impossible name gives an empty list, not an error (docs/protocol.md, References).
    return { ...filter, templateId: template?.id ?? "" };
  }

  /** Where a paused sandbox is stored. */
  async function placeIn({ state, snapshot, nodeId, volumeMounts }: SandboxRecord) {
    if (state !== "paused" || snapshot === undefined) return undefined;
    const inStore = (await store.blobRefs.of(snapshot.id)) !== undefined;
    const hasVolumes = volumeMounts.length > 0;
    const stored = { kind: "paused", snapshotId: snapshot.id, nodeId, inStore, hasVolumes } as const;
    return placeOf(stored, deps.nodes.get(nodeId));
  }

  async function connect(reference: string, ask: ConnectAsk, { caller, status }: Context<Project>) {
    checkTimeout(ask.seconds, limits.hours(caller));
    const { record, resumed } = await connecting.connect(caller, checkedId(reference), ask);
    if (resumed) status(201);
    return toSandbox(record, deps.view);
  }

  return {
    create: ({ body }, context) => create(body, DEFAULT_TIMEOUT_S, context),
    createV1: ({ body }, context) => create(body, DEFAULT_TIMEOUT_V1_S, context),

    async get({ params, query }, { caller }) {
      const record = await history.find(caller, params.sandboxID, query.ended);
      return toDetail(record, deps.view, { mayChange: hasScope(caller, "sandboxes"), place: await placeIn(record) });
    },

    async kill({ params }, { caller }) {
      const id = checkedId(params.sandboxID);
      const record = await store.sandboxes.get(id);
      if (record === undefined || record.projectId !== caller.id || !(await ending.kill(id, "request"))) {
        throw history.missing(caller, id, await store.sandboxes.get(id));
      }
    },

    async listRunning({ query }, { caller }) {
      const filter = await filterOf(caller, query);
      const records = await store.sandboxes.list(
        { ...filter, states: STATES.running },
        { order: "desc", limit: 10_000 },
      );
      return records.map(toListed);
    },

    async list({ query }, { caller, header }) {
      const order: Order = query.order ?? "desc";
      const limit = query.limit ?? 100;
      const wanted = parseStates(query.state);
      const resuming = wanted.includes("paused");
      const states = wanted.flatMap((state) => STATES[state]);
      const after = fromToken(query.nextToken, order);
      const endedSince = history.readableSince();
      const filter = { ...(await filterOf(caller, query)), states, resuming, endedSince };
      const [counts, records] = await Promise.all([
        deps.totals.of(filter, after === undefined),
        store.sandboxes.list(filter, { order, limit: limit + 1, ...defined({ after }) }),
      ]);
      const total = (of: readonly string[]) =>
        [...counts].reduce((sum, [state, count]) => sum + (of.includes(state) ? count : 0), 0);
      const page = records.slice(0, limit);
      const last = page.at(-1);
      if (records.length > limit && last !== undefined) header("x-next-token", toToken(last, order));
      if (wanted.includes("running")) header("x-total-running", String(total(STATES.running)));
      header("x-total-count", String(total(resuming ? [...states, "starting"] : states)));
      return page.map(toListed);
    },

    connect: ({ params, body }, context) => {
      const { timeout: seconds = DEFAULT_TIMEOUT_S, onTimeout } = body;
      return connect(params.sandboxID, { seconds, memory: memoryOf(body), onTimeout }, context);
    },
    connectV1: ({ params, body }, context) =>
      connect(params.sandboxID, { seconds: body.timeout, memory: memoryOf(body), onTimeout: body.onTimeout }, context),

    async setTimeout({ params, body }, { caller }) {
      await lifetime.set(caller, checkedId(params.sandboxID), Math.max(0, body.timeout));
    },
    async refresh({ params, body }, { caller }) {
      await lifetime.refresh(caller, checkedId(params.sandboxID), body.duration);
    },
  };
}

/** Whether a connect restores memory; undefined: as the create request asked. */
function memoryOf({ memory, onResume }: { readonly memory?: boolean; readonly onResume?: "restore" | "reboot" }) {
  if (onResume === undefined) return memory;
  const restores = onResume === "restore";
  if (memory !== undefined && memory !== restores) {
    throw new AppError("bad_request", "body fields 'memory' and 'onResume' contradict each other");
  }
  return restores;
}
