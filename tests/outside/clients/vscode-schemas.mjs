// What VS Code 1.139 says of tools' input schemas without a network: it asks its JSON extension, built on the library
// given here, to check each against https://json-schema.org/draft-07/schema, and drops a tool of which anything is said.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const { getLanguageService, TextDocument } = createRequire(process.argv[2])("vscode-json-languageservice");
const asked = [];
const service = getLanguageService({
  schemaRequestService: (uri) => {
    asked.push(uri);
    return Promise.reject("there is no network");
  },
});
const said = [];
for (const [index, schema] of JSON.parse(await text(process.stdin)).entries()) {
  const uri = `vscode://schemas/temp/${index}`;
  service.configure({ validate: true, schemas: [{ uri: "https://json-schema.org/draft-07/schema", fileMatch: [uri] }] });
  const document = TextDocument.create(uri, "json", 1, JSON.stringify(schema));
  const found = await service.doValidation(document, service.parseJSONDocument(document));
  said.push(found.map(({ message }) => message));
}
console.log(JSON.stringify({ asked, said }));
