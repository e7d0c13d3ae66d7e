"""What a service answered, before anybody has judged it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ServiceResponse", "service_name"]

_SERVICE_NAMES = {
    "nws": "The National Weather Service", "canada": "Environment Canada", "meteoalarm": "MeteoAlarm",
    "aviation": "The Aviation Weather Center", "metservice": "MetService",
    "wmo": "The WMO's Severe Weather Information Centre",
}  # fmt: skip


@dataclass(frozen=True)
class ServiceResponse:
    """What a service answered.

    Attributes:
        key: the query, which begins with the service's name.
        headers: by their names, in any case.
    """

    service: str
    key: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """The service's name for people."""
        return service_name(self.service)


def service_name(service: str) -> str:
    """Return the name of a service for people."""
    return _SERVICE_NAMES.get(service, "Open-Meteo")
