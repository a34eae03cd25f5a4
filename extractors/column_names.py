"""Words that name our fields in other people's logs, and how much a column's name says for each of them."""

from __future__ import annotations

from extractors.shapes import Column

_NAMES = {
    "session_id": "session conversation conv chat thread dialog dialogue ticket case visit interaction correlation sid "
                  "cid convo room channel episode trace run journey talk discussion encounter",
    "time": "time timestamp ts at date datetime when created sent occurred started start began begin received logged "
            "instant posted opened moment epoch clock",
    "ended": "end ended finish finished completed closed stop stopped done",
    "identity": "user customer client member account caller visitor person employee uid email contact requester operator "
                "actor principal subscriber owner who by clerk buyer shopper guest patron username login mail phone",
    "position": "seq sequence index idx turn position order ordinal step number pos",
    "unique_id": "id uuid guid key ref",
    "service": "service app application bot product deployment skill assistant system component",
    "role": "role speaker sender from author who party direction participant side origin source actor by type sent voice "
            "is",
    "kind": "kind type event action category what step entry op",
    "content": "content text message body utterance msg said line reply words transcript says speech txt prompt response "
               "answer say",
    "tool": "tool function fn func action operation command procedure skill plugin api name capability method called "
            "invoked",
    "arguments": "arguments args arg params parameters param input inputs kwargs payload given data in parameterss "
                 "request options query with passed",
    "result": "result results output outputs response returned return answer reply out observation outcome got gave "
              "returns",
    "call_id": "call invocation correlation id ref request tooluse use span",
    "error": "error err failed failure exception status outcome fault problem errored iserror state verdict",
    "fine": "ok success succeeded successful passed fine",
    "latency": "latency duration elapsed took ms millis milliseconds seconds secs runtime time dur",
    "model": "model llm engine",
    "input_tokens": "input prompt in",
    "output_tokens": "output completion out",
    "status": "status code rc answered statuscode result outcome",
    "request_id": "request req rid id correlation trace",
    "query": "query params search qs querystring",
    "body": "body payload request data sent input given",
    "response": "response reply answer answered returned output result got received",
    "rating": "rating score stars thumb thumbs csat nps satisfaction helpful verdict vote grade feedback liked",
    "event": "event activity action name what step operation type happened",
    "payload": "payload properties data attributes details context params extra fields",
    "user_says": "question prompt query user customer human ask asked request input instruction utterance",
    "assistant_says": "answer response completion reply assistant bot output ai agent generation model",
    "system_says": "system instructions instruction preamble",
}
WORDS = {name: tuple(words.split()) for name, words in _NAMES.items()}


def named(name: str, column: Column) -> float:
    """How much a column's name says that it is this field: 4 for that very word, 3 for its last word, 2 for one of its words, 1
    for a word of what holds it.
    """
    words = WORDS[name]
    if len(column.words) == 1 and column.words[0] in words:
        return 4.0
    if column.words and column.words[-1] in words:
        return 3.0
    if any(word in words for word in column.words):
        return 2.5 if name in ("session_id", "identity", "call_id") else 2.0
    return 2.0 if name in ("session_id", "identity") and set(column.outer_words[-1:]) & set(words) else \
        1.0 if any(word in words for word in column.outer_words[-1:]) else 0.0
