/** What an upgrade of a running platform to another version does: in which order, what is refused, what to look at first. Pure. */

interface Versions {
  readonly version: string;
  /** `source`: it runs from its sources. */
  readonly commit: string;
}

export interface Running {
  readonly orchestrator: Versions & { readonly envdVersion: string; readonly schema: string | undefined };
  readonly nodes: readonly (Versions & {
    readonly id: string;
    readonly status: string;
    readonly sandboxCount: number;
  })[];
  readonly edges: readonly string[];
  /** Running and paused sandboxes of the API key's project, by the version of envd in them. */
  readonly envds: Readonly<Record<string, number>>;
}

export interface Here extends Versions {
  readonly envdVersion: string;
  readonly schema: string;
}

export interface UpgradePlan {
  readonly steps: readonly string[];
  /** What would not start, or not work. */
  readonly refused: readonly string[];
  readonly notes: readonly string[];
}

/** The end of the name of a step of the schema that takes something away. */
const CONTRACTS = "-contracts";

export function upgradePlan(here: Here, running: Running): UpgradePlan {
  const { orchestrator, nodes, edges } = running;
  const behind = nodes.filter((node) => !isSame(node, here));
  const schema = ofSchema(here, orchestrator.schema);
  const steps = [
    ...(isSame(orchestrator, here)
      ? []
      : [
          `each orchestrator: ${named(orchestrator)} -> ${named(here)}${schema.step}; its API, and the edge in it, are away for the seconds of its restart`,
        ]),
    // Those of an upgrade that has begun may be behind as well.
    ...(isSame(orchestrator, here) && behind.length === 0
      ? []
      : edges.map((id) => `edge ${id}: it does not report its version; its streams end and clients open them again`)),
    ...behind.map(
      (node) => `node ${node.id}: ${named(node)} -> ${named(here)}; its ${node.sandboxCount} sandboxes run on`,
    ),
  ];
  return {
    steps,
    refused: [
      ...schema.refused,
      ...tooFar("the orchestrator", orchestrator, here),
      ...nodes.flatMap((node) => tooFar(`node ${node.id}`, node, here)),
    ],
    notes: [...schema.notes, ...ofNodes(nodes), ...ofEnvds(here, running)],
  };
}

function ofSchema({ schema }: Here, running: string | undefined) {
  const none = { step: "", refused: [] as string[], notes: [] as string[] };
  if (running === undefined) return { ...none, notes: ["the platform does not say which schema its database has"] };
  if (running === schema) return none;
  if (running < schema) return { ...none, step: `, which brings the database from ${running} to ${schema}` };
  if (running.endsWith(CONTRACTS)) {
    return {
      ...none,
      refused: [
        `the database is at ${running}, which takes away what this version needs: its orchestrator does not start`,
      ],
    };
  }
  return {
    ...none,
    notes: [`the database is at ${running}, newer than this version's ${schema}: it goes on with it as it is`],
  };
}

/** Programs of two neighbouring minor versions work together; of others nothing is promised. */
function tooFar(what: string, running: Versions, here: Here): readonly string[] {
  const [from, to] = [numbersOf(running.version), numbersOf(here.version)];
  if (from === undefined || to === undefined) return [`${what} runs ${running.version}, which is no version`];
  const is = from[0] === to[0] ? to[1] - from[1] : Number.NaN;
  if (Math.abs(is) <= 1) return [];
  const which =
    is > 0 || to[0] > from[0] ? "go there by the versions between" : "this checkout is older than what runs";
  return [`${what} runs ${running.version}, and only neighbours of ${here.version} work together with it: ${which}`];
}

function ofNodes(nodes: Running["nodes"]): readonly string[] {
  return nodes
    .filter(({ status }) => status !== "ready" && status !== "draining")
    .map(({ id, status }) => `node ${id} is ${status}: mend it first (svc node info ${id})`);
}

function ofEnvds({ envdVersion }: Here, { envds }: Running): readonly string[] {
  return Object.entries(envds)
    .filter(([version]) => version !== envdVersion)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(
      ([version, count]) =>
        `sandboxes of your project that keep envd ${version} until they end: ${count}; new ones get ${envdVersion}`,
    );
}

/** Two programs from sources are not known to be the same. */
function isSame(one: Versions, other: Versions): boolean {
  return one.version === other.version && one.commit === other.commit && one.commit !== "source";
}

function named({ version, commit }: Versions): string {
  return `${version} (${commit.slice(0, 12)})`;
}

function numbersOf(version: string): readonly [number, number] | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)\./.exec(version) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}
