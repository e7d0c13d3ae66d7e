"""How long the longest chain of imports of each package is: what a reader follows from a page down to its ground."""

from functools import cache

import grimp
import pytest

from contract.test_contract import SERVERS

LONGEST = 12


def longest_chain(package: str) -> list[str]:
    graph = grimp.build_graph(package, cache_dir=None)

    @cache
    def below(module: str) -> list[str]:
        imported = graph.find_modules_directly_imported_by(module)
        return [module, *max(map(below, imported), key=len, default=list[str]())]

    return max(map(below, graph.modules), key=len)


@pytest.mark.parametrize("package", ["mcp_batteries", *(package for package in SERVERS if "." not in package)])
def test_a_chain_of_imports_is_short(package: str) -> None:
    chain = longest_chain(package)
    assert 1 < len(chain) <= LONGEST, " -> ".join(chain)
