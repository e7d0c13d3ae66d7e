"""What installed packages require of one another, and the extras that follow from that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions
from typing import NamedTuple

__all__ = ["find_installed_extras", "leave_out_required"]

# A requirement's name, its extras, and the extra of the package that requires it.
_REQUIREMENT = re.compile(r"""([\w.-]+)\s*(?:\[([^]]*)\])?(?:[^;]*;.*\bextra\s*==\s*["']([^"']*))?""")


class _Requirement(NamedTuple):
    """What a package requires.

    Attributes:
        package: the package that requires it.
        name: the package that is required.
        extras: of the required package.
        condition: the extra of `package` without which it is not required.
    """

    package: str
    name: str
    extras: Sequence[str]
    condition: str | None


def find_installed_extras(installed: Distribution) -> list[str]:
    """Return the extras that a package was installed with, which no installer notes.

    An extra was asked for if all that it brings is there. One that brings nothing more than the package itself is none.
    """
    everything = [*distributions()]
    requirements = _requirements(everything)
    present = {_normalize_name(item.name) for item in everything}
    package = _normalize_name(installed.name)
    needed = _brought_names(requirements, package, None)
    extras: list[str] = []
    for extra in installed.metadata.get_all("Provides-Extra") or []:
        brought = _brought_names(requirements, package, extra) - needed
        if brought and brought <= present:
            extras.append(extra)
    return extras


def _brought_names(requirements: Sequence[_Requirement], package: str, extra: str | None) -> set[str]:
    """Return the names of the packages that an extra brings, or without one what a package always needs."""
    names: set[str] = set()
    for requirement in requirements:
        if (requirement.package, requirement.condition) != (package, extra):
            continue
        names.add(requirement.name)
        for other_extra in filter(None, requirement.extras):
            names |= _brought_names(requirements, requirement.name, other_extra)
    return names


def leave_out_required(installed: Sequence[Distribution]) -> list[Distribution]:
    """Return the packages that no other of them needs, for itself or for an extra that is required of it."""
    requirements = _requirements(installed)
    required_extras: set[tuple[str, str]] = set()
    for requirement in requirements:
        for extra in requirement.extras:
            required_extras.add((requirement.name, extra))
    required: set[str] = set()
    for requirement in requirements:
        if not requirement.condition or (requirement.package, requirement.condition) in required_extras:
            required.add(requirement.name)
    return [item for item in installed if _normalize_name(item.name) not in required]


def _requirements(installed: Sequence[Distribution]) -> list[_Requirement]:
    requirements: list[_Requirement] = []
    for item in installed:
        for text in item.requires or []:
            match = _REQUIREMENT.match(text)
            if match is not None:
                extras = [extra.strip() for extra in (match[2] or "").split(",")]
                package = _normalize_name(item.name)
                requirements.append(_Requirement(package, _normalize_name(match[1]), extras, match[3]))
    return requirements


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
