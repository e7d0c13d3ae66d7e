"""The folders and files everything is measured on, the same on every machine."""

import random
from dataclasses import dataclass
from pathlib import Path

FILES = 50_000
_PER_MODULE, _MODULES = 40, 25


@dataclass(frozen=True)
class Data:
    """Where what lies.

    Attributes:
        small: a folder with one file of 1 KB and what is written and edited.
        tree: 50,000 files in 1,250 folders; some ignored, hidden, binary.
        large: the folder of the big files.
        watched: a folder of files to subscribe to.
    """

    root: Path

    @property
    def small(self) -> Path:
        return self.root / "small"

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def large(self) -> Path:
        return self.root / "large"

    @property
    def watched(self) -> Path:
        return self.root / "watched"


def small(root: Path) -> Data:
    """One file of each kind the call rows need, anew."""
    data = Data(root)
    data.small.mkdir(parents=True, exist_ok=True)
    (data.small / "1k.txt").write_text(lines_of(1_000), "ascii")
    (data.small / "written.txt").write_text("", "ascii")
    (data.small / "edited.txt").write_text(lines_of(500) + "alpha\n" + lines_of(500), "ascii")
    (data.small / "1m.txt").write_text(lines_of(1_000_000), "ascii")
    (data.small / "10m.txt").write_text(lines_of(10_000_000), "ascii")
    return data


def lines_of(size: int) -> str:
    """Text of `size` characters in lines of 60, like and unlike each other as code is."""
    count = size // 60 + 1
    text = "".join(f"{number:>8}  the quick brown fox jumps over the lazy dog, again\n" for number in range(count))
    return text[: size - 1] + "\n"


def watched(root: Path, count: int) -> list[Path]:
    """`count` files, a hundred to a folder."""
    files: list[Path] = []
    for number in range(count):
        folder = Data(root).watched / f"{number // 100:03}"
        if number % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        files.append(folder / f"{number:05}.txt")
        if not files[-1].exists():
            files[-1].write_text("0", "ascii")
    return files


def tree(root: Path, files: int = FILES) -> None:
    """About a tenth ignored, 1 in 100 hidden, 1 in 50 binary; about 50 hold a needle, about 50 a telling name."""
    top = Data(root).tree
    if top.exists():
        return
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(3000)]
    lines = [" ".join(chance.choices(words, k=8)) + "\n" for _ in range(5000)]
    top.mkdir(parents=True)
    (top / ".gitignore").write_text("*.log\n/build\nnode_modules/\n__pycache__/\nmod01/\nmod02/\n!keep.log\n", "ascii")
    for number in range(files):
        module, place = divmod(number, _PER_MODULE)
        folder = top / f"pkg{module // _MODULES:02}" / f"mod{module % _MODULES:02}"
        if place == 0:
            folder.mkdir(parents=True, exist_ok=True)
        name = f"{'.' if number % 100 == 99 else ''}file{place:02}.{('py', 'txt', 'js', 'md')[number % 4]}"
        if number % 1013 == 500:
            name = f"special{number}.cfg"
        body = "".join(chance.choices(lines, k=chance.choice([10, 50, 150]))).encode()
        if number % 50 == 25:
            body = b"\x00\x01\x02" + body
        if number % 1009 == 0:
            body += f"here lies needle_{number} among the hay\n".encode()
        (folder / name).write_bytes(body)


def large(root: Path, megabytes: int = 500) -> Data:
    """One long file of short lines, one of a single 20 MB line."""
    data = Data(root)
    data.large.mkdir(parents=True, exist_ok=True)
    long = data.large / "long.txt"
    if not long.exists():
        block = lines_of(1_000_000).encode()
        with long.open("wb") as file:
            for _ in range(megabytes):
                file.write(block)
    line = data.large / "line.txt"
    if not line.exists():
        line.write_bytes(b"0123456789" * 2_000_000 + b"\n")
    return data
