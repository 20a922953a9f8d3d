export function Group() {
  return null;
}
