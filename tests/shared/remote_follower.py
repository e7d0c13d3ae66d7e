"""A process that follows remote keys through a shared cache folder, and says what happens on standard output.

    python -m shared.remote_follower FOLDER PORT KEY... [--hang]

With `--hang` its first request is never finished: the process is to be killed in the middle of it.
"""

import sys

import anyio

from mcp_batteries.remote import Cache, DiskStore, FetchResult, Outcome, RemoteSource, Validators


async def main(folder: str, port: int, keys: list[str], hang: bool) -> None:
    async def fetch(key: str, validators: Validators) -> Outcome:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send((key + "\n").encode())
            if hang:
                print("hanging", flush=True)
                await anyio.sleep_forever()
            return FetchResult(await stream.receive(), poll_after=0.2)

    async def shown(uri: str) -> list[str]:
        return [uri]

    cache = Cache(DiskStore(folder, ["test"]), fetch)
    source = RemoteSource(cache, lambda uri: uri, shown)

    async def tell() -> None:
        await source.add(keys)
        print("following", flush=True)

    def changed(uris: object) -> None:
        for uri in sorted(map(str, uris)):  # pyright: ignore
            body = cache.store.read(uri).body
            print(f"changed {uri} {body.decode() if body else None}", flush=True)

    async with cache, anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, changed)
        tasks.start_soon(tell)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--hang"]
    anyio.run(main, words[0], int(words[1]), words[2:], "--hang" in sys.argv)
