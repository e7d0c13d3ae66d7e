"""The only room that refuses: it decides what is a place, a day, a unit, and makes the engine's types."""

from mcp_weather.policy.days import Day, Days
from mcp_weather.policy.place import DIRECTIONS, Place, point_at
from mcp_weather.policy.place_search import GEOCODED, Geocoder
from mcp_weather.policy.place_text import PlaceName
from mcp_weather.policy.policy import RESOURCE_KINDS, AirportCode, AlertPosition, Policy, ResourceUri, place_scope
from mcp_weather.policy.units import CustomUnits, System, Units

__all__ = [
    "DIRECTIONS",
    "GEOCODED",
    "RESOURCE_KINDS",
    "AirportCode",
    "AlertPosition",
    "CustomUnits",
    "Day",
    "Days",
    "Geocoder",
    "Place",
    "PlaceName",
    "Policy",
    "ResourceUri",
    "System",
    "Units",
    "place_scope",
    "point_at",
]
