"""What an agent's message commits to: it declines, it claims, or neither."""

from __future__ import annotations

import pytest

from env_builder.runtime.stances import claims, declines, declines_several, denies

DECLINED = (
    "I'm sorry, I can't do that: the bicycle is final sale.",
    "Unfortunately this is not possible, because you have three open bookings.",
    "Our rules do not allow it - it is today.",
    "I have to say no here: a pause is one to three months.",
    "No, sorry. It was delivered too long ago.",
    "There is nothing I can do about it.",
    "I'm sorry, I can do neither of these.",
    "No, sorry. Your membership is paused already. There is nothing I can do about it.",
    "I can't do that: it is for guests alone. Your seat is booked.",
    "I’m unable to reset SIM PINs for security reasons.",
    "Basic economy tickets cannot be changed.",
    "This fare is non-refundable.",
    "You are not eligible for compensation.",
    "Refunds after a month are against our policy.",
    "Parcels can only be redirected if they are still in the depot.",
    "I am not authorized to waive this fee.",
    "We don't have the ability to override the system.",
    "Your flight can no longer be cancelled.",
    "I won't be able to process this refund.",
    "The policy prohibits visits after eight.",
    "I'm not allowed to share another patient's data.",
    "It is closed for repairs, which is why this request can't be carried out.",
    "Your wish cannot be fulfilled, as the room is taken.",
    "I have to turn this down: the receipt is missing.",
    "I have cancelled the first order. I cannot cancel the second one.",
)
CLAIMED = (
    "I have cancelled your order.",
    "I've sent the e-mail to the accountant.",
    "Your reservation has been cancelled.",
    "Done, that is taken care of.",
    "All set. Anything else?",
    "You are booked.",
    "Moved as you wished.",
    "Cancelled.",
    "The task has been successfully added to the backlog.",
    "All right, as an exception: it is done.",
    "All right, I will see to it that it is done.",
    "I refunded 20.00 EUR to your card.",
    "Your line is now active.",
    "Email forwarded successfully.",
    "Your password has been reset.",
    "I have cancelled the first order. I cannot cancel the second one.",
)
NEITHER = (
    "I can't find that. Could you check it once more?",
    "Would you like me to cancel it?",
    "Have you cancelled it?",
    "If you can't find the setting, let me know.",
    "I couldn't find any messages from the supplier.",
    "Once it has been paid, I can resume your line.",
    "Once that's done, run a speed test.",
    "I have not cancelled anything.",
    "Nothing has been changed.",
    "Your parcel was delivered on Monday.",
    "It was cancelled last week.",
    "I have found your reservation and checked its price.",
    "I will leave everything as it is, then.",
    "No problem, I can help with that.",
    "Your wallet holds 12.50 EUR.",
    "Let's get this sorted.",
    "I need some details.",
    "Have a wonderful day!",
    "",
)


@pytest.mark.parametrize("text", DECLINED)
def test_a_message_that_declines_is_recognised(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", CLAIMED)
def test_a_message_that_says_that_something_was_done_is_recognised(text: str) -> None:
    assert claims(text)


@pytest.mark.parametrize("text", NEITHER)
def test_questions_conditions_and_failed_searches_commit_to_nothing(text: str) -> None:
    assert not declines(text) and not claims(text)


@pytest.mark.parametrize("text", sorted(set(DECLINED) - set(CLAIMED)))
def test_what_declines_claims_nothing(text: str) -> None:
    assert not claims(text)


@pytest.mark.parametrize("text", sorted(set(CLAIMED) - set(DECLINED)))
def test_what_claims_declines_nothing(text: str) -> None:
    assert not declines(text)


@pytest.mark.parametrize("text", (
    "I have not done anything. Nothing was changed.",
    "I did not make any changes to your account.",
    "No action was taken.",
    "Done! Oh, sorry: nothing has been changed yet.",
    "I'm sorry, I was unable to process your request.",
    "Your order was not cancelled.",
    "I cannot help you with that.",
))
def test_a_message_that_denies_what_was_done_is_recognised(text: str) -> None:
    assert denies(text)


def test_a_denial_of_everything_is_more_than_a_refusal() -> None:
    assert denies("Nothing was changed.", wholly=True) and not denies("Your order was not cancelled.", wholly=True)


@pytest.mark.parametrize("text", (
    "I have cancelled the first order. I did not change the second one, since it has been shipped.",
    "All done. Nothing else was changed.",
    "Your address is updated. You cannot undo this.",
    "I couldn't find your booking at first, but it is cancelled now.",
    "The refund takes five days. Is there anything else that I can do?",
    "If nothing was changed on your side, call again.",
    "ok",
))
def test_parts_that_were_not_done_beside_a_claim_deny_nothing(text: str) -> None:
    assert not denies(text)


def test_one_message_may_decline_several_requests() -> None:
    assert declines_several("I can do neither of these.") and declines_several("I can't move it. I also cannot cancel it.")
    assert not declines_several("I'm sorry, I can't do that.") and not declines_several("I can do both.")
