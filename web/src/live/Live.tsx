export function Live() {
  return null;
}
