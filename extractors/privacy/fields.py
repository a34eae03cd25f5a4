"""Recognise personal data by field names, by form, by check digits, and by ids in paths and personal records.

Input: a field's name and value, or a text and the position of a chunk (characters without spaces). Output: a kind
(`pseudonyms.KINDS`, or secret) or None, and where it ends. A field of people (a sender, an author) may hold something else: the
value's look decides. Numbers with many uses (five digits, four digits, dates) count only after a word that says what they are.
A number of one to five digits says nothing by itself, but `/users/7`, `"user": {"id": 7}` and `{"id": 7, "birthday": …}` speak
of the 7 of `user_id: 7`. Check digits: payment cards (ISO/IEC 7812-1), bank accounts (ISO 13616). Does not see: fields whose
names say nothing (a policy declares them), an id without a digit in a path, a record whose fields name no person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache

from extractors.privacy.letters import is_given, is_household, is_listed, words_in

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
        "voornaam|achternaam|apelido|sobrenome|preferred name|name on card|kundenname|nom complet|nombre completo|"
        "nome completo|cognome e nome|nome e cognome|nom et prenom|nom prenom|nombre y apellidos|name of patient|"
        "name of passenger|imie|nazwisko|imie i nazwisko|jmeno|prijmeni|keresztnev|vezeteknev|teljes nev|fornavn|etternavn|"
        "efternavn|fornamn|efternamn|etunimi|sukunimi|prenume|ad soyad|adi soyadi|soyad|soyadi|ho ten|ho va ten|"
        "jina kamili|familiya|fio|ime i prezime|prezime|vardas|pavarde|vards|uzvards",
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
        "client|resource|operator|account name|claimant|insured|policyholder|policy holder|borrower|lender|lessee|landlord|"
        "tenant|resident|occupant|applicant|candidate|nominee|trainee|trainer|instructor|lecturer|therapist|physician|nurse|"
        "surgeon|pupil|parent|guardian|spouse|husband|wife|child|mother|father|next of kin|emergency contact|caller|callee|"
        "consignee|consignor|addressee|receiver|subscriber|traveler|traveller|rider|courier|technician|inspector|witnesses|"
        "representative|rep|sales rep|account manager|account owner|primary contact|billing contact|attn|attention|ship to|"
        "bill to|sold to|deliver to|contact person|requester|requestor|submitter|submitted by|opened by|closed by|handled by|"
        "booked by|booked for|ordered by|reviewed by|reviewer|editor|booker|visitor|attendees|organizer|organiser|lead|"
        "nominee|heir|donor|victim|suspect|defendant|plaintiff|lawyer|attorney|notary|customer contact|full contact|"
        "empfanger|absender|besitzer|inhaber|kontoinhaber|karteninhaber|eigentumer|mieter|vermieter|patientin|kundin|"
        "versicherter|versicherungsnehmer|fahrer|fahrgast|teilnehmer|mitarbeiter|ansprechpartnerin|sachbearbeiter|bearbeiter|"
        "gast|reisender|passagier|auftraggeber|arzt|"
        "destinataire|expediteur|titulaire|proprietaire|locataire|passager|voyageur|interlocuteur|assure|beneficiaire|medecin|"
        "destinatario|remitente|titular|propietario|inquilino|paciente|pasajero|viajero|empleado|solicitante|huesped|"
        "persona de contacto|contacto|usuario|asegurado|mittente|intestatario|proprietario|paziente|passeggero|ospite|utente|"
        "referente|remetente|inquilino|passageiro|hospede|funcionario|segurado|contato|ontvanger|afzender|eigenaar|huurder|"
        "klant|patient naam|reiziger|gebruiker|medewerker|contactpersoon|klient|klientka|odbiorca|nadawca|wlasciciel|"
        "pacjent|pasazer|gosc|zakaznik|prijemce|odesilatel|majitel|pacient|ugyfel|cimzett|felado|tulajdonos|beteg|utas|"
        "musteri|alici|gonderen|sahibi|hasta|yolcu|misafir|kiraci|kund|mottagare|avsandare|agare|modtager|afsender|ejer|"
        "mottaker|eier|asiakas|vastaanottaja|omistaja|potilas|matkustaja|destinatar|expeditor|proprietar|pacient|pasager|"
        "khach hang|nguoi nhan|nguoi gui|benh nhan|pelanggan|penerima|pengirim|pemilik|pasien|penumpang|mteja|mgonjwa|"
        "pasazer|vlasnik|kupac|primatelj|stranka|prejemnik|lastnik|narocnik|"
        "nama|nama lengkap|jina|nume|ime|nev|nimi|isim|imya|naam|nome|requested by|approved by|signed by|signature|signer|"
        "beneficiary|payee|"
        "payer|teacher|student|witness"}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split("|")}
_KINDS |= dict.fromkeys(words_in(
    "имя фамилия фио клиент пациент получатель отправитель владелец пассажир покупатель заказчик "
    "контакт ім'я прізвище піб клієнт пацієнт отримувач власник име клиентът получател όνομα επώνυμο "
    "ονοματεπώνυμο πελάτης ασθενής παραλήπτης ιδιοκτήτης 姓名 名字 客户 客戶 患者 病人 收件人 收货人 "
    "发件人 联系人 聯絡人 乘客 旅客 持卡人 户主 名前 氏名 お名前 顧客 顧客名 受取人 宛名 乗客 이름 성명 "
    "고객 고객명 환자 환자명 수령인 받는사람 보내는사람 소유자 승객 예약자 الاسم اسم العميل المريض "
    "المستلم المرسل المالك المسافر الزبون שם לקוח מטופל נמען בעלים נוסע नाम ग्राहक रोगी मरीज प्राप्तकर्ता "
    "मालिक यात्री ชื่อ ลูกค้า ผู้ป่วย ผู้รับ ผู้ส่ง เจ้าของ ผู้โดยสาร"), "people")
_GENERIC = words_in(
    "name names nom nombre nome nama jina nume ime nev nimi isim imya naam имя име іме ім'я όνομα 名字 名前 お名前 이름 "
    "الاسم اسم שם नाम ชื่อ")
"""Fields of names, of persons and of all else."""
_PERSONS = frozenset(name for name, kind in _KINDS.items() if kind in ("people", "name")) - words_in(
    "from to by resource operator lead cc attention who agent operator clerk host lead rep editor child parent candidate "
    "client") - _GENERIC
_NO_PERSONS = words_in(
    "company organization organisation org employer business vendor supplier manufacturer brand maker merchant store shop "
    "city town "
    "village country state province region county district area location venue hotel restaurant airport station airline "
    "carrier "
    "product item sku model category subject title topic summary description note notes comment message text body plan tier "
    "level "
    "status stage priority severity department team group division office unit role job position occupation profession "
    "service "
    "source channel type kind class tag tags label labels event campaign project language locale currency timezone zone color "
    "colour size material genre album song movie book course school university college faculty field industry sector bank "
    "street "
    "address building floor room firma unternehmen ort stadt land abteilung produkt ville pays entreprise societe produit "
    "empresa "
    "ciudad pais producto tienda azienda citta paese prodotto cidade bedrijf stad miasto kraj sehir sirket reason action "
    "method "
    "make vehicle car flight route origin destination cabin meal diagnosis treatment drug medication ward specialty insurance")
"""Words of fields whose values name no person."""
NOUNS = frozenset(name.removesuffix(" id") for name, kind in _KINDS.items() if kind == "id" and name.endswith(" id"))
"""What persons are called in the fields of their ids."""
_NOTHING = words_in(
    "null none nil true false unknown n/a na undefined anonymous guest me self you user assistant system agent customer "
    "admin all any string number yes no default test empty redacted everyone nobody")
_FORM = re.compile(r"[^\W\d_][^\W\d_.'’-]*(?:[ '’-][^\W\d_][^\W\d_.'’-]*|\.){0,4}")
EMAIL = re.compile(r"[\w.+%'-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_IP_VALUE = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}")


_UNACCENTED = str.maketrans({"ł": "l", "Ł": "L", "ı": "i", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "æ": "ae"})


@lru_cache(1 << 14)
def speaks_of_a_person(name: str) -> bool:
    """Whether a field's name says that a person is its value: `patient`, `primary_owner`, `kunde`, `nom`."""
    if kind_of_field(name) == "name" or name.lower() in _PERSONS:
        return True
    words = words_of_field(name)
    words = words[:-1] if len(words) > 1 and words[-1] in ("name", "names", "1", "2") else words
    return any(" ".join(words[start:]) in _PERSONS or " ".join(words[start:]).removesuffix("s") in _PERSONS
               for start in range(len(words)))


@lru_cache(1 << 14)
def is_any_name(field: str) -> bool:
    """Whether a field's name says that its value is a name, of whatever."""
    return field.lower() in _GENERIC or words_of_field(field)[-1:] in (["name"], ["naam"], ["nom"])


@lru_cache(1 << 14)
def is_of_no_person(name: str) -> bool:
    """Whether a field's name says that its value is something else than a person."""
    return not _NO_PERSONS.isdisjoint(words_of_field(name)) and not speaks_of_a_person(name)


def words_of_field(name: str) -> list[str]:
    """Return the words of a field's name, in lower case and without accents."""
    if not name.isascii():
        name = name.replace("ß", "ss").translate(_UNACCENTED)
        name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return [word.lower() for word in _WORDS.findall(name)]


@lru_cache(1 << 14)
def kind_of_field(name: str) -> str | None:
    """Kind of a field's values by its name; `people`: names of persons, where they look so."""
    if not name.isascii():   # letters without accents
        if kind := _KINDS.get(name.lower().replace(" ", "")):
            return kind
        name = name.translate(_UNACCENTED)
        name = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return None
    if kind := _kind_of_words(words):
        return kind
    named = words[:-1] if words[-1].isdigit() else words   # `last_name_1`, `phone_numbers`: without the number, and of one
    return _kind_of_words([*named[:-1], named[-1].removesuffix("s")]) if named else None


def _kind_of_words(words: list[str]) -> str | None:
    for start in range(min(len(words), 4)):   # customer_email, billing_address_line_1
        if kind := _KINDS.get(" ".join(words[start:])):
            return None if kind == "people" and start else kind
    return None


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
    if _IP_VALUE.fullmatch(value):
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
    kind = kind_of_value("id", value)
    if kind != "id":
        return kind
    look = guessed(value)
    return look if look != "name" or looks_like_a_person(value) else "id"


def guessed(value: str) -> str:
    """Kind of a value by its look alone."""
    if EMAIL.fullmatch(value):
        return "email"
    if (place := number_at(value, 0) or account_at(value, 0)) and place[1] == len(value):
        return place[2]
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


def luhn_holds(digits: str) -> bool:
    """Whether the last digit is the check digit of those before."""
    numbers = [int(sign) for sign in digits]
    return (sum(sum(divmod(2 * each, 10)) for each in numbers[-2::-2]) + sum(numbers[-1::-2])) % 10 == 0


def card_holds(text: str) -> bool:
    """Whether a number, written with or without spaces and dashes, may be a payment card's."""
    digits = "".join(sign for sign in text if sign.isdigit())
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and luhn_holds(digits)


def luhn_digit(first: str, rest: str) -> int:
    """Return the second digit with which first, second and rest hold."""
    return next(each for each in range(10) if luhn_holds(f"{first}{each}{rest}"))


def iban_holds(text: str) -> bool:
    """Whether the number of a bank account, written with or without spaces, holds: modulo 97 is 1."""
    plain = text.replace(" ", "")
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain):
        return False
    return _remainder(plain[4:] + plain[:4]) == 1


def iban_digits(country: str, account: str) -> str:
    """Return the two check digits with which country and account hold."""
    return f"{98 - _remainder(f'{account}{country}00'):02}"


def _remainder(text: str) -> int:
    return int("".join(str(int(sign, 36)) for sign in text)) % 97


_STREET = (r"street|st|road|rd|avenue|ave|boulevard|blvd|lane|ln|drive|dr|court|ct|place|pl|square|terrace|highway|hwy|"
           r"parkway|"
           r"pkwy|circle|trail|way")
_SUITE = r"(?:,? (?i:suite|ste|apartment|apt|unit|#)\.? ?\w+)?"
_ADDRESS = re.compile(
    rf"\d{{1,6}}[A-Za-z]? (?:[A-Z0-9][\w'’.-]* ){{1,3}}(?i:{_STREET})\b{_SUITE}|"
    rf"\d{{1,6}} (?:[a-z]+ ){{1,2}}(?:street|avenue|boulevard)\b|P\.?O\.? Box \d+")
_ZIP_OF_ADDRESS = re.compile(rf"{_SUITE}(?:,? [A-Z][\w.'’-]*){{1,5}},? (\d{{5}}(?:-\d{{4}})?)(?![\w-])")
_PHONE = re.compile(
    r"(?:\d{1,3}[ .-]?)?\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?![\d-])|\d{7,15}(?=\D|$)|"
    r"\d{1,3}[ .-]\(?\d{1,4}\)?(?:[ .-]\d{2,4}){2,4}(?!\d)|0\d{2,4}[ -]\d{3,4}[ -]?\d{3,5}(?![\d-])")
_ABROAD = re.compile(r"\d{1,3}[ .-]?\(?\d{1,5}\)?(?:[ .-]?\d{2,9}){1,4}(?!\d)")
"""Behind a +."""
_CARD = re.compile(r"(?:[3-6]\d|2[2-7])\d{2}[ .-]?\d{4}[ .-]?\d{4}[ .-]?\d{1,7}(?![\d-])|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}(?!\d)")
_SSN = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_IBAN = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_IP = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?!\w|\.\w)")
_SHORT = 8
"""Signs of a number that is nobody's by itself."""
_LONG = re.compile(r"\d{7,15}(?!\d)")
CUES: dict[str, tuple[str, re.Pattern[str]]] = {
    **dict.fromkeys(("zip", "zipcode", "postal", "postcode"), (
        "zip", re.compile(r"(?i)[ -]*(?:code)?(?:'s|s)?[ :#-]*(?:is|of|was|in|to|for)?[ :]*(\d{5}(?:-\d{4})?)(?![\d-])"))),
    **dict.fromkeys(("ending", "ends"), ("ending", re.compile(r"(?i)(?: in| with)?[ :#*x-]*(\d{4})(?!\d)"))),
    "last": ("ending", re.compile(r"(?i) (?:four|4)(?: digits)?(?: of [a-z ]{1,30}?)?(?: are| is)?[ :]*(\d{4})(?!\d)")),
    **dict.fromkeys(("born", "birthday", "birth", "dob", "geboren"), ("date", re.compile(
        r"(?i)(?: date)?(?: is| on| am|:)*[ :]*"
        r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d\d)|(?:19|20)\d{6}|"
        r"\d{1,2}(?:st|nd|rd|th|\.)?(?: of)? [A-Za-z]{3,9}\.?,? \d{4}|"
        r"[A-Za-z]{3,9}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})(?!\d)")))}
"""Words after which a number is what they say."""
TextSpan = tuple[int, int, str]


def number_at(text: str, start: int) -> TextSpan | None:
    """Find personal data that begins with a number at `start`."""
    before = text[start - 1:start]
    if before in ("+", "("):
        match = _PHONE.match(text, start) or (_ABROAD.match(text, start) if before == "+" else None)
        if match and (match.re is _PHONE or _is_phone(match[0])):
            return start, match.end(), "phone"
    elif before == "=" or text[max(0, start - 2):start] == "//":
        match = _IP.match(text, start)
        return (start, match.end(), "ip") if match else None
    elif before in (".", "#", "_", "/", "\\"):
        return None
    if (match := _CARD.match(text, start)) and card_holds(match[0]):
        return start, match.end(), "card"
    for pattern, kind in ((_SSN, "account"), (_ADDRESS, "address"), (_IP, "ip")):
        if match := pattern.match(text, start):
            return start, match.end(), kind
    if (match := _PHONE.match(text, start)) and not _LONG.fullmatch(match[0]) and _is_phone(match[0]):
        return start, match.end(), "phone"
    return None


def is_long(chunk: str) -> bool:
    """Whether a number may be somebody's by itself: it is no short one, or has four parts."""
    return len(chunk) > _SHORT or chunk.count(".") == 3


def account_at(text: str, start: int) -> TextSpan | None:
    """Find a bank account that begins at `start`."""
    if (match := _IBAN.match(text, start)) and iban_holds(match[0]):
        return start, match.end(), "account"
    return None


def zip_after(text: str, end: int) -> TextSpan | None:
    """Find the postal code of an address whose street ends at `end`, after a town, or town and state."""
    match = _ZIP_OF_ADDRESS.match(text, end)
    return (match.start(1), match.end(1), "zip") if match else None


def cue_at(text: str, word: str, end: int) -> TextSpan | None:
    """Find the number that a word announces, which ends at `end`."""
    kind, pattern = CUES[word]
    match = pattern.match(text, end)
    return (match.start(1), match.end(1), kind) if match else None


def _is_phone(text: str) -> bool:
    return 10 <= sum(sign.isdigit() for sign in text) <= 15 and not re.match(r"\d{4}-\d{2}-\d{2}", text)


OWN = "own"
"""Kind of the field `id`: of a person where the record is one's."""
_SEGMENT = re.compile(r"/((?=[\w~-]*\d)[\w~-]{1,40})(?=[/?#\s\"'\\,;)]|$)")
_VERSION = re.compile(r"v\d+")
_TOKEN = re.compile(r"""[{}\[\]]|\\*["']([A-Za-z_][\w .-]*)\\*["']\s*:\s*(?:\\*["']([^"'\\]*))?""")
_BEFORE = re.compile(r"""["']([A-Za-z_]+)\\*["']\s*:\s*$""")
_ENDS_IN_ID = re.compile(r"(?i)([a-z]+)[ _-]?id$")
_PERSONAL = words_in(
    "firstname lastname fullname givenname familyname middlename surname forename birthday birthdate dob dateofbirth username")
_AROUND = 2000
"""Signs before and after a field in which its object is looked for."""


def nouns_of(fields: Iterable[str]) -> frozenset[str]:
    """Return what persons are called in the fields of their ids, once and many."""
    nouns = {*NOUNS, *(match[1].lower() for field in fields if (match := _ENDS_IN_ID.search(field)))}
    return frozenset({*nouns, *(f"{each}s" for each in nouns), "people"})


def segment_after(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the id stands that follows a noun in a path; of /home/user nothing."""
    if text[start - 1:start] != "/" or text[max(0, start - 6):start] == "/home/":
        return None
    match = _SEGMENT.match(text, end)
    return None if match is None or _VERSION.fullmatch(match[1].lower()) else match.span(1)


def id_behind(path: str) -> tuple[str, str] | None:
    """Return the last name in a path before an id, and the id."""
    start = path.rfind("/", 0, path.rfind("/")) + 1
    end = path.rfind("/")
    place = segment_after(path, start, end)
    return (path[start:end], path[place[0]:place[1]]) if place else None


def is_somebodys(text: str, at: int, nouns: Collection[str]) -> bool:
    """Whether the object around a field is a person: it is called so, or has fields of one and refers to none."""
    first = max(0, at - _AROUND)
    after, _ = _level(_TOKEN.finditer(text, at, at + _AROUND), "{[", "}]")
    before, opens = _level(reversed(list(_TOKEN.finditer(text, first, at))), "}]", "{[")
    if opens is not None and (called := _BEFORE.search(text, first, opens)) and called[1].lower() in nouns:
        return True
    fields = {re.sub(r"[\W_]", "", name).lower(): value for name, value in (*after, *before)}
    if any(kind_of_field(name) == "id" and name not in ("username", "login") for name in fields):
        return False
    return not _PERSONAL.isdisjoint(fields) or looks_like_a_person(fields.get("name") or "")


def _level(tokens: Iterable[re.Match[str]], opens: str, closes: str) -> tuple[list[tuple[str, str | None]], int | None]:
    """Fields on this level up to where the object ends, and where that is."""
    depth, fields = 0, list[tuple[str, str | None]]()
    for token in tokens:
        if token[0] in opens:
            depth += 1
        elif token[0] in closes:
            if depth == 0:
                return fields, token.start()
            depth -= 1
        elif depth == 0:
            fields.append((token[1], token[2]))
    return fields, None
