/**
 * Where a million rows of equal height stand in an element that browsers allow.
 *
 * Browsers cut elements off at 17 to 33 million pixels, so a long list is squeezed into less. Small moves still go pixel
 * by pixel: only a jump, such as a drag of the scrollbar, goes by the squeezed scale. What is drawn is moved by `shift`,
 * which stays the same during small moves, so nothing is laid out anew.
 */

export const ROW_PX = 28;

/** Below the limit of every browser. */
export const SPACE_MAX_PX = 12_000_000;

export class ScrollSpace {
  /** How far down all rows, in their true height. */
  offset = 0;
  /** How far down the element. */
  top = 0;

  constructor(
    private count = 0,
    private viewport = 0,
  ) {}

  get full(): number {
    return this.count * ROW_PX;
  }

  /** Of the element. */
  get height(): number {
    return Math.min(this.full, SPACE_MAX_PX);
  }

  get shift(): number {
    return this.top - this.offset;
  }

  get rowsInSight(): number {
    return Math.max(1, Math.floor(this.viewport / ROW_PX));
  }

  resize(count: number, viewport: number) {
    this.count = count;
    this.viewport = viewport;
    this.offset = this.clamped(this.offset);
  }

  /** The element was scrolled to `top`. */
  scrolled(top: number) {
    const by = top - this.top;
    const end = Math.max(0, this.height - this.viewport);
    if (this.full <= SPACE_MAX_PX) this.offset = top;
    else if (top <= 0) this.offset = 0;
    else if (top >= end) this.offset = this.endOffset;
    else if (Math.abs(by) <= this.viewport * 2) this.offset = this.clamped(this.offset + by);
    else this.offset = this.clamped((top / end) * this.endOffset);
    this.top = top;
  }

  /** Where the scrollbar belongs once small moves have come to rest. */
  settled(): number {
    const end = Math.max(0, this.height - this.viewport);
    if (this.full <= SPACE_MAX_PX) return this.offset;
    return this.endOffset === 0 ? 0 : (this.offset / this.endOffset) * end;
  }

  /** Moves as little as brings a row into sight; where the element has to be scrolled to. */
  reveal(index: number): number {
    const top = index * ROW_PX;
    if (top < this.offset) this.offset = this.clamped(top);
    else if (top + ROW_PX > this.offset + this.viewport) this.offset = this.clamped(top + ROW_PX - this.viewport);
    this.top = this.settled();
    return this.top;
  }

  /** Rows to draw, from and to, with some beyond the edges. */
  rows(beyond: number): [number, number] {
    const first = Math.floor(this.offset / ROW_PX);
    const last = Math.ceil((this.offset + this.viewport) / ROW_PX);
    return [Math.max(0, first - beyond), Math.min(this.count, last + beyond)];
  }

  private get endOffset(): number {
    return Math.max(0, this.full - this.viewport);
  }

  private clamped(offset: number): number {
    return Math.min(Math.max(0, offset), this.endOffset);
  }
}
