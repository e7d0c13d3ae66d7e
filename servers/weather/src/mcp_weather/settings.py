"""The settings of mcp-weather, besides those of every server."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from mcp_batteries.settings import ABSOLUTE, Dependencies, Secret, to_absolute_path
from mcp_batteries.settings import Settings as CommonSettings

__all__ = ["LANGUAGES", "Settings"]

# All codes of ISO 639-1.
_LANGUAGE_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
    "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
    "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
    "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk "
    "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi "
    "yo za zh zu "
)
LANGUAGES = frozenset(_LANGUAGE_CODES.split())
_OPEN_METEO_URLS = (
    "forecast_url",
    "geocoding_url",
    "air_quality_url",
    "marine_url",
    "archive_url",
    "flood_url",
    "ensemble_url",
)


class Settings(CommonSettings):
    """Serve the weather over MCP: current, forecast and past weather, alerts, air and sea, without configuration."""

    COMMAND: ClassVar[str] = "mcp-weather"
    FREQUENT: ClassVar[tuple[str, ...]] = ("units", "language", "places", "contact", "open_meteo_key")
    PLAIN_HINT: ClassVar[str] = "Name a place in your question; to save some under names: --places FILE"
    EXAMPLES: ClassVar[tuple[str, ...]] = ("", "--units imperial", "--places ./places.toml")
    DOCUMENTED: ClassVar[tuple[str, ...]] = ()

    places: Annotated[str | None, ABSOLUTE] = Field(
        None, description="TOML file of saved places; reloaded when it changes."
    )
    units: str = Field(
        "metric",
        max_length=100,
        description="Units of answers unless a call says otherwise: metric, imperial, nautical, or as "
        "`metric,wind=kn,pressure=inHg`.",
    )
    language: str = Field("en", pattern="^[a-z]{2}$", description="Language of place names and alerts, as two letters.")
    cache: str | None = Field(
        None, description="Cache folder, shared by your servers, or `memory`; by default in the user's cache folder."
    )
    refresh: int | None = Field(
        None,
        ge=1,
        le=86_400,
        description="Most seconds between two checks of the weather; by default as the services state.",
    )
    timeout: int = Field(15, ge=1, le=300, description="Seconds until a request to a weather service is given up.")
    contact: str | None = Field(
        None, description="Mail address or site to send in the User-Agent, as the US National Weather Service asks."
    )
    open_meteo_key: Annotated[str | None, Secret()] = Field(
        None, description="Open-Meteo key of a paying user; lifts the free limits."
    )
    forecast_url: str = Field("https://api.open-meteo.com", description="URL of Open-Meteo's forecasts.")
    geocoding_url: str = Field("https://geocoding-api.open-meteo.com", description="URL of Open-Meteo's geocoder.")
    air_quality_url: str = Field(
        "https://air-quality-api.open-meteo.com", description="URL of Open-Meteo's air quality."
    )
    marine_url: str = Field("https://marine-api.open-meteo.com", description="URL of Open-Meteo's marine forecasts.")
    archive_url: str = Field("https://archive-api.open-meteo.com", description="URL of Open-Meteo's past weather.")
    flood_url: str = Field("https://flood-api.open-meteo.com", description="URL of Open-Meteo's river discharge.")
    ensemble_url: str = Field(
        "https://ensemble-api.open-meteo.com", description="URL of Open-Meteo's ensemble forecasts."
    )
    nws_url: str = Field("https://api.weather.gov", description="URL of the US National Weather Service.")
    meteoalarm_url: str = Field(
        "https://feeds.meteoalarm.org", description="URL of MeteoAlarm, which has the warnings of Europe."
    )
    geomet_url: str = Field(
        "https://api.weather.gc.ca", description="URL of MSC GeoMet, which has the alerts of Canada."
    )
    metservice_url: str = Field(
        "https://alerts.metservice.com", description="URL of MetService, which has the warnings of New Zealand."
    )
    wmo_url: str = Field(
        "https://severeweather.wmo.int",
        description="URL of the WMO's Severe Weather Information Centre, which has copies of warnings elsewhere.",
    )
    aviation_url: str = Field(
        "https://aviationweather.gov", description="URL of NOAA's Aviation Weather Center, which has METAR and TAF."
    )

    @model_validator(mode="before")
    @classmethod
    def _use_paid_hosts(cls, values: dict[str, Any]) -> dict[str, Any]:
        # Paying users have hosts of their own, which differ by this prefix.
        if not values.get("open_meteo_key"):
            return values
        for name in _OPEN_METEO_URLS:
            default = str(cls.model_fields[name].default)
            if values.get(name, default) == default:
                values = {**values, name: default.replace("://", "://customer-")}
        return values

    @field_validator("language")
    @classmethod
    def _check_language(cls, code: str) -> str:
        if code not in LANGUAGES:
            raise ValueError("must be a language's code in ISO 639-1, such as `de`")
        return code

    @field_validator("cache")
    @classmethod
    def _make_cache_absolute(cls, path: str | None) -> str | None:
        if path is None or path == "memory":
            return path
        return to_absolute_path(path)

    @field_validator(*_OPEN_METEO_URLS, "nws_url", "meteoalarm_url", "geomet_url", "metservice_url", "wmo_url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if not url.startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return url.rstrip("/")

    @property
    def bases(self) -> dict[str, str]:
        """Return the base URL of each service, by the name that begins its cache keys."""
        return {
            "forecast": self.forecast_url,
            "geocoding": self.geocoding_url,
            "air": self.air_quality_url,
            "marine": self.marine_url,
            "archive": self.archive_url,
            "flood": self.flood_url,
            "ensemble": self.ensemble_url,
            "nws": self.nws_url,
            "meteoalarm": self.meteoalarm_url,
            "canada": self.geomet_url,
            "metservice": self.metservice_url,
            "wmo": self.wmo_url,
            "aviation": self.aviation_url,
        }

    def depends_on(self) -> Dependencies | None:
        files = (self.places,) if self.places else ()
        return Dependencies(files=files)
