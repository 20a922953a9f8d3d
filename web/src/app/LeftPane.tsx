import { Facets } from "@/facets/Facets";
import { FilterBox } from "@/filter/FilterBox";
import { Health } from "@/health/Health";
import { SearchBox } from "@/hits/SearchBox";
import { Annotated } from "@/notes/Annotated";
import { SavedViews } from "@/saved/SavedViews";
import { Sources } from "@/sources/Sources";
import css from "./LeftPane.module.css";

/** What is looked at, from the widest to the narrowest: places, filter, words, values. */
export function LeftPane() {
  return (
    <div className={css["left"]}>
      <Sources />
      <Health />
      <FilterBox />
      <SearchBox />
      <Facets />
      <Annotated />
      <SavedViews />
    </div>
  );
}
