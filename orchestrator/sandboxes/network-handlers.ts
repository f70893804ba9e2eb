/** Handlers of the routes about a sandbox's network policy. */

import type { NetworkCheck, NetworkLogEntry } from "../../shared/agent-api/routes.ts";
import type { NetworkDecision, NetworkVerdict, sandboxNetworkApi } from "../../shared/api/sandboxes/sandbox-network.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressNumber } from "../../shared/policy/ranges.ts";
import type { Callers } from "../access/wire.ts";
import { iso } from "../forms/time.ts";
import { checkedId } from "../lifecycle/not-found.ts";
import { shown } from "../lifecycle/record-state.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import { adviceOnAsked } from "../network-policy/advice.ts";
import { explanation } from "../network-policy/explanation.ts";
import { countDestinations, type NetworkLimits, readEgress } from "../network-policy/options.ts";
import { behind } from "../network-policy/refuse.ts";
import { splitPassword } from "../network-policy/secret.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Project } from "../store/projects/record.ts";

export interface NetworkHandlersDeps extends NetworkLimits {
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly callers: Callers;
}

const NODE_LIMIT = { timeoutMs: 15_000 } as const;

export function createNetworkHandlers(deps: NetworkHandlersDeps): Handlers<typeof sandboxNetworkApi, Project> {
  const { nodes } = deps;
  const { history, nodeData, networks } = deps.lifecycle;
  const { limits, refusals } = deps.callers;
  return {
    async updateNetwork({ params, body }, { caller }) {
      const id = checkedId(params.sandboxID);
      const internet = body.allow_internet_access;
      const { network = {}, proxyPassword } = splitPassword(readEgress({ ...body, internet }, "", deps));
      refusals.checkEgressRules(countDestinations(network), limits.of(caller).egressRules);
      await networks.replace(caller, id, { network, proxyPassword, internet });
    },

    async checkNetwork({ params, query }, { caller }) {
      const { port, protocol = "tcp" } = query;
      const host = addressNumber(query.host) === undefined ? hostName(query.host) : query.host;
      if (host === undefined) {
        const advice = behind(": ", adviceOnAsked(query.host));
        throw new AppError("bad_request", `query field 'host' must be a host name or an IPv4 address${advice}`);
      }
      const record = await history.find(caller, params.sandboxID);
      const { id, nodeId, executionId } = record;
      if (shown(record) !== "running") throw new AppError("conflict", `Sandbox "${id}" is paused; resume it first`);
      try {
        const query = { host, port, protocol };
        return toVerdict(await nodes.agent(nodeId).checkNetwork({ params: { executionId }, query }, NODE_LIMIT));
      } catch (error) {
        if (!isError(error, "not_found")) throw error;
        throw new AppError("conflict", `Sandbox "${id}" is not running on its node`, { cause: error });
      }
    },

    async networkLog({ params, query }, { caller }) {
      const { cursor, limit = 1000, ended } = query;
      const record = await history.find(caller, params.sandboxID, ended);
      const { id: sandboxId, nodeId } = record;
      const asked = { limit, ...defined({ cursor }) };
      const from = () => nodes.agent(nodeId).networkLog({ params: { sandboxId }, query: asked }, NODE_LIMIT);
      const { entries, suppressed } = await nodeData.read(record, "decisions about connections", {
        from,
        none: { entries: [], suppressed: 0 },
      });
      return { entries: entries.map(toDecision), suppressed };
    },
  };
}

function toVerdict({ verdict, rule, reason, via, transform, addresses }: NetworkCheck): NetworkVerdict {
  return {
    verdict,
    rule,
    reason,
    ...defined({ via, transform }),
    addresses,
  };
}

function toDecision({ at, address, ...entry }: NetworkLogEntry): NetworkDecision {
  const reason = explanation({ ...entry, address });
  return { timestamp: iso(at), destination: address, ...entry, ...defined({ reason }) };
}
