"""Prompts for people: the most frequent questions about the weather."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declaration.decorators import prompt

__all__ = ["Prompts"]

Place = Annotated[str, Field(description="A name, coordinates or a saved alias.")]


@dataclass(frozen=True)
class Prompts:
    """The prompts; each tells the model which tools answer the question."""

    @prompt("Plan a trip")
    async def plan_trip(
        self,
        place: Place,
        when: Annotated[str, Field(description="Dates or season, such as 12 to 19 May.")],
        doing: Annotated[str, Field(description="What you want to do there.")] = "",
    ) -> str:
        """Find out what weather to expect on a trip and what to take along."""
        plan = ""
        if doing:
            plan = f" Planned: {quote(doing)}."
        return (
            f"Plan for the weather of a trip to {quote(place)}, {quote(when)}.{plan} For days within two weeks use"
            " `get_forecast` by day and compare two or three models, saying how far they agree. For later days "
            "use `get_history` with normals for the same dates and say that this is climate, no forecast. Add "
            "daylight from `get_astronomy` and warnings from `get_alerts`; say plainly if nobody covers the "
            "place. End with what to take along, and which days suit what is planned."
        )

    @prompt("Find an outdoor window")
    async def find_outdoor_window(
        self,
        place: Place,
        activity: Annotated[str, Field(description="What you want to do outside.")],
        hours: Annotated[str, Field(description="How long it takes, such as 3.")] = "2",
    ) -> str:
        """Find the best hours of the next days for something outside."""
        return (
            f"Find the best {quote(hours)} hours in a row for {quote(activity)} at {quote(place)} within three "
            "days. Use `get_forecast` by hour for 72 hours with the groups basic, wind and comfort, "
            "`get_air_quality`, daylight from `get_astronomy`, and `get_alerts`. State the limits you use for "
            "this activity (rain, gusts, heat, UV, air, light), name the best window and a second choice with "
            "times in the place's zone, and what would spoil them. Treat a value that is null as unknown, not as "
            "good."
        )

    @prompt("Brief on severe weather")
    async def brief_severe_weather(self, place: Place) -> str:
        """Brief on dangers from the weather in the next days."""
        return (
            f"Brief me on dangerous weather at {quote(place)}. Begin with `get_alerts` and tell its `status` as it"
            " is: none, not covered and unavailable are three different things. Then look at the next 48 hours by"
            " hour (precipitation, gusts, temperature, thunderstorms) and at several models. Say what will happen"
            " when, how sure that is, how old each source is, and what the official instructions are, word for "
            "word. Give times in the place's zone."
        )
