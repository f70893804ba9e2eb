/** The imports that are forbidden between folders and from libraries; docs/architecture.md draws the programs. */

const { rules: agentLadder } = require("./agent-ladder.cjs");
const { rules: orchestratorLadder } = require("./orchestrator-ladder.cjs");

const only = (name, library, owners) => ({
  name,
  comment: `${library} has its owners; use them`,
  severity: "error",
  from: { path: "^(cli|machine|shared|orchestrator|agent|envd|interpreter)/", pathNot: owners },
  to: { path: `node_modules/${library}/` },
});

/** The folders of what looks at the machine, the top rung first: each imports only what stands below it. */
const machineRungs = [["bundle", "backup"], ["doctor"], ["checks"], ["evidence"], ["invariants", "known", "base"]];
const machineLadder = machineRungs.map((rung, height) => ({
  name: `machine-ladder-${rung.join("-")}`,
  comment: "a folder imports only what stands below it",
  severity: "error",
  from: { path: `^machine/(${rung.join("|")})/` },
  to: {
    path: "^machine/",
    pathNot: [
      "^machine/$1/",
      `^machine/(${
        machineRungs
          .slice(height + 1)
          .flat()
          .join("|") || "none"
      })/`,
    ],
  },
}));

/** A folder that imports nothing else of its program; `shared` may import within itself by the rule's own list. */
const inside = (name, folder, also = folder) => {
  const program = folder.split("/")[0];
  return {
    name,
    severity: "error",
    from: { path: `^${folder}/` },
    to: { path: `^${program}/`, pathNot: `^(${folder}/|${also})` },
  };
};

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "programs-do-not-import-each-other",
      severity: "error",
      from: { path: "^(cli|machine|orchestrator|agent|envd|interpreter|console)/" },
      to: { path: "^(cli|machine|orchestrator|agent|envd|interpreter|console)/", pathNot: ["^$1/", "^machine/"] },
    },
    {
      name: "the-machine-belongs-to-the-command",
      comment: "only commands that look at the machine itself do; all others know the API alone",
      severity: "error",
      from: { path: "^(cli|shared|orchestrator|agent|envd|interpreter|console)/", pathNot: "^cli/commands/machine/" },
      to: { path: "^machine/" },
    },
    {
      name: "the-machine-knows-no-program",
      comment:
        "it asks the programs over their sockets; of shared it has which names are secret, how files with settings are read, and the version",
      severity: "error",
      from: { path: "^machine/" },
      to: { path: "^shared/", pathNot: "^shared/(program/secret-names|program/service/settings-lines|version)\\.ts$" },
    },
    ...machineLadder,
    {
      name: "the-console-has-types-of-the-api-alone",
      comment: "what it imports from there must not be in what browsers load",
      severity: "error",
      from: { path: "^console/" },
      to: { path: "^shared/", pathNot: "^shared/dockerfile/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "the-console-imports-the-public-api-alone",
      severity: "error",
      from: { path: "^console/" },
      to: { path: "^shared/", pathNot: "^shared/(api|dockerfile)/" },
    },
    {
      name: "shared-is-a-leaf",
      severity: "error",
      from: { path: "^shared/" },
      to: { path: "^(cli|machine|orchestrator|agent|envd|interpreter|console|scripts|test)/" },
    },
    {
      name: "nothing-shipped-imports-tests-or-scripts",
      severity: "error",
      from: { path: "^(cli|machine|shared|orchestrator|agent|envd|interpreter|console)/" },
      to: { path: "^(test|scripts)/" },
    },
    {
      name: "the-command-knows-the-api-alone",
      comment:
        "svc is an ordinary client: contracts, what a Dockerfile means, the generated code of envd's services, limits of time, the version",
      severity: "error",
      from: { path: "^cli/" },
      to: {
        path: "^shared/",
        pathNot: "^shared/(api/|dockerfile/|envd-rpc/gen/|http/contract\\.ts$|program/deadline\\.ts$|version\\.ts$)",
      },
    },
    {
      name: "the-command-loads-no-contract",
      comment: "their types cost nothing at run time; their schemas would cost every start of the command",
      severity: "error",
      from: { path: "^cli/" },
      to: { path: "^shared/(api|http)/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "the-build-needs-no-tools",
      comment: "a machine that becomes a node installs no devDependencies, and builds its programs",
      severity: "error",
      from: {
        path: "^(cli|machine|shared|orchestrator|agent|envd|interpreter|console)/|^scripts/(build\\.ts|lib/programs/)",
      },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
    { name: "main-is-not-imported", severity: "error", from: {}, to: { path: "(^|/)main\\.ts$" } },
    {
      name: "envd-stays-light",
      severity: "error",
      from: { path: "^envd/" },
      to: { path: "node_modules/(fastify|pino|typebox|dockerode|better-sqlite3|kysely|undici|http-proxy)/" },
    },
    {
      name: "interpreter-stays-light",
      comment: "every sandbox of the code interpreter holds its server in memory",
      severity: "error",
      from: { path: "^interpreter/" },
      to: { path: "node_modules/(fastify|pino|typebox|dockerode|better-sqlite3|kysely|undici|http-proxy)/" },
    },
    {
      name: "a-worker-is-a-program-of-its-own",
      comment: "it runs in a process of its own, and of the server it has only the types of its commands",
      severity: "error",
      from: { path: "^interpreter/kernels/workers/javascript/" },
      to: { path: "^interpreter/", pathNot: "^interpreter/kernels/(workers/javascript/|kernel\\.ts$)" },
    },
    inside("interpreter-kernels-know-no-context", "interpreter/kernels", "interpreter/json/"),
    inside("interpreter-json-is-a-leaf", "interpreter/json"),
    only("zeromq-has-one-owner", "zeromq", "^interpreter/kernels/jupyter/sockets\\.ts$"),
    only("dockerode-has-one-owner", "dockerode", "^agent/containers/docker(-builds|-images)?\\.ts$"),
    only("sqlite-has-its-owners", "better-sqlite3", "^(orchestrator/store|agent/store)/"),
    only("pg-has-one-owner", "pg", "^orchestrator/store/postgres/"),
    only("http-proxy-has-its-owners", "http-proxy", "^(shared/proxy/sending/|cli/commands/sandboxes/forward\\.ts$)"),
    only("jose-has-one-owner", "jose", "^orchestrator/identity/"),
    only("openid-client-has-one-owner", "openid-client", "^orchestrator/console/oidc/provider\\.ts$"),
    only("x509-has-its-owners", "@peculiar/x509", "^(shared/tls/|agent/egress/rewrite/certificates\\.ts$)"),
    only("pino-has-one-owner", "pino", "^shared/program/log\\.ts$"),
    only("opentelemetry-has-one-owner", "@opentelemetry/[a-z-]+", "^shared/program/tracing/collector\\.ts$"),
    only("socks-has-one-owner", "socks", "^agent/egress/"),
    inside("orchestrator-store-imports-no-handler", "orchestrator/store", "orchestrator/callers/"),
    inside("callers-are-a-leaf", "orchestrator/callers"),
    inside("edge-imports-nothing-of-the-control-plane", "orchestrator/edge"),
    ...orchestratorLadder,
    inside("agent-store-is-a-leaf", "agent/store"),
    inside("egress-is-a-program-of-its-own", "agent/egress"),
    ...agentLadder,
    {
      name: "scripts-import-no-program",
      comment: "but to build one, and to write the OpenAPI document and the pages of the command",
      severity: "error",
      from: {
        path: "^scripts/",
        pathNot: "^scripts/(build|pages/(cli-page|man-pages|openapi)|lib/programs/man-page)\\.ts$",
      },
      to: { path: "^((cli|orchestrator|agent|envd|interpreter)/|machine/(?!known/))" },
    },
    {
      name: "a-program-takes-settings-from-its-config",
      comment: "shared/settings lists the settings of all programs; each uses its own, through config.ts",
      severity: "error",
      from: {
        path: "^(cli|shared|orchestrator|agent|envd|interpreter)/",
        pathNot: "^((orchestrator|agent)/config\\.ts$|orchestrator/edge/program/config\\.ts$|shared/settings/)",
      },
      to: { path: "^shared/settings/" },
    },
    {
      name: "app-calls-each-folder-through-its-wire",
      comment: "a folder of several parts constructs them in its wire.ts, in one constructor that app.ts calls",
      severity: "error",
      from: { path: "^(orchestrator|agent|envd)/app\\.ts$" },
      to: {
        path: "^(orchestrator/(access|api|audit|builds|console|edges|events|identity|lifecycle|nodes|projects|repairs|rotation|sandboxes|secrets|snapshots|store|templates|usage|volumes|webhooks)|agent/(api|builds|disk|network|recovery|sandboxes|snapshots|store)|envd/(http|init|runtime|system))/",
        pathNot: "/wire\\.ts$",
      },
    },
    inside("policy-is-pure", "shared/policy"),
    inside("states-are-pure", "shared/states"),
    {
      name: "pure-files-do-no-io",
      comment: "files that only decide get what they need as arguments",
      severity: "error",
      from: {
        path: "^(shared/(policy|states)/|orchestrator/nodes/placement/|orchestrator/network-policy/|orchestrator/identity/(schedule|subject)\\.ts|agent/(recovery/plan|sandboxes/pool/refill-plan)\\.ts|agent/network/(addresses|firewall-rules)\\.ts)",
      },
      // node:net also has isIP, which does none.
      to: {
        path: "^(fs|child_process|http|https|dgram|dns|tls|worker_threads)(/promises)?$|node_modules/(undici|dockerode|pg)/",
      },
    },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // Only our own output: packages have their files in directories of the same name.
    exclude: { path: "^(dist|shared/envd-rpc/gen)/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
