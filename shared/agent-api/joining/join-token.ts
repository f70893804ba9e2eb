/**
 * The text that lets a machine join: `svcjoin1.<digest of the authority>.<id>.<secret>`. The digest is checked before the
 * secret is sent, so the text also says whom the machine may trust. Pure.
 */

export interface JoinToken {
  /** SHA-256 of the authority's public key, in hexadecimal digits. */
  readonly digest: string;
  /** Names the token in lists and logs. */
  readonly id: string;
  readonly secret: string;
}

const FORM = /^svcjoin1\.([0-9a-f]{64})\.([a-z0-9]{12})\.([A-Za-z0-9_-]{32})$/;

export function joinTokenText({ digest, id, secret }: JoinToken): string {
  return `svcjoin1.${digest}.${id}.${secret}`;
}

/** @throws RangeError that says what is wrong and never has the text, which may hold a secret */
export function readJoinToken(text: string): JoinToken {
  const [, digest, id, secret] = FORM.exec(text.trim()) ?? [];
  if (digest !== undefined && id !== undefined && secret !== undefined) return { digest, id, secret };
  const way = "copy the whole text that POST /admin/join-tokens has answered";
  if (!text.trim().startsWith("svcjoin1.")) throw new RangeError(`a join token begins with 'svcjoin1.': ${way}`);
  throw new RangeError(`the join token is cut off or changed, it has ${text.trim().length} characters of 119: ${way}`);
}
