export function Info() {
  return null;
}
