/** Uploads of files, one after the other. A file whose upload was cut is sent again; a failure says what each file has become. */

import { untilAnswered } from "../../base/again.ts";
import { Failed } from "../../base/failed.ts";

interface Uploading<F extends { readonly name: string }> {
  readonly files: readonly F[];
  readonly store: (file: F) => Promise<unknown>;
  readonly tell: (text: string) => void;
  readonly wait?: (ms: number) => Promise<void>;
}

/** @throws {Failed} */
export async function uploadAll<F extends { readonly name: string }>(uploading: Uploading<F>): Promise<void> {
  const { files, store, tell, wait } = uploading;
  for (const [index, file] of files.entries()) {
    const which = `${file.name} (${index + 1} of ${files.length})`;
    tell(`sending ${which}`);
    const lost = () => tell(`the connection was lost, sending ${which} again from its beginning …`);
    try {
      await untilAnswered(() => store(file), { lost, ...(wait === undefined ? {} : { wait }) });
    } catch (error) {
      throw told(error, files, index);
    }
  }
  tell(files.length === 1 ? `${files[0]?.name ?? ""} was uploaded` : `${files.length} files were uploaded`);
}

/** The failure with the state of every file. */
function told(error: unknown, files: readonly { readonly name: string }[], at: number): unknown {
  if (!(error instanceof Error)) return error;
  const names = files.map(({ name }) => name);
  const before = names.slice(0, at).join(", ");
  const after = names.slice(at + 1).join(", ");
  const sentences = [
    `${names[at] ?? ""} was not uploaded; a file of that name may have its beginning.`,
    ...(before === "" ? [] : [`Uploaded before it: ${before}.`]),
    ...(after === "" ? [] : [`Not sent: ${after}.`]),
    error.message,
  ];
  if (!(error instanceof Failed)) return new Error(sentences.join(" "), { cause: error });
  const { status, code, requestId } = error;
  return new Failed(sentences.join(" "), {
    status,
    ...(code === undefined ? {} : { code }),
    ...(requestId === undefined ? {} : { requestId }),
  });
}
