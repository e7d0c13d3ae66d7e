// What every text of a script has: its lines, and the rows of the table that it may be.
(() => {
  const {stringify} = JSON;

  // Each line without its end, LF or CRLF.
  const lines = function () {
    const all = this.split("\n");
    if (all.at(-1) === "") all.pop();
    return all.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  };
  // A function of this name would be out of reach in a script that calls a variable so.
  Object.defineProperty(String.prototype, "lines", {value: lines});

  // The fields of each line of a CSV file, where a quoted one may go over several lines.
  const fieldsOf = (text, separator) => {
    const field = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^${separator}\\r\\n]*))([${separator}]|\\r?\\n|\\r|$)`, "y");
    const all = [[]];
    while (field.lastIndex < text.length) {
      const [, quoted, plain, end] = field.exec(text);
      all.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
      if (end === separator && field.lastIndex === text.length) all.at(-1).push("");
      else if (end !== separator) all.push([]);
    }
    return all;
  };
  const SEPARATORS = [",", ";", "\t", "|"];
  const parseFields = (text) => {
    const firstLine = text.trimStart().split(/[\r\n]/, 1)[0].replace(/"[^"]*"/g, "");
    const countOf = (separator) => firstLine.split(separator).length;
    return fieldsOf(text, SEPARATORS.reduce((best, one) => (countOf(one) > countOf(best) ? one : best)));
  };

  const MAX_QUOTED_CHARACTERS = 200;
  const quote = (text) => text.slice(0, MAX_QUOTED_CHARACTERS);
  const isBlank = (fields) => fields.every((value) => value.trim() === "");
  const hasOneValue = (fields) => fields.filter((value) => value.trim() !== "").length === 1;
  // A number or a date, which is no name of a column.
  const isFigure = (value) => /\d/.test(value) && !/\p{L}/u.test(value);
  // Titles stand alone above the columns of many sheets. The server tells what was taken for the columns then.
  const columnsBelowTitles = new Set();
  globalThis.__columnsBelowTitles = columnsBelowTitles;
  const withoutTitles = (rows) => {
    const filled = rows.filter((cells) => !isBlank(cells));
    const start = filled.findIndex((cells) => !hasOneValue(cells));
    if (start < 1) return filled;
    const above = filled.slice(0, start);
    const [columns, firstRow] = filled.slice(start);
    // A line that stands out from a list of single values is none of columns.
    const isAboveRows = firstRow !== undefined && !hasOneValue(firstRow);
    if (!isAboveRows || columns.some(isFigure) || above.some((cells) => cells.length >= columns.length)) return filled;
    const titles = above.map((cells) => cells.join("").trim()).join("; ");
    columnsBelowTitles.add(`${quote(columns.join(", "))} (below ${quote(titles)})`);
    return filled.slice(start);
  };

  // A sheet of a workbook begins with its name and the area of its cells. A line or a cell behind many empty ones says
  // where it stands; comments on cells follow the rows.
  const SHEET = /^\[sheet .*, (?:([A-Z]+)\d+:[A-Z]+\d+|empty)\b.*\]$/;
  const NO_ROW = /^\[(?:row \d+\]$|comment [A-Z]+\d+\] )/;
  const PLACED_CELL = /^\[([A-Z]{1,3})\d+\] (.*)$/;
  const columnNumber = (letters) => [...letters].reduce((number, letter) => 26 * number + letter.charCodeAt(0) - 64, 0);
  const cellsOf = (line, firstColumn) => {
    const cells = [];
    for (const cell of line.split("\t")) {
      const [, letters, text] = PLACED_CELL.exec(cell) ?? [];
      const column = letters === undefined ? 0 : columnNumber(letters) - firstColumn;
      // A text in the next cell may look like a place too.
      const isPlaced = column > cells.length;
      while (cells.length < column) cells.push("");
      cells.push(isPlaced ? text : cell);
    }
    return cells;
  };
  const parseSheet = ([, ...others], firstColumn) => {
    if (others.some((line) => line.startsWith("[sheet ")))
      throw new Error("there are several sheets: read one, as by `a.xlsx!/NAME`");
    const end = others.find((line) => line.startsWith("[cut after "));
    if (end !== undefined) throw new Error(`the sheet is not whole: ${end}`);
    return withoutTitles(others.filter((line) => !NO_ROW.test(line)).map((line) => cellsOf(line, firstColumn)));
  };

  const parseTable = (text) => {
    const all = text.lines();
    const [firstLine = ""] = all;
    const sheet = SHEET.exec(firstLine);
    if (sheet) return parseSheet(all, columnNumber(sheet[1] ?? "A"));
    if (firstLine.startsWith('["')) throw new Error("these are rows in JSON, which are objects by `TOOL.all()`");
    if (/^\[[^\]]*\]$/.test(firstLine)) throw new Error(`the first line names no columns: ${firstLine}`);
    return parseFields(text);
  };
  const TITLE_HINTS = {
    sheet: "read the rows from the columns on, as by `a.xlsx!/NAME!3:99`",
    text: "leave it out: `.lines().slice(1).join('\\n').rows()`",
  };
  const hintOf = (text) => `; if a title stands above, ${text.startsWith("[sheet ") ? TITLE_HINTS.sheet : TITLE_HINTS.text}`;
  // An object for each row of a CSV file or a sheet, by the names in its first line that is not empty.
  const rows = function () {
    const table = parseTable(this.replace(/^\uFEFF/, ""));
    const [names = [], ...others] = table.filter((fields) => !isBlank(fields));
    const columns = names.map((name, number) => name.trim() || `column ${number + 1}`);
    if (new Set(columns).size < columns.length) throw new Error(`several columns have one name: ${columns.join(", ")}`);
    return others.map((fields) => {
      const beyond = fields.slice(columns.length);
      if (beyond.some((value) => value !== "")) {
        const hint = columns.length === 1 ? hintOf(this) : "";
        throw new Error(`a row has ${fields.length} fields and the table ${columns.length} columns: ${quote(stringify(fields))}${hint}`);
      }
      return Object.fromEntries(columns.map((column, number) => [column, fields[number] ?? ""]));
    });
  };
  Object.defineProperty(String.prototype, "rows", {value: rows});
})();
