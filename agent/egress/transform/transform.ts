/** Stands in for the transform until it is there: refuses. */

import type { Transform } from "../carried.ts";

export const transform: Transform = (socket) => {
  socket.resetAndDestroy();
  return { closed: Promise.resolve({ sent: 0, received: 0 }), destroy: () => undefined };
};
