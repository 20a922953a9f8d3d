import { useAllKeys } from "./keys";
import { grouped } from "@/parts/grouped";
import { Panel } from "@/parts/Panel";
import css from "./KeyHelp.module.css";

/** Every key that listens at this moment, by what it is about. */
export function KeyHelp({ onClose }: { onClose: () => void }) {
  const groups = grouped(useAllKeys(), (action) => action.group);
  return (
    <Panel title="Keys" onClose={onClose}>
      <div className={css["groups"]}>
        {[...groups].map(([group, actions]) => (
          <section key={group}>
            <h3 className={css["heading"]}>{group}</h3>
            <dl>
              {[...new Map(actions.map((action) => [action.keys, action])).values()].map((action) => (
                <div key={action.keys} className={css["key"]}>
                  <dt>
                    <kbd>{action.keys}</kbd>
                  </dt>
                  <dd>{action.label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Panel>
  );
}
