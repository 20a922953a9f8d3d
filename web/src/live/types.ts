/** What the overview is made of, as the server tells it. */

import type { Schema } from "@/api/client";

export type LiveAnswer = Schema["LiveAnswer"];
export type LiveRun = Schema["LiveRun"];
