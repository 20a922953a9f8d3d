/** Diffs are made here, so that the page stays awake while two long rollouts are compared. */

import type { Piece } from "./align";
import { diffOf } from "./rows";

addEventListener("message", (event: MessageEvent<{ left: Piece[]; right: Piece[] }>) => {
  postMessage(diffOf(event.data.left, event.data.right));
});
