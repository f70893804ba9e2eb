/** A sealed value that is damaged or does not open under any key. To a caller it is a fault of the platform (AppError.from). */
export class SealError extends Error {
  override readonly name = "SealError";
}
