"""Fill the shop's database with records that pages showed; run by the application's own Python.

    TRACEROOM_FOLDER=FOLDER python fill.py

In: `FOLDER/records.json`: `at`, `users` (login, whether it works in the back office), `orders` (number, customer, status,
totals, when it was placed, lines, notes). Out: `FOLDER/db.sqlite3`; tables are made where the file is not there.
Does not hold: what no page showed: products, stock, addresses, payments.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from oscar.core.loading import get_model  # noqa: E402

FOLDER = Path(os.environ["TRACEROOM_FOLDER"])
PASSWORD = "sesame"


def main() -> None:
    """Make the tables where there are none, then the records where there are any."""
    if not (FOLDER / "db.sqlite3").exists():
        call_command("migrate", verbosity=0)
    if (FOLDER / "records.json").exists():
        _fill(json.loads((FOLDER / "records.json").read_text("utf-8")))


def _fill(records: dict) -> None:
    partner = get_model("partner", "Partner").objects.create(name="Book partner")
    users = {}
    for row in records["users"]:
        users[row["login"]] = User.objects.create_user(row["login"], row["login"], PASSWORD, is_staff=row["is_staff"],
                                                        is_superuser=row["is_staff"])
    for row in records["orders"]:
        if (user := users.get(row["email"])) is None:
            user = users[row["email"]] = User.objects.create_user(row["email"], row["email"], PASSWORD)
        first, _, last = row["name"].partition(" ")
        User.objects.filter(pk=user.pk).update(first_name=first, last_name=last)
        total = Decimal(row["total"])
        order = get_model("order", "Order").objects.create(
            number=row["number"], user=user, currency="GBP", total_incl_tax=total, total_excl_tax=total, status=row["status"],
            date_placed=datetime.fromisoformat(row["placed"]), shipping_method="Free shipping", site_id=1)
        for line in row["lines"]:
            price = Decimal(line["price"])
            get_model("order", "Line").objects.create(
                order=order, partner=partner, partner_name=partner.name, partner_sku=line["upc"], title=line["title"],
                upc=line["upc"], quantity=line["quantity"], num_allocated=0, status=line["status"],
                line_price_incl_tax=price, line_price_excl_tax=price, line_price_before_discounts_incl_tax=price,
                line_price_before_discounts_excl_tax=price)
        for message in row["notes"]:
            get_model("order", "OrderNote").objects.create(order=order, user=user, message=message)


if __name__ == "__main__":
    main()
