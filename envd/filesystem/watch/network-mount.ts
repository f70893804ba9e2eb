/** Whether a path is on a network file system, which does not report changes made elsewhere. */

import { statfsType } from "../../system/disk.ts";
import { naming } from "../../system/errno.ts";

/** `f_type` of nfs, smb, cifs, smb2, fuse. */
const NETWORK_TYPES = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546]);

/** @throws {AppError} not_found when nothing is there */
export async function isNetworkMount(path: string): Promise<boolean> {
  const type = await statfsType(path).catch(naming(path));
  // The kernel's number is signed on some architectures.
  return NETWORK_TYPES.has(type >>> 0);
}
