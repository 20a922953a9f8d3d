import css from "./Skeleton.module.css";

/** The shape of a rollout that is being read. */
export function Skeleton() {
  return (
    <div className={css["skeleton"]} role="status">
      <span className="visually-hidden">The rollout is being read</span>
      {[40, 62, 0, 96, 91, 74, 0, 88, 95, 52].map((width, n) => (
        <span key={n} className={css["bar"]} style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}
