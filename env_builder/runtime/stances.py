"""Tell what a message commits to: an agent declines, says that something was done, or denies it; a user takes a request back.

In: the text of one message. Out: yes or no. Sentences are judged one by one, whole: a question, a condition ("once it has been
paid") and an offer ("if you like, I can …") commit to nothing. A message may do both ("I have cancelled A; I can't cancel B").

Does not see: languages other than English, irony, refusals by silence or by a counter-question ("Why would you?"), and claims
without a verb of completion ("Your seat: 14C"). A failed search ("I can't find that") declines nothing: the agent asks again or
looks elsewhere. Words about the past before the conversation count as a claim where nothing marks
them ("Your order has been delivered" does, "was delivered on Monday" does not)."""

from __future__ import annotations

import re

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'"})
_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]*]*\s+|\s*\n+\s*|\s*;\s+")
_MOST = 20_000
"""Characters of a message that are read; the rest of a longer one is not."""

_LEARN = (
    r"(?:find|found|locate|retrieve|access|see|look\w*|identify|get|hear|read|open|reach|tell|confirm|verify|infer|determine|"
    r"assess|guarantee|say|think|imagine|wait|thank|help but|recommend|be sure)")
"""After "cannot", these say what the agent failed to learn, not what it declines to do."""
_UNABLE = (
    r"(?:can(?:not|'t| not)|could(?: not|n't)|won't|will not|mustn't|must not|may not|"
    r"(?:am|are|is|'m|'re) (?:currently |still )?"
    r"(?:unable|forbidden|not (?:able|allowed|permitted|authori[sz]ed|in a position)) to|"
    r"(?:isn't|aren't) (?:able|allowed|permitted|authori[sz]ed) to)")
_ALLOWED = r"(?:possible|allowed|permitted|eligible|refundable|entitled|within (?:our|the) (?:rules|policy))"
_DO = (
    r"(?:refund|cancel|chang|modif|mov|return|renew|book|waiv|exchang|process|complet|done|made|updat|add|redirect|approv|grant|"
    r"issu|reset|extend|remov|delet|transfer|upgrad|downgrad|replac|ship|honou?r|carried out|fulfil|accommodat|perform|execut|"
    r"accept|submit)\w*")
_RULES = r"(?:polic(?:y|ies)|rules?|terms|guidelines)"
_DECLINES = re.compile("|".join((
    rf"\b(?:i|we)(?: (?:really|also|simply|just|still|currently|therefore|unfortunately))? ?{_UNABLE}"
    rf"(?! (?:\w+ly )?{_LEARN}\b)",
    rf"\b(?:sorry|unfortunately|afraid|regret\w*|apologi[sz]e\w*|sadly)\b(?!.*\b{_UNABLE} (?:\w+ly )?{_LEARN}\b)"
    rf"(?=.*\b(?:{_UNABLE}|no longer|impossible))",
    rf"\b(?:isn't|aren't|wasn't|not|no longer) (?:be )?(?:\w+ly )?{_ALLOWED}\b",
    r"\b(?:impossible|ineligible|non-?refundable)\b",
    r"\b(?:does|do|did|will|would)(?: not|n't) (?:\w+ly )?(?:allow|permit|qualify|support|meet)\b",
    r"\b(?:does|do)(?: not|n't) have (?:the )?(?:permission|authori\w+|ability|capability)\b",
    rf"\b(?:against|violates?|outside|contrary to|breach of) (?:of )?(?:our|the|my|company|store)(?: \w+)? {_RULES}\b",
    rf"\b{_RULES}\b.{{0,40}}\b(?:prohibit|prevent|forbid|exclude|leave no room)\w*",
    r"\b(?:say no|(?:have to|must) (?:refuse|decline|reject|turn (?:\w+ )?down)|nothing (?:more |else )?(?:i|we) can do|"
    r"no exceptions?)\b",
    r"\bcan only (?:\w+ly )?(?:be )?\w+.*\b(?:if|when|while|within|before|until|unless|for|by|up to|at least|at most)\b",
    rf"\b(?:can(?:not|'t| not)|may not|must not|mustn't|won't|will not|no longer) (?:any ?more )?be (?:\w+ly )?{_DO}",
    r"\b(?:i|we) can (?:\w+ )?(?:neither|none)\b",
    r"^no[,.] (?:sorry|i|we|that|this)\b|\bsorry,? (?:but )?no\b|\bsorry to (?:say|inform)\b.*\bnot\b",
)), re.IGNORECASE)
_SEVERAL = re.compile(
    r"\b(?:either|neither|nor|both|any of|none of|also|as well|likewise)\b|^(?:and|as for|regarding)\b", re.IGNORECASE)
"""Words by which a refusal is about more than one request, or about another one than the sentence before."""
_CONDITION = re.compile(
    r"^(?:if|once|when|whenever|after|as soon as|unless|in case|should|until|before)\b"
    r"|\bif (?:you|it|this|that|the (?:issue|problem)|there)\b.{0,40}"
    r"\b(?:still|doesn't|don't|does not|do not|can't|cannot|isn't)\b",
    re.IGNORECASE)
"""Conditions and instructions neither decline nor claim."""

_PAST = (
    r"(?:done|made|sent|set|reset|put|paid|given|taken|built|written|begun|brought|let|cut|bought|sold|undone|"
    r"(?!need|speed|proceed|succeed|exceed|feed|indeed|agreed)\w{2,}ed)")
_LEARNT = (
    r"(?:found|received|reviewed|checked|confirmed|looked|located|noted|verified|searched|gathered|retrieved|identified|listed|"
    r"understood|considered|noticed|tried|attempted|asked|mentioned|wanted|needed|decided|waited|listened|researched|provided|"
    r"requested|reached|exceeded|missed|failed|delivered|expired|designed|used|authenticated|calculated|compared|analy[sz]ed|"
    r"examined|encountered|planned|figured|visited|summari[sz]ed|compiled)")
"""What an agent did to learn or say something, which changes nothing."""
_FLAG = r"(?:now |just |already |also |all |both |since |then |\w+ly )*"
_STATE = (
    r"(?:cancel+ed|booked|refunded|confirmed|gone|reserved|placed|renewed|on (?:its|their|the) way|taken care of|complete|"
    r"sorted|moved|updated|scheduled|done|reset|restored|removed|waived|redirected|approved|paid|changed|created|"
    r"added|sent|rescheduled)")
_DEED = (
    rf"\b(?:i|we)(?:'ve| have)? {_FLAG}(?!{_LEARNT}\b){_PAST}\b",
    rf"\b(?:has|have) {_FLAG}been {_FLAG}(?!{_LEARNT}\b){_PAST}\b",
    r"\b(?:is|are|'s) (?:now|all) \w+",
    rf"\bsuccessfully (?!{_LEARNT}\b){_PAST}\b|\w+ed successfully\b",
    r"\b(?:(?:it|that|this|everything|all)(?:'s| is| was)|all) (?:all |already )?(?:been )?"
    r"(?:done|taken care of|sorted|settled|set)\b",
    r"^(?:all |it's |that's |and )?(?:done|completed?)\b",
    r"\b(?:as an exception|(?:will|'ll) see to it)\b",
)
_DEEDS = re.compile("|".join(_DEED), re.IGNORECASE)
"""Words that the agent did something, or that it is done now."""
_CLAIMS = re.compile("|".join((
    *_DEED,
    r"\byou(?:'re| are)(?: now| all)? (?:booked|set|registered|enrolled|confirmed|checked in|signed up|subscribed|upgraded)\b",
    rf"\b(?:is|are) {_STATE}\b",
    rf"^(?:your )?(?:[\w'-]+ ){{0,2}}(?!{_LEARNT}\b|based|related|compared){_PAST}(?: \S+){{0,4}}[.!]*$",
)), re.IGNORECASE)
"""These, and the state of what was asked for."""
_UNCLAIMED = re.compile(
    r"\b(?:not|never|nothing|no one|nobody|unable|cannot|failed to|neither|without)\b|n't\b"
    r"|\b(?:once|until|after|when|whenever|if|unless|before|whether|as soon as|in case|should|would|could|might|may|assuming)\b"
    r"(?=.{0,60}\b(?:has|have|is|are|been|was|were|done)\b)"
    r"|\b(?:yesterday|last (?:week|month|year|night)|ago|previously|earlier|in the past|originally)\b"
    r"|\b(?:was|is|are) already\b(?! done)"
    r"|\b(?:let me know|let's|ensure|make sure|try|please|to be|going to|about to|want(?:s|ed)? to|so that)\b"
    r".{0,30}\b(?:done|been|is|are)\b",
    re.IGNORECASE)
"""What keeps a sentence with a word of completion from being a claim: negation, condition, a past before the conversation."""

_CHANGE = (
    r"(?:done|do|ma[dk]e|changed?|processed|process|updated?|modif(?:y|ied)|performed|perform|completed?|taken|take|cancel+ed|"
    r"cancel|executed?|submit(?:ted)?|saved?|applied|apply|booked|created?|altered|touched)")
_ALL_OF_IT = (
    r"(?:[ ,]+(?:at all|whatsoever|so far|yet|today|here|for you|by me|as requested|(?:in|on|to|with|for) (?:your|our|the|my) "
    r"(?:\w+|\w+ \w+)))*[ .!]*$")
_DENIES_ALL = re.compile("|".join((
    rf"\b(?:nothing|none of (?:it|this|that)|no (?:changes?|actions?|updates?|modifications?|writes?))\b(?: at all)? "
    rf"(?:was|were|is|has|have|had|got)(?: (?:been|yet|actually|ever|being))* {_CHANGE}{_ALL_OF_IT}",
    rf"\b(?:i|we)(?:'ve| have| had)? (?:\w+ly )?(?:(?:did|have|had)(?: not|n't)|not|never) (?:\w+ly |yet )?{_CHANGE} "
    rf"(?:anything|any (?:changes?|actions?|updates?|modifications?|of (?:it|this|that))){_ALL_OF_IT}",
    rf"\b(?:i|we)(?:'ve| have)? (?:did|done|changed|made|updated|performed|took|taken) "
    rf"(?:nothing|no (?:changes?|actions?|updates?|modifications?)){_ALL_OF_IT}",
)), re.IGNORECASE)
_DENIES = re.compile(
    rf"\b(?:i|we) (?:\w+ly )?(?:(?:did|have|had)(?: not|n't)|never|failed to|(?:was|were)(?: not|n't) able to|"
    rf"(?:was|were) unable to|could(?: not|n't)) (?:\w+ly |yet )?{_CHANGE}\b"
    rf"|\b(?:was|were|has|have|is|could|did)(?: not|n't) (?:been |be |yet |\w+ly )*{_CHANGE}\b",
    re.IGNORECASE)


def denies(text: str, wholly: bool = False) -> bool:
    """Return whether the agent says that nothing was done. `wholly`: only what denies everything counts.

    A denial of something, or a mere refusal, counts if the message claims nothing: "I did not change the address" beside "I
    have cancelled the order" sets two requests apart.
    """
    sentences = [sentence for sentence in _sentences(text) if not _CONDITION.search(sentence)]
    if any(map(_DENIES_ALL.search, sentences)):
        return True
    return not wholly and any(_DENIES.search(each) or _DECLINES.search(each) for each in sentences) and not claims(text)


_RETRACTS = re.compile(
    r"(?i)\b(?:changed my mind|forget (?:it|that|about it)|never ?mind|leave (?:it|everything|that) as (?:it|they|is)|"
    r"(?:do not|don't) (?:do|bother|cancel|change|book|go ahead)|no,? (?:stop|wait|don't)|scratch that|on second thought)\b")


def declines_several(text: str) -> bool:
    """Return whether one message declines more than one request: "I can do neither", or a refusal and then "nor can I …"."""
    return any(_SEVERAL.search(sentence) and _DECLINES.search(sentence) for sentence in _sentences(text))


def declines(text: str) -> bool:
    """Return whether the agent declines a request in words."""
    return any(_DECLINES.search(sentence) for sentence in _sentences(text) if not _CONDITION.search(sentence))


def takes_back(text: str) -> bool:
    """Return whether a user takes a request back."""
    return _RETRACTS.search(text) is not None


def claims(text: str) -> bool:
    """Return whether the agent asserts that something was done. In a refusal, a state ("your seat is booked") is a reason."""
    deeds = _DEEDS if declines(text) else _CLAIMS
    return any(
        deeds.search(sentence) and not _UNCLAIMED.search(sentence) and not _DECLINES.search(sentence)
        for sentence in _sentences(text) if not _CONDITION.search(sentence))


def _sentences(text: str) -> list[str]:
    """Split a message into its sentences, without questions and marks of emphasis."""
    plain = text[:_MOST].translate(_APOSTROPHES).replace("**", "")
    sentences = (part.strip(" *-•\t\r\"") for part in _SENTENCE.split(plain))
    return [sentence for sentence in sentences if sentence and not sentence.endswith("?")]
