export function Diff() {
  return null;
}
