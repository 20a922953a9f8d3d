export function Hits() {
  return null;
}
