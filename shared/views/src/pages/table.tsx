// Rows of a query: sorted, filtered, paged through the server's own cursor, copied, charted; keys lead to the rows they name.

import {
  columnFilteringFeature, createFilteredRowModel, createPaginatedRowModel, createSortedRowModel, globalFilteringFeature,
  rowPaginationFeature, rowSortingFeature, tableFeatures, useTable,
} from "@tanstack/preact-table";
import { useEffect, useMemo, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { type Call, mount } from "../kit/mount";
import { type Cell, cellText, csv, EXACT, fractionDigits, type Kind, kindOf, markdown, type Page, parsePage } from "../kit/rows";
import { plain, Text } from "../kit/text";
import "./table.css";
import { RowsChart } from "./table-chart";
import { type Chosen, Facets, facetsOf, passes } from "./table-facets";
import { Led, useTargets } from "./table-keys";

const PAGER = "query_rows";
/** The tool that takes the cursor of every result with rows. */
const COLUMNS_SHOWN = 40;
const CELL_SHOWN = 300;
/** Of a cell beside many others, which all get as high as it. */
const CELL_SHOWN_AMONG_MANY = 120;
const FEW_COLUMNS = 3;
const ROWS_SHOWN = 50;
const COLUMNS_CHOSEN = 300;
/** Columns up to which each has a box to tick. */

type Row = { at: number; cells: Cell[] };

const features = tableFeatures({
  columnFilteringFeature,
  globalFilteringFeature,
  rowPaginationFeature,
  rowSortingFeature,
  filteredRowModel: createFilteredRowModel(),
  paginatedRowModel: createPaginatedRowModel(),
  sortedRowModel: createSortedRowModel(),
  sortFns: {
    cells: (one: { getValue(id: string): unknown }, other: { getValue(id: string): unknown }, id: string) =>
      compare(one.getValue(id) as Cell, other.getValue(id) as Cell),
  },
  filterFns: {
    cells: (row: { getValue(id: string): unknown }, id: string, wanted: unknown) => matches(row.getValue(id) as Cell, String(wanted)),
    anywhere: (row: { original: unknown }, _: string, wanted: unknown) =>
      (row.original as Row).cells.some((cell) => matches(cell, String(wanted))),
  },
});

/** Nothing, then numbers, then text. Integers beyond 2^53 and decimals come as text and are numbers all the same. */
function rank(cell: Cell): number {
  if (cell === null) return 0;
  return typeof cell === "number" || typeof cell === "boolean" || (typeof cell === "string" && EXACT.test(cell)) ? 1 : 2;
}

/** A decimal as an integer with 40 places. */
function scaled(text: string): bigint | null {
  const found = EXACT.exec(text);
  return found && BigInt(`${found[1]}${found[2]}${(found[3] ?? "").padEnd(40, "0")}`);
}

function compare(one: Cell, other: Cell): number {
  if (rank(one) !== rank(other)) return rank(one) - rank(other);
  const [a, b] = [cellText(one), cellText(other)];
  if (rank(one) !== 1) return a.localeCompare(b);
  const [x, y] = [scaled(a), scaled(b)];
  if (x !== null && y !== null) return x < y ? -1 : x > y ? 1 : 0;
  return Number(one) - Number(other);
}

function matches(cell: Cell, wanted: string): boolean {
  return cellText(cell).toLowerCase().includes(wanted.toLowerCase());
}

function Rows(call: Call) {
  const first = useMemo(() => parsePage(call.text), [call.text]);
  if (!first && !call.text.trim()) return <p class="quiet">The answer is empty.</p>;
  if (!first) return <pre class="scroll plain-text" tabIndex={0}><Text value={call.text} /></pre>;
  return <Grid key={call.text} call={call} first={first} />;
}

function Grid({ call, first }: { call: Call; first: Page }) {
  const [pages, setPages] = useState([first]);
  const [loading, setLoading] = useState(false);
  const [from, setFrom] = useState(0);
  const [charted, setCharted] = useState(false);
  const [narrowing, setNarrowing] = useState(false);
  const [open, setOpen] = useState<{ row: number; column: number }>();
  const [choosing, setChoosing] = useState(false);
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());

  const [counting, setCounting] = useState(false);
  const [kept, keep] = useState<Chosen>({});
  const [led, lead] = useState<{ column: number; cell: Cell }>();
  const targets = useTargets(call, first.columns);

  const rows = useMemo(() => pages.flatMap((page) => page.rows), [pages]);
  const data = useMemo(() => rows.map((cells, at): Row => ({ at, cells })).filter(({ cells }) => passes(cells, kept)), [rows, kept]);
  const facets = useMemo(() => (counting ? facetsOf(first.columns, rows) : []), [counting, rows]);
  const kinds = useMemo(() => first.columns.map((_, column) => kindOf(rows.slice(0, 200), column)), [first, rows]);
  const types = useMemo(() => first.columns.map((_, column) => typeOf(kinds[column]!, rows.slice(0, 200), column)), [first, kinds]);
  const amounts = useMemo(
    () => first.columns.map((name, column) => kinds[column] === "number" && !NAMES_A_THING.test(name)), [first, kinds],
  );
  const fractions = useMemo(
    () => first.columns.map((_, column) => (kinds[column] === "number" ? fractionDigits(rows, column) : 0)), [first, kinds, rows],
  );
  const columns = useMemo(
    () => first.columns.map((name, column) => ({
      id: String(column),
      header: name,
      accessorFn: (row: Row) => row.cells[column] ?? null,
      sortFn: "cells" as const,
      sortDescFirst: kinds[column] === "number",
      filterFn: "cells" as const,
    })),
    [first, kinds],
  );
  const table = useTable({
    features, columns, data,
    globalFilterFn: "anywhere",
    getColumnCanGlobalFilter: (column) => column.id === "0",
    autoResetPageIndex: false,
    enableMultiSort: true,
    initialState: { pagination: { pageIndex: 0, pageSize: ROWS_SHOWN } },
  });

  const cursor = pages[pages.length - 1]!.cursor;
  const { pageIndex } = table.state.pagination;
  const matching = table.getFilteredRowModel().rows.length;
  const pageCount = table.getPageCount();
  const atEnd = pageIndex >= pageCount - 1;
  const chosen = table.getAllLeafColumns().filter((column) => !hidden.has(Number(column.id)));
  const window = chosen.slice(from, from + COLUMNS_SHOWN);
  const visible = table.getSortedRowModel().rows.map((row) => (row.original as Row).cells);

  const load = async (): Promise<boolean> => {
    setLoading(true);
    call.say("Loading more rows…");
    try {
      const result = await call.host.callTool(PAGER, { cursor, limit: 500, max_bytes: 100_000 });
      const page = parsePage(textOf(result));
      if (result.isError || !page) {
        call.say(plain(textOf(result), 500));
        return false;
      }
      setPages((pages) => [...pages, page]);
      call.say(`${page.rows.length.toLocaleString("en")} more rows loaded.`);
      return true;
    } catch (error) {
      call.say((error as Error).message);
      return false;
    } finally {
      setLoading(false);
    }
  };
  // A page for a model can be a few wide rows; a person gets a screenful.
  useEffect(() => {
    if (first.cursor && first.rows.length < ROWS_SHOWN) void load();
  }, []);
  const next = async () => {
    if (!atEnd) table.setPageIndex(pageIndex + 1);
    else if (await load()) table.setPageIndex(pageIndex + 1);
  };

  const notes = pages[pages.length - 1]!.notes;
  const count = rows.length.toLocaleString("en");
  const longest = first.columns.length <= FEW_COLUMNS ? CELL_SHOWN : CELL_SHOWN_AMONG_MANY;
  return (
    <>
      <div class="bar">
        <input type="search" class="grow" aria-label="Filter rows" placeholder="Filter rows"
          onInput={(event) => { table.setGlobalFilter(event.currentTarget.value); table.setPageIndex(0); }} />
        <div class="tools">
          <button type="button" aria-pressed={narrowing} onClick={() => setNarrowing(!narrowing)}>Filter columns</button>
          <button type="button" aria-pressed={counting} onClick={() => setCounting(!counting)}>Values</button>
          {first.columns.length > 1 && first.columns.length <= COLUMNS_CHOSEN && (
            <button type="button" aria-pressed={choosing} onClick={() => setChoosing(!choosing)}>Columns</button>
          )}
          <button type="button" aria-pressed={charted} onClick={() => setCharted(!charted)}>Chart</button>
          <button type="button" onClick={() => call.copied(csv(first.columns, visible), `${visible.length} rows as CSV`)}>Copy CSV</button>
          <button type="button" onClick={() => call.copied(markdown(first.columns, visible), `${visible.length} rows as Markdown`)}>Copy Markdown</button>
        </div>
      </div>
      {counting && (
        <Facets columns={first.columns} facets={facets} chosen={kept} onChoose={(column, value) => {
          const values = new Set(kept[column]);
          if (!values.delete(value)) values.add(value);
          keep({ ...kept, [column]: values });
          table.setPageIndex(0);
        }} />
      )}
      {counting && cursor && <p class="quiet">Counted among the {count} rows loaded so far; GROUP BY counts them all.</p>}
      {choosing && (
        <fieldset class="choices">
          <legend class="unseen">Columns to show</legend>
          {first.columns.map((name, column) => (
            <label key={column}>
              <input type="checkbox" checked={!hidden.has(column)} disabled={!hidden.has(column) && hidden.size === first.columns.length - 1}
                onChange={() => { setHidden(toggled(hidden, column)); setFrom(0); }} />
              <Text value={plain(name, 60)} />
            </label>
          ))}
        </fieldset>
      )}
      {charted && <RowsChart columns={first.columns} rows={visible} theme={call.theme} />}
      {notes.map((note) => <p class="quiet"><Text value={note} /></p>)}
      {chosen.length > COLUMNS_SHOWN && (
        <div class="bar" role="group" aria-label="Columns">
          <button type="button" disabled={from === 0} onClick={() => setFrom(Math.max(0, from - COLUMNS_SHOWN))}>← Columns</button>
          <span>Columns {from + 1}–{Math.min(from + COLUMNS_SHOWN, chosen.length)} of {chosen.length.toLocaleString("en")}</span>
          <button type="button" disabled={from + COLUMNS_SHOWN >= chosen.length} onClick={() => setFrom(from + COLUMNS_SHOWN)}>Columns →</button>
        </div>
      )}
      <div class="scroll rows" role="region" aria-label="Rows" tabIndex={0}>
        <table class={first.columns.length <= FEW_COLUMNS ? "few" : ""}>
          <caption class="unseen">Result of the query</caption>
          <thead>
            <tr>
              {window.map((column) => {
                const sorted = column.getIsSorted();
                return (
                  <th key={column.id} scope="col" class={kinds[Number(column.id)]}
                    aria-sort={sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : "none"}>
                    <button type="button" class="plain" onClick={(event) => { column.toggleSorting(undefined, event.shiftKey); table.setPageIndex(0); }}>
                      <Text value={plain(first.columns[Number(column.id)]!, 100)} />
                      <span aria-hidden="true" class="arrow">{sorted === "asc" ? "▲" : sorted === "desc" ? "▼" : ""}</span>
                    </button>
                    <span class="type" aria-hidden="true">{types[Number(column.id)]}</span>
                  </th>
                );
              })}
            </tr>
            {narrowing && (
              <tr>
                {window.map((column) => (
                  <td key={column.id} class="narrow">
                    <input type="search" aria-label={`Filter ${plain(first.columns[Number(column.id)]!, 100)}`}
                      value={String(column.getFilterValue() ?? "")}
                      onInput={(event) => { column.setFilterValue(event.currentTarget.value || undefined); table.setPageIndex(0); }} />
                  </td>
                ))}
              </tr>
            )}
          </thead>
          <tbody>
            {table.getRowModel().rows.map((row) => (
              <tr key={row.id}>
                {window.map((column) => {
                  const { at, cells } = row.original as Row;
                  const index = Number(column.id);
                  return (
                    <td key={column.id} class={kinds[index]}>
                      <Value cell={cells[index] ?? null} amount={amounts[index]!} digits={fractions[index]!} longest={longest} onOpen={() => setOpen({ row: at, column: index })}
                        onLead={targets[index] && (() => lead({ column: index, cell: cells[index] ?? null }))} />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
        {matching === 0 && <p class="quiet empty">{rows.length ? "No row matches." : "No rows."}</p>}
      </div>
      {(rows.length > 0 || cursor) && <nav class="bar pager" aria-label="Pages">
        <button type="button" disabled={pageIndex === 0} onClick={() => table.setPageIndex(pageIndex - 1)}>← Previous</button>
        <span>
          {matching === 0 ? "0" : `${(pageIndex * ROWS_SHOWN + 1).toLocaleString("en")}–${Math.min((pageIndex + 1) * ROWS_SHOWN, matching).toLocaleString("en")}`}
          {" of "}{matching === rows.length ? count : `${matching.toLocaleString("en")} matching of ${count}`}
          {cursor ? " loaded, more on the server" : ""}
        </span>
        <button type="button" disabled={loading || (atEnd && !cursor)} onClick={next}>{atEnd && cursor ? "Load more →" : "Next →"}</button>
      </nav>}
      {cursor && table.state.sorting.length > 0 && (
        <p class="quiet">Sorted among the rows loaded so far; ORDER BY sorts them all.</p>
      )}
      {led && targets[led.column] && <Led call={call} target={targets[led.column]!} cell={led.cell} onClose={() => lead(undefined)} />}
      {open && (
        <section class="whole" aria-label="Whole cell">
          <div class="bar">
            <h2 class="grow"><Text value={plain(first.columns[open.column]!)} />, row {open.row + 1}</h2>
            <button type="button" onClick={() => call.copied(cellText(rows[open.row]![open.column]), "the cell")}>Copy</button>
            <button type="button" onClick={() => setOpen(undefined)}>Close</button>
          </div>
          <pre class="scroll" tabIndex={0}><Text value={cellText(rows[open.row]![open.column])} /></pre>
        </section>
      )}
    </>
  );
}

/** Numbers that count or measure; the digits of others, such as a key or a year, belong together. */
const NAMES_A_THING = /(^|[_ ])(id|key|year|zip|code|number|nr|no|port|pid|oid|phone|version)$|(^|[a-z])Id$/i;

/** A number whose thousands are apart and whose point is below that of others, by style: what is copied are its digits alone. */
function Amount({ text, grouped, digits }: { text: string; grouped: boolean; digits: number }) {
  const [, sign = "", whole = "", fraction = ""] = EXACT.exec(text) ?? [];
  const groups = grouped && whole.length > 4 ? whole.match(/\d{1,3}(?=(\d{3})*$)/g)! : [whole];
  return (
    <bdi>
      {sign}{groups.map((group, number) => <span key={number} class={number ? "thousand" : ""}>{group}</span>)}
      {digits > 0 && <span class="fraction" style={{ minWidth: `calc(${digits}ch + 0.4em)` }}>{fraction && `.${fraction}`}</span>}
    </bdi>
  );
}

/** What a column holds, in a word. */
function typeOf(kind: Kind, rows: Cell[][], column: number): string {
  const texts = rows.map((row) => cellText(row[column])).filter(Boolean);
  if (!texts.length) return "";
  if (kind === "number") return texts.some((text) => /[.e]/i.test(text)) ? "decimal" : "integer";
  if (kind === "time") return texts.every((text) => text.length <= 10) ? "date" : "time";
  return rows.every((row) => row[column] === null || typeof row[column] === "boolean") ? "boolean" : "text";
}

function toggled(set: ReadonlySet<number>, item: number): ReadonlySet<number> {
  const copy = new Set(set);
  if (!copy.delete(item)) copy.add(item);
  return copy;
}

interface ValueProps {
  cell: Cell;
  /** Whether the column counts or measures something. */
  amount: boolean;
  /** Places after the point in this column. */
  digits: number;
  /** How many characters are shown. */
  longest: number;
  onOpen: () => void;
  onLead: (() => void) | undefined;
}

function Value({ cell, amount, digits, longest, onOpen, onLead }: ValueProps) {
  if (cell === null) return <span class="null">null</span>;
  const text = cellText(cell);
  if (typeof cell === "object") return <span class="quiet"><Text value={plain(text, longest)} /></span>;
  if (onLead && text.length < 100) return <button type="button" class="plain link" onClick={onLead}><Text value={text} /></button>;
  if ((amount || digits > 0) && EXACT.test(text)) return <Amount text={text} grouped={amount} digits={digits} />;
  if (text.length <= longest && !text.includes("\n")) return <Text value={text} />;
  return (
    <span class="cut">
      <span class="start"><Text value={text.slice(0, longest)} /></span>
      <button type="button" class="plain more" onClick={onOpen}>
        … {text.length.toLocaleString("en")} characters
      </button>
    </span>
  );
}

mount("Table", Rows);
