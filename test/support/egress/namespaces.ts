/** Three network namespaces in a row: sandbox, node and "internet". The node redirects what the sandbox sends. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  CheckFlow,
  Forget,
  FromEgress,
  SandboxEgress,
  SetPolicy,
  ToEgress,
} from "../../../agent/egress/channel/messages.ts";
import { egressCommand } from "../../../agent/egress-supervisor/program.ts";
import { runCommand } from "../../../agent/host/command.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import { until } from "../runner/until.ts";
import type { Attempt, Outcome } from "./client.ts";
import type { Seen } from "./internet.ts";
import { BORDER, FIRST, NODE, RESOLVER, SECOND } from "./plan.ts";

const root = new URL("../../..", import.meta.url).pathname;
export const GATEWAY = "10.211.0.1";
export const BOX = "10.211.0.2";
const PORT = 15_001;
const MARK = "0x1";

const sh = (command: string) => execFileSync("sh", ["-ec", command], { stdio: ["ignore", "pipe", "pipe"] }).toString();
const inside = (name: string, args: readonly string[]) => [`--net=/run/netns/${name}`, ...args];

/** Makes a self-signed pair: these tests terminate no TLS, but the egress process needs a pair. */
function authority() {
  const directory = mkdtempSync(join(tmpdir(), "egress-"));
  const path = join(directory, "pem");
  sh(
    `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=test -keyout ${path}.key -out ${path}`,
  );
  const read = (file: string) => sh(`cat ${file}`);
  const pair = { certificate: read(path), key: read(`${path}.key`) };
  rmSync(directory, { recursive: true });
  return pair;
}

export interface Bench {
  readonly seen: Seen[];
  readonly messages: FromEgress[];
  readonly egressPid: number;
  /** Makes an attempt from the sandbox. */
  attempt(attempt: Attempt): Promise<Outcome>;
  /** Makes an attempt from the node, past the egress process. */
  attemptDirectly(attempt: Attempt): Promise<Outcome>;
  ended(): boolean;
  /** Sends a message to the egress process and waits for its answer. */
  ask(message: Omit<SetPolicy, "id"> | Omit<Forget, "id"> | Omit<CheckFlow, "id">): Promise<FromEgress>;
  policy(policy: EgressPolicy): Promise<void>;
  say(message: ToEgress): void;
  /**
   * Sends the egress process its first message and waits until it is ready. By default there is one sandbox, with that
   * policy.
   */
  begin(policy: EgressPolicy, options?: Partial<BenchOptions>, sandboxes?: readonly SandboxEgress[]): Promise<void>;
  /** The connections, and below the requests, that the internet has seen. */
  arrivals(): Extract<Seen, { is: "tcp" }>[];
  requests(): Extract<Seen, { is: "request" }>[];
  disconnect(): void;
  stop(): Promise<void>;
}

export interface BenchOptions {
  readonly name: string;
  readonly connectionsPerSandbox?: number;
  readonly proxyAllowedRanges?: readonly string[];
}

export async function openBench(options: BenchOptions): Promise<Bench> {
  const names = { box: `${options.name}-box`, node: `${options.name}-node`, net: `${options.name}-net` };
  const clear = () => {
    for (const name of Object.values(names)) sh(`ip netns del ${name} 2>/dev/null || true`);
  };
  clear();
  layOut(names);
  const directory = mkdtempSync(join(tmpdir(), "egress-"));
  chmodSync(directory, 0o755);
  const command = await egressCommand(runCommand, directory, { gateway: GATEWAY, port: PORT, dnsPort: 53 });

  const start = (name: string, args: readonly string[]) =>
    spawn("nsenter", inside(name, args), { cwd: root, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const tsx = [process.execPath, "--import", "tsx"];
  const internet = start(names.net, [...tsx, "test/support/egress/internet.ts"]);
  const client = start(names.box, [...tsx, "test/support/egress/client.ts"]);
  const direct = start(names.node, [...tsx, "test/support/egress/client.ts"]);
  const egress = start(names.node, command);

  const seen: Seen[] = [];
  const messages: FromEgress[] = [];
  const outcomes = new Map<number, (outcome: Outcome) => void>();
  let last = 0;
  internet.on("message", (message) => void seen.push(message as Seen));
  egress.on("message", (message) => void messages.push(message as FromEgress));
  for (const child of [client, direct]) {
    child.on("message", (message) => {
      const { id, outcome } = message as { id: number; outcome: Outcome };
      outcomes.get(id)?.(outcome);
    });
  }
  const attempt = (from: ChildProcess, attempt: Attempt): Promise<Outcome> => {
    last += 1;
    const id = last;
    from.send({ id, attempt });
    return new Promise((resolve) =>
      // What the internet has told by now is read first: a busy machine has both messages ready at once.
      outcomes.set(id, (outcome) => void setImmediate(() => setImmediate(resolve, outcome))),
    );
  };
  await until(() => seen.length > 0, { what: "the internet", timeoutMs: 60_000 });
  seen.length = 0;

  const say = (message: ToEgress) => void egress.send(message);
  const bench: Bench = {
    seen,
    messages,
    egressPid: egress.pid ?? 0,
    say,
    attempt: (what) => attempt(client, what),
    attemptDirectly: (what) => attempt(direct, what),
    ended: () => egress.exitCode !== null || egress.signalCode !== null,
    async ask(message) {
      last += 1;
      const id = last;
      say({ ...message, id });
      const answer = () => messages.find((message) => message.is !== "resolve" && "id" in message && message.id === id);
      await until(() => answer() !== undefined, { what: "an answer", timeoutMs: 60_000, everyMs: 5 });
      return answer() as FromEgress;
    },
    async policy(policy) {
      const answer = await bench.ask({ is: "set", sandbox: sandbox(policy) });
      if (answer.is !== "done") throw new Error(JSON.stringify(answer));
    },
    async begin(policy, options = {}, sandboxes = [sandbox(policy)]) {
      say({ ...beginWith(options), sandboxes });
      await until(() => messages.some(({ is }) => is === "ready"), { what: "ready", timeoutMs: 60_000 });
    },
    arrivals: () => seen.filter((one) => one.is === "tcp"),
    requests: () => seen.filter((one) => one.is === "request"),
    disconnect: () => egress.disconnect(),
    async stop() {
      for (const child of [client, direct, internet, egress]) {
        if (child.exitCode === null && child.signalCode === null) {
          child.kill("SIGKILL");
          await once(child, "exit");
        }
      }
      clear();
      rmSync(directory, { recursive: true });
    },
  };
  return bench;
}

function sandbox(policy: EgressPolicy): SandboxEgress {
  return { address: BOX, executionId: "exec_1", sandboxId: "sbx_1", policy };
}

function beginWith(options: Partial<BenchOptions>): Omit<Extract<ToEgress, { is: "begin" }>, "sandboxes"> {
  return {
    is: "begin",
    gateway: GATEWAY,
    dnsUpstream: RESOLVER,
    authority: authority(),
    extraCertificates: "",
    connectionsPerSandbox: options.connectionsPerSandbox ?? 1_000,
    proxyAllowedRanges: options.proxyAllowedRanges ?? [],
  };
}

function layOut({ box, node, net }: { box: string; node: string; net: string }): void {
  sh(`
    for n in ${box} ${node} ${net}; do ip netns add $n; ip -n $n link set lo up; done
    ip -n ${node} link add box0 type veth peer name eth0 netns ${box}
    ip -n ${node} link add net0 type veth peer name eth0 netns ${net}
    ip -n ${box} addr add ${BOX}/24 dev eth0; ip -n ${box} link set eth0 up
    ip -n ${node} addr add ${GATEWAY}/24 dev box0; ip -n ${node} link set box0 up
    ip -n ${box} route add default via ${GATEWAY}
    ip -n ${node} addr add ${NODE}/30 dev net0; ip -n ${node} link set net0 up
    ip -n ${net} addr add ${BORDER}/30 dev eth0; ip -n ${net} link set eth0 up
    ip -n ${net} route add local ${SECOND} dev lo
    ip -n ${net} route add local ${FIRST} dev lo
    ip -n ${net} route add local 10.77.0.0/24 dev lo
    ip -n ${node} route add ${SECOND} via ${BORDER}
    ip -n ${node} route add ${FIRST} via ${BORDER}
    ip -n ${node} route add 10.77.0.0/24 via ${BORDER}
    ip -n ${node} rule add fwmark ${MARK} lookup 100
    ip -n ${node} route add local default dev lo table 100
  `);
  const rules = `
    table ip egress {
      chain in { type filter hook prerouting priority mangle;
        iifname "box0" meta l4proto tcp ip daddr != ${GATEWAY} tproxy to ${GATEWAY}:${PORT} meta mark set ${MARK} accept
      }
    }`;
  execFileSync("nsenter", inside(node, ["nft", "-f", "-"]), { input: rules });
}
