/** The platform that `FROM --platform` names: templates run on one, because nodes are x86-64 (README.md). Pure. */

const PLATFORM = "linux/amd64";
/** The names that Docker has for it. */
const NAMES = /^(linux(\/(amd64|x86_64|x86-64)(\/v1)?)?|amd64|x86_64|x86-64)$/i;

/** Variables that Docker sets by itself: of the platform that builds, and of the one that it builds for. */
export const OWN_PLATFORM: ReadonlyMap<string, string> = new Map(
  ["BUILD", "TARGET"].flatMap((which): [string, string][] => [
    [`${which}PLATFORM`, PLATFORM],
    [`${which}OS`, "linux"],
    [`${which}ARCH`, "amd64"],
    [`${which}VARIANT`, ""],
  ]),
);

/** @param name empty: none was named */
export function isOwnPlatform(name: string): boolean {
  return name === "" || NAMES.test(name);
}

export function otherPlatform(name: string): string {
  return `--platform=${name} is not ${PLATFORM}, on which templates run: name an image that has ${PLATFORM}, and leave --platform out`;
}
