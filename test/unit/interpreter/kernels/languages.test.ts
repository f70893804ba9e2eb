import { expect, test } from "vitest";
import { languages } from "../../../../interpreter/kernels/languages.ts";

const known = languages({ node: "node", javascript: "/j", java: "/w", pythonFolder: "/p", path: "/none:/nowhere" });

test.each([
  ["python", "python3", "python3-ipykernel"],
  ["bash", "bash", "bash"],
  ["java", "java", "openjdk-17-jre-headless"],
  ["r", "R", "r-base-core and r-cran-irkernel"],
])("%s without its program names the package", async (language, program, packages) => {
  const started = known.get(language)?.start({ cwd: "/", environment: {}, runtime: "/none" });
  await expect(started).rejects.toThrow(`the program ${program} is missing: install the package ${packages}`);
});
