export function Groups() {
  return null;
}
