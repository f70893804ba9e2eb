/**
 * Explains to the author of a build why an image could not be pulled: image, reason, way out. Docker's own words
 * name the host's resolver, proxies and addresses, so they go to the node's log only. Pure.
 */

/** A failure of Docker, by its words: the reason and the way out for the person who builds. */
export interface FailureReason {
  readonly when: RegExp;
  readonly reason: string;
  readonly wayOut: string;
}

const CREDENTIALS = "give credentials with fromImage(image, { username, password }), or check those that were given";
const TRY_AGAIN = "try again later, or ask the node's operator whether the registry can be reached from there";

/** The first reason whose `when` matches Docker's message counts. */
const REASONS: readonly FailureReason[] = [
  {
    when: /no matching manifest|does not match the specified platform/i,
    reason: "the registry has this image only for other processor types",
    wayOut: "choose an image for linux/amd64",
  },
  {
    when: /no such host|server misbehaving|name resolution|lookup .*(?:i\/o timeout|connection refused)/i,
    reason: "the name of its registry cannot be resolved",
    wayOut: "check the name; a registry that the node cannot resolve needs an uploaded archive instead (oci-archive:)",
  },
  {
    when: /pull access denied|repository does not exist|requested access to the resource is denied/i,
    reason: "its registry has no such image, or shows it only with credentials",
    wayOut: `check the name and the tag; ${CREDENTIALS}`,
  },
  {
    when: /no basic auth credentials|unauthorized|authentication required|\b401\b/i,
    reason: "its registry requires credentials, or refused those given",
    wayOut: CREDENTIALS,
  },
  { when: /denied|forbidden|\b403\b/i, reason: "its registry does not allow it", wayOut: CREDENTIALS },
  {
    when: /manifest unknown|not found|\b404\b/i,
    reason: "its registry has no such image or tag",
    wayOut: "check the name and the tag",
  },
  {
    when: /toomanyrequests|too many requests|rate limit|\b429\b/i,
    reason: "its registry allows no more pulls for now (rate limit)",
    wayOut: "try again later, or give credentials with fromImage(image, { username, password })",
  },
  {
    when: /gave HTTP response to HTTPS client/i,
    reason: "its registry does not speak TLS",
    wayOut: "ask the node's operator to list it under insecure-registries of the Docker daemon",
  },
  {
    when: /x509|certificate/i,
    reason: "Docker does not trust the certificate of its registry",
    wayOut: "ask the node's operator to put the authority into /etc/docker/certs.d",
  },
  {
    when: /no space left|disk quota exceeded/i,
    reason: "the node's disk is full",
    wayOut: "ask the node's operator to free disk space",
  },
  {
    when: /connection refused|connection reset|no route to host|network is unreachable|\bEOF\b/i,
    reason: "its registry does not answer",
    wayOut: TRY_AGAIN,
  },
  {
    when: /time-?out|timed out|deadline exceeded|request canceled/i,
    reason: "its registry did not answer in time",
    wayOut: TRY_AGAIN,
  },
];

const UNKNOWN: Pick<FailureReason, "reason" | "wayOut"> = {
  reason: "Docker refused it",
  wayOut: "the node's operator finds Docker's message in the log of the agent",
};

/** One sentence; `said` is Docker's message, which the sentence never contains. */
export function pullFailure(image: string, said: string): string {
  const { reason, wayOut } = REASONS.find(({ when }) => when.test(said)) ?? UNKNOWN;
  return `the image ${image} cannot be pulled: ${reason}; ${wayOut}`;
}

/** Docker's message for the log: one line, of bounded length, without credentials that an address holds. */
export function cleanedForLog(said: string): string {
  return said
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ")
    .replaceAll(/(\w+:\/\/)[^\s/@]+@/g, "$1***@")
    .replaceAll(/([?&;][\w-]*(?:token|signature|password|secret|credential)[\w-]*=)[^\s&"]+/gi, "$1***")
    .trim()
    .slice(0, 500);
}
