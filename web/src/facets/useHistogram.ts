import { errorOf, fetchOrTell } from "@/api/client";
import { useAsk } from "@/api/view";

export interface Bin {
  from: number;
  to: number;
  count: number;
}

export interface Histogram {
  field: string;
  n: number;
  nulls: number;
  min: number | null;
  max: number | null;
  mean: number | null;
  bins: Bin[];
}

/** How the numbers of a field lie. */
export function useHistogram(field: string, filter: string, bins: number) {
  return useAsk(["histogram", field, filter, bins], async (view): Promise<Histogram | null> => {
    const query = new URLSearchParams({ field, filter, bins: String(bins) });
    const response = await fetchOrTell(`/api/view/${view}/histogram?${query.toString()}`);
    const body = (await response.json().catch(() => undefined)) as unknown;
    if (!response.ok) throw errorOf(response.status, body);
    return body as Histogram;
  });
}
