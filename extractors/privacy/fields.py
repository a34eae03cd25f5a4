"""Which fields hold personal data, by their names, and whether a value is what its field says.

In: a field's name, a value. Out: a kind (`pseudonyms.KINDS`, or secret), or none. A field of people (a sender, an author) may
hold something else too: of those the value's look decides. What it does not see: fields whose names say nothing; a policy
declares them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from extractors.privacy.kept import is_given, is_household, is_listed, words_in
from extractors.privacy.patterns import account_at, number_at

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAMES = {
    "email":
        "email|emails|mail|e mail|email address|mail address|correo|correo electronico|courriel|email adresse|"
        "mailadresse|posta elettronica",
    "phone":
        "phone|phones|mobile|telephone|tel|fax|cellphone|cell phone|msisdn|phone number|mobile number|telephone number|"
        "fax number|contact number|telefon|telefonnummer|handy|handynummer|mobilnummer|rufnummer|mobil|telefono|telefoon|"
        "telephone portable|tel number|phone no|mobile no|tel no|telephone no|celular|movil|cellulare|phone mobile|"
        "phone home|phone work|mobile phone|home phone|work phone|whatsapp",
    "name":
        "first name|last name|given name|family name|middle name|full name|firstname|lastname|fullname|surname|forename|"
        "maiden name|nickname|display name|contact name|customer name|patient name|passenger name|cardholder name|"
        "cardholder|account holder|holder name|guest name|employee name|client name|member name|author name|"
        "recipient name|sender name|person name|owner name|real name|legal name|tenant name|fname|lname|name first|"
        "name last|vorname|nachname|familienname|zuname|geburtsname|prenom|nom de famille|apellido|apellidos|cognome|"
        "voornaam|achternaam|apelido|sobrenome|preferred name|name on card|kundenname",
    "address":
        "address|address 1|address 2|address line|address line 1|address line 2|addr|street|street 1|street 2|"
        "street address|billing address|shipping address|home address|mailing address|postal address|delivery address|"
        "anschrift|adresse|strasse|hausadresse|rue|direccion|calle|indirizzo|adres|straat|endereco",
    "zip":
        "zip|zipcode|zip code|postcode|post code|postal code|postal|plz|postleitzahl|code postal|codigo postal|cap code|"
        "cep|pincode|pin code",
    "card":
        "card number|cardnumber|card no|pan|cc number|credit card number|credit card|debit card number",
    "ending":
        "last four|last 4|last four digits|card last four|card last 4",
    "account":
        "iban|account number|account no|bank account|ssn|social security number|social security|passport|passport number|"
        "tax id|tax number|driver license|driver license number|drivers license|license number|national id|"
        "insurance number|medical record number|mrn|document number|steuernummer|steuer id|sozialversicherungsnummer|"
        "versichertennummer|ausweisnummer|kontonummer|nif|dni|nie|cpf|codice fiscale|nino|national insurance number|"
        "aadhaar|passport no|nhs number|sin number|policy holder number",
    "id":
        "user id|customer id|client id|member id|patient id|employee id|guest id|person id|passenger id|username|"
        "user name|login|login name|userid|customerid|subscriber id|loyalty number|loyalty id|frequent flyer number|"
        "contact id|screen name|kundennummer|kunden id|benutzername|customer number|customer no|client number|client no|"
        "member no|patient no|user number|member number|patient number|mitgliedsnummer|personalnummer|customer ref|"
        "patient ref",
    "ip":
        "ip|ip address|client ip|remote addr|remote ip|remote address|client address|ip addr",
    "date":
        "dob|birthday|birthdate|birth date|date of birth|birth day|geburtsdatum|geburtstag|date de naissance|"
        "fecha de nacimiento|fecha nacimiento|data di nascita|data de nascimento|geboortedatum|born|birth",
    "secret":
        "password|passwd|secret|api key|apikey|access token|refresh token|private key|client secret|auth token|"
        "passphrase|cvv|cvc|security code|secret key|bearer token|session token|new password|old password|passwort|"
        "kennwort|mot de passe|contrasena|db pass|user pass|database pass|smtp pass|db pwd|passcode|private token",
    "people":
        "name|names|contact|contacts|passenger|passengers|patient|customer|author|sender|recipient|recipients|owner|"
        "assignee|participant|participants|attendee|attendees|user|users|by|created by|updated by|from|to|member|members|"
        "holder|employee|manager|doctor|clerk|agent|guest|guests|invitee|invitees|person|people|who|cc|reporter|approver|"
        "friend|friends|host|speaker|driver|buyer|seller|assigned to|nom|nombre|kunde|benutzer|ansprechpartner|cliente|"
        "client|resource|operator|account name|requested by|approved by|signed by|signature|signer|beneficiary|payee|"
        "payer|teacher|student|witness",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split("|")}
NOUNS = frozenset(name.removesuffix(" id") for name, kind in _KINDS.items() if kind == "id" and name.endswith(" id"))
"""What persons are called in the fields of their ids."""
_NOTHING = words_in(
    "null none nil true false unknown n/a na undefined anonymous guest me self you user assistant system agent customer "
    "admin all any string number yes no default test empty redacted everyone nobody")
_FORM = re.compile(r"[^\W\d_][^\W\d_.'’-]*(?:[ '’-][^\W\d_][^\W\d_.'’-]*|\.){0,4}")
EMAIL = re.compile(r"[\w.+%'-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_IP = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}")


@lru_cache(1 << 14)
def kind_of_field(name: str) -> str | None:
    """Kind of a field's values by its name; `people`: names of persons, where they look so."""
    words = [word.lower() for word in _WORDS.findall(_plain(name))]
    return _kind_of_words(words) or (_kind_of_words(_singular(words)) if words else None)


def _plain(name: str) -> str:
    """A field's name in letters without accents."""
    return name if name.isascii() else unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()


def _kind_of_words(words: list[str]) -> str | None:
    for start in range(min(len(words), 4)):   # customer_email, billing_address_line_1
        if kind := _KINDS.get(" ".join(words[start:])):
            return None if kind == "people" and start else kind
    return None


def _singular(words: list[str]) -> list[str]:
    """Words of `last_name_1`, of `phone_numbers`: without the number behind them, and of one."""
    named = words[:-1] if words[-1].isdigit() else words
    return [*named[:-1], named[-1].removesuffix("s")] if named else []


@lru_cache(1 << 16)
def kind_of_value(kind: str, value: str) -> str | None:
    """Kind of a value in a field of this kind: the look of some wins over their field's; None where it is nobody's."""
    lower = value.strip().lower()
    if not lower or lower in _NOTHING or len(value) > 200:
        return None
    if kind == "secret":
        return "secret" if len(value) > 2 else None
    if kind in ("date", "ending"):
        return kind
    if EMAIL.fullmatch(value.strip()):
        return "email"
    if _IP.fullmatch(value):
        return "ip"
    n_digits = sum(sign.isdigit() for sign in value)
    n_letters = sum(sign.isalpha() for sign in value)
    if kind == "people":
        return "name" if looks_like_a_person(value) else None
    if kind == "name":
        return "name" if n_letters > 1 and not n_digits else "id" if n_letters and n_digits and " " not in value else None
    holds = {"phone": n_digits >= 6, "address": n_digits > 0, "zip": n_digits > 2, "card": n_digits > 7,
             "account": n_digits > 3, "id": n_digits + n_letters > 0 and len(value) <= 80, "email": False, "ip": False}
    return kind if holds[kind] else None


def kind_of_identity(value: str) -> str | None:
    """Kind of what states who did something; None where that is nobody's."""
    found = kind_of_value("id", value)
    if found != "id":
        return found
    look = guessed(value)
    return look if look != "name" or looks_like_a_person(value) else "id"


def guessed(value: str) -> str:
    """Kind of a value by its look alone."""
    if EMAIL.fullmatch(value):
        return "email"
    if (found := number_at(value, 0) or account_at(value, 0)) and found[1] == len(value):
        return found[2]
    if value.startswith(("+", "(")) and sum(sign.isdigit() for sign in value) >= 7:
        return "phone"
    return "name" if (_FORM.fullmatch(value) and " " in value) or is_listed(value.lower()) else "id"


def looks_like_a_person(value: str) -> bool:
    """Whether it is a given name, or a few capitalized words that begin with one or are surnames."""
    if not _FORM.fullmatch(value):
        return False
    words = re.findall(r"[^\W\d_]+", value)
    if not all(word[0].isupper() for word in words):
        return False
    lower = [word.lower() for word in words]
    if len(words) == 1:
        return is_given(lower[0])
    return len(words) <= 4 and (
        is_given(lower[0]) or (is_household(lower[0]) and is_listed(lower[-1]))
        or (is_listed(lower[0]) and is_listed(lower[-1])))
