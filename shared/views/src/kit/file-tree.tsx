// The files of a change as a tree of their folders, to go to one of them.

import type { FileDiff } from "./diff";
import { Text } from "./text";

interface Folder {
  name: string;
  folders: Folder[];
  files: { name: string; file: FileDiff; number: number }[];
}

function folderOf(files: FileDiff[]): Folder {
  const top: Folder = { name: "", folders: [], files: [] };
  files.forEach((file, number) => {
    const parts = file.name.split("/");
    let at = top;
    for (const name of parts.slice(0, -1)) {
      let next = at.folders.find((folder) => folder.name === name);
      if (!next) at.folders.push(next = { name, folders: [], files: [] });
      at = next;
    }
    at.files.push({ name: parts[parts.length - 1]!, file, number });
  });
  return top;
}

/** A folder that holds one folder and nothing else is one line with it. */
function joined(folder: Folder): Folder {
  let { name, folders, files } = folder;
  while (!files.length && folders.length === 1) ({ name, folders, files } = { ...folders[0]!, name: `${name}/${folders[0]!.name}` });
  return { name, folders, files };
}

export function FileTree({ files, onGo }: { files: FileDiff[]; onGo: (number: number) => void }) {
  return <nav class="file-tree" aria-label="Files"><Level folder={folderOf(files)} onGo={onGo} /></nav>;
}

function Level({ folder, onGo }: { folder: Folder; onGo: (number: number) => void }) {
  return (
    <ul>
      {folder.folders.map(joined).map((inner) => (
        <li key={inner.name}><span class="folder"><Text value={`${inner.name}/`} /></span><Level folder={inner} onGo={onGo} /></li>
      ))}
      {folder.files.map(({ name, file, number }) => (
        <li key={number}>
          <button type="button" class="plain" onClick={() => onGo(number)}>
            <Text value={name} />
            <span class="sum"><span class="more">+{file.added}</span> <span class="fewer">−{file.removed}</span></span>
          </button>
        </li>
      ))}
    </ul>
  );
}
