import { useQuery } from "@tanstack/react-query";
import { api, ask } from "@/api/client";
import { count, counted } from "@/parts/numbers";
import { nodesOf, type NodeLine } from "./nodes";
import css from "./Nodes.module.css";

/** Who shares the runs, and who owns which. A server by itself shows nothing. */
export function Nodes({ onChoose }: { onChoose: (run: string) => void }) {
  const answer = useQuery({ queryKey: ["nodes"], queryFn: () => ask(api.GET("/api/nodes")), refetchInterval: 1000, staleTime: 0 });
  const nodes = nodesOf(answer.data);
  if (!nodes) return null;
  const alive = nodes.lines.filter((line) => line.alive).length;
  return (
    <section className={css["nodes"]} aria-label="Nodes">
      <h2>{`Nodes: ${count(alive)} of ${count(nodes.lines.length)} alive`}</h2>
      <table className={css["table"]}>
        <thead>
          <tr>
            {["Node", "Address", "State", "Owns"].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.lines.map((line) => (
            <NodeRow key={line.node} line={line} onChoose={onChoose} />
          ))}
        </tbody>
      </table>
      {nodes.orphans.length > 0 && (
        <p className={css["orphans"]}>{`${counted(nodes.orphans.length, "run")} without an owner: ${nodes.orphans.join(", ")}`}</p>
      )}
    </section>
  );
}

function NodeRow({ line, onChoose }: { line: NodeLine; onChoose: (run: string) => void }) {
  return (
    <tr>
      <td className={css["name"]}>{line.asked ? `${line.node} (this one)` : line.node}</td>
      <td>{line.url}</td>
      <td className={line.alive ? undefined : css["gone"]}>{line.state}</td>
      <td className={css["runs"]}>
        {line.runs.map((run) => (
          <button key={run} type="button" className={css["run"]} onClick={() => onChoose(run)}>
            {run}
          </button>
        ))}
      </td>
    </tr>
  );
}
