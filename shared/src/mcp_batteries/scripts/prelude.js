// What every script finds defined. FUNCTIONS stands for the array of the tools' names, REPORTING for those of them that
// can change something.
(() => {
  const call = globalThis.__call;
  const write = globalThis.__print;
  delete globalThis.__call;
  delete globalThis.__print;
  const columnsBelowTitles = globalThis.__columnsBelowTitles;
  delete globalThis.__columnsBelowTitles;

  const {parse, stringify} = JSON;

  // JSON has no form for these, or an empty one.
  const plain = (key, value) => {
    if (value instanceof Error || value instanceof RegExp) return String(value);
    if (value instanceof Map || value instanceof Set) return [...value];
    if (value instanceof Promise) return "a promise: await it";
    if (typeof value === "function") return "a function: call it";
    // As `null`, a name that no object has would read as an empty cell.
    if (value === undefined) return "undefined";
    if (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))) return String(value);
    return value;
  };
  const outcome = {lists: {}};

  // A cursor is long, and the next script asks for all pages rather than for one.
  const CURSOR = /^(.*)(?:continue with|the next page:) cursor=(?:"[^"]*"|[^\s;,\]]+)/;
  const withoutCursor = (text) => text.replace(CURSOR, "$1.all() has more");
  const isTelling = (line) => line && !/^\[\w+\]$/.test(line);
  // What is read from a file's first line to its last and is UTF-8 needs no line that says so.
  const WHOLE_FILE = /^\[lines? (?:1-)?(\d+) of (\d+)\]$/;
  const isWhole = (text, line) => {
    const [, last, total] = WHOLE_FILE.exec(line) ?? [];
    return last !== undefined && last === total && text.endsWith("\n") && text.lines().length === Number(total);
  };
  // The first lines in brackets of the last answers. An answer is a plain string, because scripts compare it and take it
  // apart, and nothing can be attached to one. So its line is found by the text that the script has, mostly without it.
  class Remarks {
    static #MAX_TEXTS = 20;
    static #AMBIGUOUS =
      "[several answers had this text, with different first lines: print `remark` after each call]";
    #byText = new Map();
    // Those of answers without a text, which is printed as one of the last answer alone.
    #linesWithoutText = new Set();
    // Those that the script printed by itself, whose answers need no second one.
    #printedLines = new Set();

    add(text, line, isInText, printedText) {
      // An empty text that is printed is that of the last answer, or none.
      this.#byText.delete("");
      if (text === "") this.#linesWithoutText.add(line);
      // If another answer of this text was not printed yet, nothing tells which of the two a script prints.
      const previous = this.#byText.get(text);
      const lines = new Set(previous?.isPrinted === false ? previous.lines : []).add(line);
      // What is set anew without this keeps its place among the oldest.
      this.#byText.delete(text);
      this.#byText.set(text, {lines, isInText, printedText, isPrinted: false});
      if (this.#byText.size > Remarks.#MAX_TEXTS) this.#byText.delete(this.#byText.keys().next().value);
    }

    static #choose(lines) {
      const [line = "", other, ...others] = new Set(lines);
      if (others.length > 0) return Remarks.#AMBIGUOUS;
      return other === undefined ? line : `${line} or ${other}`;
    }

    lineOf(text) {
      const linesOfNone = text === "" ? this.#linesWithoutText : [];
      return Remarks.#choose(this.#byText.get(text)?.lines ?? linesOfNone);
    }

    noteIfLine(value) {
      if (value && [...this.#byText.values()].some(({lines}) => lines.has(value))) this.#printedLines.add(value);
    }

    // What is printed of a text that is an answer as it came, undefined if it is none or needs nothing before it. From
    // now on the text counts as printed.
    toPrint(text) {
      const entry = this.#byText.get(text);
      if (entry === undefined) return undefined;
      entry.isPrinted = true;
      // Later ones are texts of the script's own.
      if (text === "") this.#byText.delete(text);
      const {lines, isInText, printedText} = entry;
      const line = Remarks.#choose(lines);
      if (isInText || !isTelling(line) || this.#printedLines.delete(line)) return undefined;
      if (printedText && lines.size === 1) {
        const [first, ...others] = printedText.split("]\n");
        return [`.remark: ${withoutCursor(first)}; each of \`.lines()\` is whole`, ...others].join("]\n");
      }
      if (isWhole(text, line)) return undefined;
      const head = `.remark: ${withoutCursor(line)}`;
      return text ? `${head}\n${text}` : head;
    }
  }
  const remarks = new Remarks();

  const MIN_TABLE_ROWS = 3;
  const isObject = (value) => value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
  // The rows of a table, if objects have the same names: these once, then their values, an array a line.
  const toTable = (value) => {
    if (!value.every(isObject)) return undefined;
    const names = Object.keys(value[0]);
    const form = stringify([...names].sort());
    const isTable = names.length > 1 && value.every((row) => stringify(Object.keys(row).sort()) === form);
    if (!isTable) return undefined;
    const rows = value.map((row) => names.map((name) => row[name]));
    return [names, ...rows].map((row) => stringify(row, plain));
  };
  const LINE_BREAKING = /[\0-\x08\n-\x1f\x7f-\x9f\u2028\u2029]/;
  // Tabs at its end are empty columns.
  const isPlainLine = (value) =>
    typeof value === "string" && /^\S(?:.*\S)?\t*$/.test(value) && !LINE_BREAKING.test(value);
  // A path, or one behind a verb as in `created a/b.txt`. A line with more than that is one of the script's own.
  const PATH = /^(?:[a-z]+ )?[^\s:"'`()[\]]+$/;
  // The `//` of an address ends no folder.
  const FOLDER = /^(?:[a-z]+ )?[^\s:"'`()[\]]*[^\s:"'`()[\]/]\/(?=\S)/;
  // A folder must save so many characters to stand on a line of its own, as in answers that a model reads.
  const MIN_SAVED_CHARACTERS = 20;
  // Lines that begin with paths: a folder once, above the names in it, which begin with a space.
  const groupByFolder = (lines) => {
    const groups = [];
    for (const line of lines) {
      const [folder] = FOLDER.exec(line) ?? [""];
      if (groups.at(-1)?.folder !== folder) groups.push({folder, names: []});
      groups.at(-1).names.push(line.slice(folder.length));
    }
    return groups.flatMap(({folder, names}) => {
      const isShorter = (folder.length - 1) * names.length - folder.length > MIN_SAVED_CHARACTERS;
      if (!isShorter) return names.map((name) => folder + name);
      return [folder, ...names.map((name) => ` ${name}`)];
    });
  };
  // The lines of an array that is longer as JSON, undefined if it is not.
  const toPrintedLines = (value) => {
    if (!Array.isArray(value) || value.length < MIN_TABLE_ROWS) return undefined;
    if (!value.every(isPlainLine)) return toTable(value);
    return value.every((line) => PATH.test(line)) ? groupByFolder(value) : value;
  };

  // The text of a value, and whether other values stand on other lines than it: lines of an array, and an answer with its
  // first line, are below what is printed before, and above the rest.
  const toShown = (value) => {
    // Who prints an answer as it came reads all of it, and that this line is no part of the text.
    const answer = remarks.toPrint(value);
    const lines = answer === undefined ? toPrintedLines(value) : undefined;
    if (lines) return {text: lines.join("\n"), isApart: true};
    const text = answer ?? toText(value);
    return {text, isApart: text.startsWith(".remark: ")};
  };
  const toText = (value) => {
    remarks.noteIfLine(value);
    const shown = plain("", value);
    return typeof shown === "object" ? stringify(shown, plain) : String(shown);
  };
  const show = (value) => toShown(value).text;
  const joinShown = (values) => {
    let text = "";
    let wasApart = false;
    for (const [number, value] of values.entries()) {
      // An empty text among others is one of the script's own.
      const shown = value === "" ? {text: "", isApart: false} : toShown(value);
      // A blank behind a text that ends in a line end would read as the first character of the next.
      if (number > 0 && !text.endsWith("\n")) text += shown.isApart || wasApart ? "\n" : " ";
      text += shown.text;
      wasApart = shown.isApart;
    }
    return text;
  };
  globalThis.print = (...values) => {
    const text = values.length > 1 ? joinShown(values) : values.map(show).join("");
    // Answers end in a line end of their own. The engine hands over a string that was put together as an object, so it
    // goes as JSON, which is written whole.
    write(stringify(text.endsWith("\n") ? text : `${text}\n`));
  };
  globalThis.console = {log: print, info: print, warn: print, error: print, debug: print};

  // The first line of the last answer, if it was one in brackets: what is shown, and what is missing.
  globalThis.remark = "";
  const withoutRemark = (text) => {
    const [line] = text.split("\n", 1);
    const isRemark = /^\[.*\]$/.test(line);
    globalThis.remark = isRemark ? line : "";
    return isRemark ? text.slice(line.length + 1) : text;
  };

  // Of an answer: its first line in brackets, which the text of a read is without.
  Object.defineProperty(String.prototype, "remark", {get() { return remarks.lineOf(String(this)); }});

  // Of an answer that is one object as JSON: what it tells, for which scripts ask as if the answer were that object. Some
  // tell it in a member of this name, beside a note or an address.
  const dataOf = (text) => {
    try {
      const answer = text.startsWith("{") ? parse(text) : undefined;
      return isObject(answer?.data) ? answer.data : answer;
    } catch {
      return undefined; // A text that begins like JSON.
    }
  };
  Object.defineProperty(String.prototype, "data", {get() { return dataOf(String(this)); }});

  // What the first line of a table says of its rows; the lines of a file may look like a table too.
  const ROWS = /^\[(?:truncated: )?(?:rows|[\d,]+ rows?)\b/;
  const RECORD_MEMBERS = ["data", "note", "removed", "uri"];
  const isRecord = (answer) => isObject(answer.data) && Object.keys(answer).every((name) => RECORD_MEMBERS.includes(name));
  const tableOfJson = (answer) => {
    if (Array.isArray(answer.columns) && Array.isArray(answer.rows)) return answer;
    if (!isRecord(answer)) return undefined;
    // Of a tool that shows one thing, a script expects its members and not the text.
    return {note: answer.note, columns: Object.keys(answer.data), rows: [Object.values(answer.data)]};
  };
  // The columns and rows of an answer that is a table: one object, or a line for the columns and one for each row.
  const tableOf = (text) => {
    try {
      if (remark === "" && text.startsWith("{")) return tableOfJson(parse(text));
      if (!ROWS.test(remark)) return undefined;
      const [columns, ...rows] = text.lines().map((line) => parse(line));
      const isTable = [columns, ...rows].every((row) => Array.isArray(row) && row.length === columns.length);
      return isTable ? {columns, rows} : undefined;
    } catch {
      return undefined; // The lines of a text are no JSON.
    }
  };
  // What JSON and promises ask of any object.
  const OPTIONAL_MEMBERS = ["toJSON", "then"];
  // A column that was not asked for reads as undefined otherwise, which a script takes for a value that is not set.
  const refuseUnknown = (name, columns) => ({
    get(row, column) {
      if (typeof column === "symbol" || column in row || OPTIONAL_MEMBERS.includes(column)) return row[column];
      throw new Error(`${name}.all: a row has no ${column}, only ${columns}; where there is \`fields\`, ask for it there`);
    },
  });
  const toObjects = (name, {columns, rows}) => {
    if (new Set(columns).size < columns.length)
      throw new Error(`columns of one name can't be told apart, name them with AS: ${columns.join(", ")}`);
    const handler = refuseUnknown(name, columns.join(", "));
    const toObject = (row) => Object.fromEntries(columns.map((column, number) => [column, row[number]]));
    return rows.map((row) => new Proxy(toObject(row), handler));
  };

  // What a list says beside its rows; of the first line of a text, the parts that tell what is missing.
  const MISSING = /\b(?:not|only|left out|in part|denied|protected|folded|truncated)\b/;
  const notesOf = (table) =>
    table?.note ? [table.note] : remark.slice(1, -1).split("; ").filter((part) => MISSING.test(part));
  // Of a list that was read to its last page the answer tells how long it was, since a script prints few of many.
  const noteList = (name, length, table) => {
    const list = outcome.lists[name] ?? {calls: 0, length: 0, notes: []};
    outcome.lists[name] = {
      calls: list.calls + 1,
      length: list.length + length,
      unit: table ? "rows" : "lines",
      notes: [...new Set([...list.notes, ...notesOf(table)])],
    };
  };

  // What a tool answers on all its pages: each row of a table as an object, otherwise each line.
  const readAll = (name, ask, args = {}) => {
    const all = [];
    let isCut = false;
    let table;
    for (let page = args; page !== undefined; ) {
      const answer = ask(page);
      const text = withoutRemark(answer.text);
      table = tableOf(text);
      const items = table ? toObjects(name, table) : text.lines();
      if (isCut) all.push(all.pop() + items.shift());
      // One by one, because a call takes only so many arguments.
      for (const item of items) all.push(item);
      // The server reads it from a first line; a table has its cursor beside its rows.
      const next = table?.cursor ? {cursor: table.cursor} : answer.next_page;
      isCut = next?.start_column !== undefined;
      page = next ? {...args, ...next} : undefined;
    }
    noteList(name, all.length, table);
    if (table?.note) globalThis.remark = table.note;
    return all;
  };

  globalThis.tools = {};
  for (const name of FUNCTIONS) {
    const askFor = (wantsRows) => (args = {}, ...others) => {
      if (typeof args !== "object" || args === null || Array.isArray(args) || others.length)
        throw new TypeError(`${name} takes its arguments as one object: ${name}({NAME: VALUE})`);
      globalThis.remark = "";
      const answer = parse(call(name, stringify(args) ?? "null", wantsRows));
      if (answer.error !== undefined) throw new Error(`${name}: ${answer.error}`);
      return answer;
    };
    const tool = (...values) => {
      const {text, printed_text: printedText} = askFor(false)(...values);
      const body = withoutRemark(text);
      // Scripts print a part of a report, and its first line says how much was changed.
      const isReport = REPORTING.includes(name);
      const shown = isReport ? text : body;
      remarks.add(shown, remark, isReport, printedText);
      return shown;
    };
    tool.all = (args) => readAll(name, askFor(true), args);
    globalThis[name] = tool;
    globalThis.tools[name] = tool;
  }

  // Nobody can wait for what a function returns here, so the end of the script does.
  const leftPromises = [];
  const {forEach} = Array.prototype;
  Array.prototype.forEach = function (body, receiver) {
    if (typeof body !== "function") throw new TypeError("not a function");
    return forEach.call(this, (...values) => {
      const value = body.apply(receiver, values);
      if (value instanceof Promise) leftPromises.push(value);
    });
  };

  const describe = (error) => {
    if (error === null) return "null, which is also thrown where memory runs out";
    try {
      return show(error);
    } catch {
      return "an error without a text";
    }
  };
  globalThis.__run = async (body) => {
    try {
      const value = await body();
      // Those that are waited for may leave others.
      for (const promise of leftPromises) await promise;
      if (value !== undefined) print(value);
      outcome.ended = true;
    } catch (error) {
      outcome.error = describe(error);
      outcome.stack = error?.stack;
    }
  };
  globalThis.__outcome = () => stringify({...outcome, columns_below_titles: [...columnsBelowTitles]});
})();
