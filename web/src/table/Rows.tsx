import { api, ask } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import { useViewState } from "@/state/location";

export function Rows() {
  const { filter } = useView();
  const [, set] = useViewState();
  const rows = useAsk(["rows", filter], (view) => ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query: { filter } } })));
  return (
    <ul>
      {rows.data?.rows.map((row) => (
        <li key={row.id}>
          <button type="button" onClick={() => set({ rollout: row.id })}>
            {row.id}
          </button>
        </li>
      ))}
    </ul>
  );
}
