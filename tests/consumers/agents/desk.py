"""The tools of a service desk, as ordinary functions: there is no backend here, so each of them fails if it is really called.

Annotations are no strings here: CrewAI reads them as they stand.
"""

from typing import Any, NoReturn

from typing_extensions import TypedDict

INSTRUCTIONS = "You help the customers of an airline. Follow the policy of the desk."


class Flight(TypedDict):
    """A flight of a reservation."""

    flight_number: str
    date: str


def _call_backend(*arguments: Any) -> NoReturn:
    raise ConnectionError("the desk's backend cannot be reached from here")


def get_user_details(user_id: str) -> str:
    """Get the details of a user."""
    _call_backend(user_id)


def get_reservation_details(reservation_id: str) -> str:
    """Get the details of a reservation."""
    _call_backend(reservation_id)


def cancel_reservation(reservation_id: str) -> str:
    """Cancel the whole reservation."""
    _call_backend(reservation_id)


def search_direct_flight(origin: str, destination: str, date: str) -> str:
    """Search direct flights between two cities on a date."""
    _call_backend(origin, destination, date)


def search_onestop_flight(origin: str, destination: str, date: str) -> str:
    """Search flights with one stop between two cities on a date."""
    _call_backend(origin, destination, date)


def update_reservation_flights(reservation_id: str, cabin: str, flights: list[Flight], payment_id: str) -> str:
    """Update the flights of a reservation."""
    _call_backend(reservation_id, cabin, flights, payment_id)


def calculate(expression: str) -> str:
    """Calculate the result of an expression."""
    _call_backend(expression)


def think(thought: str) -> str:
    """Think about something."""
    _call_backend(thought)


def transfer_to_human_agents(summary: str) -> str:
    """Transfer the user to a human agent."""
    _call_backend(summary)


TOOLS = [get_user_details, get_reservation_details, cancel_reservation, search_direct_flight, search_onestop_flight,
         update_reservation_flights, calculate, think, transfer_to_human_agents]
