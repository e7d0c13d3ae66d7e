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
  Object.defineProperty(String.prototype, "lines", {value: lines, configurable: true});

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

  const isBlank = (fields) => fields.every((value) => value.trim() === "");
  const hasOneValue = (fields) => fields.filter((value) => value.trim() !== "").length === 1;
  // Titles stand alone above the columns of many sheets. The server tells which ones were left out.
  const titles = new Set();
  globalThis.__titles = titles;
  const withoutTitles = (rows) => {
    const start = rows.findIndex((cells) => !isBlank(cells) && !hasOneValue(cells));
    const above = rows.slice(0, Math.max(start, 0)).filter((cells) => !isBlank(cells));
    if (above.length === 0 || above.some((cells) => cells.length >= rows[start].length)) return rows;
    for (const cells of above) titles.add(cells.join("").trim());
    return rows.slice(start);
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
  const MAX_QUOTED_CHARACTERS = 200;
  const TITLE_HINT = "; if a title stands above, leave it out: `.lines().slice(1).join('\\n').rows()`";
  // An object for each row of a CSV file or a sheet, by the names in its first line that is not empty.
  const rows = function () {
    const table = parseTable(this.replace(/^\uFEFF/, ""));
    const [names = [], ...others] = table.filter((fields) => !isBlank(fields));
    const columns = names.map((name, number) => name.trim() || `column ${number + 1}`);
    if (new Set(columns).size < columns.length) throw new Error(`several columns have one name: ${columns.join(", ")}`);
    return others.map((fields) => {
      const beyond = fields.slice(columns.length);
      if (beyond.some((value) => value !== "")) {
        const quoted = stringify(fields).slice(0, MAX_QUOTED_CHARACTERS);
        const hint = columns.length === 1 ? TITLE_HINT : "";
        throw new Error(`a row has ${fields.length} fields and the table ${columns.length} columns: ${quoted}${hint}`);
      }
      return Object.fromEntries(columns.map((column, number) => [column, fields[number] ?? ""]));
    });
  };
  Object.defineProperty(String.prototype, "rows", {value: rows});
})();
