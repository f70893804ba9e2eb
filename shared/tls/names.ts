/**
 * The names that certificates between machines carry, as a URI: what a peer is, never where it is. Host names and addresses
 * change and may be used twice, so no certificate has one. Pure.
 */

/** An edge that is a program of its own. The edge inside the orchestrator shows the orchestrator's certificate. */
export const EDGE = "svc://edge";
export const ORCHESTRATOR = "svc://orchestrator";
const NODE = "svc://node/";

const NODE_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @throws RangeError for what is no id of a node, which a certificate must never name */
export function nodeName(nodeId: string): string {
  if (!NODE_ID.test(nodeId)) throw new RangeError(`'${nodeId.slice(0, 80)}' is no id of a node`);
  return `${NODE}${nodeId}`;
}

/** The node that the name is of; undefined: it is not a node's. */
export function nodeOfName(name: string | undefined): string | undefined {
  const nodeId = name?.startsWith(NODE) === true ? name.slice(NODE.length) : "";
  return NODE_ID.test(nodeId) ? nodeId : undefined;
}

/**
 * The one name of a certificate. Undefined where it has none, several, or one that is no URI: such a certificate is not ours.
 * @param subjectAltName as `node:crypto` and `node:tls` write it: `URI:svc://node/n1`
 */
export function nameIn(subjectAltName: string | undefined): string | undefined {
  const name = subjectAltName?.startsWith("URI:") === true ? subjectAltName.slice(4) : "";
  if (name === ORCHESTRATOR || name === EDGE) return name;
  return nodeOfName(name) === undefined ? undefined : name;
}
