export function Curves() {
  return null;
}
