import { api, ask, type ApiError } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import { Notice } from "@/parts/Notice";
import { figure } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { quoted } from "@/state/url";
import css from "./Gone.module.css";

const SHOWN = 5;

/** A link to a rollout that is not here any longer, and the ones that may be meant. */
export function Gone({ error, id }: { error: ApiError; id: string }) {
  const { filter } = useView();
  const isNear = error.nearest.length > 0;
  const wanted = isNear ? `id in (${error.nearest.slice(0, SHOWN).map(quoted).join(", ")})` : filter;
  const rows = useAsk(["nearest", wanted], (view) =>
    ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query: { filter: wanted, columns: "step,reward,data_source,rollout_n", limit: SHOWN } } })),
  );
  const [, set] = useViewState();
  const title = error.status === 409 ? "More than one rollout begins with this id" : error.status === 404 ? "This rollout is gone" : "This is not the id of a rollout";
  return (
    <Notice title={title}>
      <p>
        {error.status === 404 ? (
          <>
            No row of this view has the id <code>{id.slice(0, 12)}</code>. Its file may have been replaced, or lie in another place.
          </>
        ) : (
          error.message
        )}
      </p>
      {rows.data && rows.data.rows.length > 0 && (
        <>
          <p>{isNear ? "These may be meant:" : "These are here:"}</p>
          <ul className={css["near"]}>
            {rows.data.rows.map(({ id: other, values: [step, reward, source, n] }) => (
              <li key={other}>
                <button type="button" onClick={() => set({ rollout: other, message: null, range: null, channel: null })}>
                  <code>{other.slice(0, 8)}</code>
                  <span>
                    step {figure(numberOf(step))}, reward {figure(numberOf(reward))}
                    {typeof source === "string" && `, ${source}`}
                    {numberOf(n) !== null && `, number ${figure(numberOf(n))}`}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <button type="button" className={css["close"]} onClick={() => set({ rollout: null, message: null, range: null, channel: null })}>
        Close it
      </button>
    </Notice>
  );
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
