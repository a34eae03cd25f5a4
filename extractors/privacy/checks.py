"""Check digits: of payment cards (ISO/IEC 7812-1) and of bank accounts (ISO 13616)."""

from __future__ import annotations

import re


def luhn_holds(digits: str) -> bool:
    """Whether the last digit is the check digit of those before."""
    numbers = [int(sign) for sign in digits]
    return (sum(sum(divmod(2 * each, 10)) for each in numbers[-2::-2]) + sum(numbers[-1::-2])) % 10 == 0


def card_holds(text: str) -> bool:
    """Whether a number, written with or without spaces and dashes, may be a payment card's."""
    digits = "".join(sign for sign in text if sign.isdigit())
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and luhn_holds(digits)


def luhn_digit(first: str, rest: str) -> int:
    """The second digit with which first, second and rest hold."""
    return next(each for each in range(10) if luhn_holds(f"{first}{each}{rest}"))


def iban_holds(text: str) -> bool:
    """Whether the number of a bank account, written with or without spaces, holds: modulo 97 is 1."""
    plain = text.replace(" ", "")
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain):
        return False
    return _remainder(plain[4:] + plain[:4]) == 1


def iban_digits(country: str, account: str) -> str:
    """The two check digits with which country and account hold."""
    return f"{98 - _remainder(f'{account}{country}00'):02}"


def _remainder(text: str) -> int:
    return int("".join(str(int(sign, 36)) for sign in text)) % 97
