import { api, ask, type Schema } from "@/api/client";
import { useAsk } from "@/api/view";

export type Histogram = Schema["HistogramAnswer"];
export type Bin = Schema["BinAnswer"];

/** How the numbers of a field lie. */
export function useHistogram(field: string, filter: string, bins: number) {
  return useAsk(
    ["histogram", field, filter, bins],
    (view) => ask(api.GET("/api/view/{view}/histogram", { params: { path: { view }, query: { field, filter, bins } } })),
    { isAside: true },
  );
}
