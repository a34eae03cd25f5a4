"""Requests for the benchmark of families by words alone: a small grammar of what people ask of four services.

Each line is one kind of request, with the indented ones after it: ways to ask for it, between slashes. A way that begins with
`?` is a sentence of its own, with `!` a complaint, else what somebody wants to do. `(a|b)` is one or the other, `{slot}` a
value. Written by hand, in the shapes of public sets (a bank's kinds are near each other, an assistant's are far apart, a shop's
have placeholders).
"""

from __future__ import annotations

BANK = """
activate my (new |)card / get my card working for the first time / ?where do i activate the card i (got|received) /
  turn on the card that came in the mail
?what is the (minimum|lowest) age for an account / open an account for my (son|daughter|child) /
  ?can children have an account / ?how old do i have to be to join
use (apple|google) pay with my card / !(apple|google) pay is not working / top up with (apple|google) pay /
  connect my phone wallet for payments
?which (atms|cash machines) accept this card / ?where can i (withdraw|take out) cash with it /
  find a cash machine near {city} that takes my card
set up automatic top ups / have my account topped up by itself when the balance is low /
  ?is there an auto top up (option|limit)
!my balance did not change after a bank transfer / !i made a transfer and the balance is still the same /
  !i sent {amount} and my balance has not updated
!my balance did not update after i deposited a (cheque|check) / !the cash i paid in is not showing on my balance /
  ?why is the (cheque|check) i deposited not in my balance
!my transfer to a beneficiary was (refused|not allowed) / ?why can i not add this beneficiary /
  !i am not able to send money to a new (beneficiary|recipient)
cancel a transfer i made (by mistake|) / stop a transfer to the wrong account / undo the transfer from {date} /
  ?can a transfer be reversed after sending
!my card is about to expire / ?my card expires soon , how do i get the next one /
  replace a card that runs out in {month}
!the (atm|cash machine) ate my card / !the machine swallowed my card and did not return it /
  ?how do i get my card back from the atm
!my new card has not arrived / !i am still waiting for my card after {number} weeks / track the delivery of my card /
  ?when is the card i ordered going to come
link an existing card to the app / add the card i found again to my account / ?how do i put my card back into the app
!my card does not work / !none of the shops take my card , it seems broken /
  ?what is wrong with my card it stopped working
!there is a fee on my card payment / ?why was i charged extra for paying with the card /
  !a fee was added when i used my card in {city}
!there is a card payment i do not recognize / !i see a purchase at {shop} that i never made /
  ?what is this payment in my list it was not me
!the exchange rate on my card payment was wrong / !i was given a bad rate when i paid abroad /
  ?why was the rate for my purchase in {country} so poor
!my card was (declined|refused) / !the terminal rejected my card at {shop} / ?why would my card payment be declined
!the card I used for cash was charged a fee / ?why did the atm charge me /
  !a fee for (withdrawing|taking out) cash appeared
!there is a cash withdrawal that i did not make / !someone took {amount} out of an atm with my card /
  ?what is this withdrawal from {city}
change my pin / ?where can i set a new pin / pick another pin at a machine / ?can i alter my pin while abroad
!somebody stole my card / !i lost my card , freeze it / report a (lost|stolen) card / block my card because it is gone
!my contactless does not work / ?why is tapping my card not accepted / !the tap to pay function fails
?which countries do you support / ?are your cards available in {country} / ?do you operate outside of europe
!my cash withdrawal was refused / !the atm would not give me money / ?why can i not take out cash today
delete my account / close my account (for good|) / terminate my contract with you /
  ?what do i do to stop being a customer
!my direct debit payment is not mine / !a direct debit of {amount} i never agreed to was taken / dispute a direct debit
order a disposable virtual card / ?how do single use cards work / make a one time card for online shopping
?how many disposable cards can i have / ?is there a limit to throwaway virtual cards /
  ?what is the maximum number of one time cards a day
edit my personal details / change my (address|surname|phone number) with you / update my details because i moved
exchange (dollars|pounds) for euros in the app / ?can i swap one currency for another /
  convert {amount} into another currency
?what does exchanging currency cost / ?do you charge for foreign exchange / ?is there a discount for frequent exchange
?what are your exchange rates / ?where do the exchange rates come from / ?how is the rate for currencies decided
!my top up failed / ?why did adding money not work / !the top up was not accepted
!my transfer failed / ?why was the transfer i made declined / !the transfer did not go through and gave an error
!there is a one (dollar|pound) charge on my statement / ?why is there an extra {amount} pending in my list /
  !a small unknown fee appeared on the statement
?which currencies can i hold in the account / ?is it possible to keep several currencies /
  ?can my salary be paid in a foreign currency
give my friend access to top up my account / ?can friends or family add money for me /
  let my (mum|partner) send money to my account with a card
order a physical card / ?where do i get a real plastic card / ?how much is it for a physical card to be sent
!i forgot my passcode / reset the password of the app / ?i cannot log in as my passcode is wrong , how do i recover it
!my phone was (lost|stolen) / !i do not have my phone any more and need the account safe /
  ?what happens to the account when i lose the phone
!my payment shows as pending / ?why is my card payment still pending / ?how long does a card payment stay pending
!the cash withdrawal is pending / ?why does the atm withdrawal still show as pending /
  !my cash is out but the withdrawal stays pending
!my top up is pending / ?how long is a top up pending / !the money i added has been pending since {date}
!my transfer is pending / ?why is the transfer i made still pending / ?how long until a pending transfer completes
!i am missing my pin / ?where is the pin for the card / !you sent the card but no pin came
?when does a payment for a refund arrive / ask for a refund / !i want my money back for an item i bought at {shop} /
  get a refund of a purchase
!the refund is not on my statement / ?why can i not see the refund / !{shop} refunded me but nothing shows up
!my payment was reverted / ?why was the payment i made taken back / !a card payment was cancelled and came back to me
!my top up was reverted / ?why did my top up get cancelled / !the money i added was returned to my bank
pay by cheque / add money with a (cheque|check) / ?do you take cash or cheques to top up
?is there a limit for top ups / ?what is the most i can add to the account / !i reached the top up limit
?is there a charge for topping up by card / ?why did topping up cost me a fee /
  ?what do you charge for adding money with a foreign card
?is there a fee for adding money by bank transfer / ?what does it cost to receive a transfer /
  ?are incoming transfers free
!a transaction was charged twice / !i paid twice for the same thing at {shop} / ?why do i see the same payment two times
?what does a transfer cost / ?why was there a fee for my transfer / !you took a fee on the money i sent to {country}
transfer money into my account from another bank / ?how do i pay in from my old bank /
  ?what are the account details to send money to me
!the money i sent has not arrived at the recipient / ?why has my friend not received the transfer /
  !the person i sent {amount} to did not get it
?how long do transfers take / ?when will a transfer to {country} get there /
  ?what time does a transfer from {country} need
verify my identity / ?why do you need to verify who i am / ?what documents are needed for the identity check
!i cannot verify my identity / !the app does not accept my passport photo / ?why does the identity check not work
verify the source of my funds / ?why do you ask where my money comes from / ?how do i show the source of my money
verify my top up / ?what is the verification code for a top up / ?where do i enter the code to confirm the money i added
get a virtual card / ?how do i get a virtual card / !my virtual card is not showing
?can i have a visa or mastercard / choose between mastercard and visa / ?which card network am i getting
!i got the wrong amount of cash / !the atm gave me less than i asked for /
  ?why did i get {amount} when i asked for more at the machine
!the exchange rate for the cash i took out was wrong / ?what rate is used for cash withdrawals abroad /
  !i lost money on the rate at an atm in {country}
"""

ASSISTANT = """
set an alarm for {time} / wake me up at {time} / create a new alarm for {date}
set a timer for {number} minutes / start a {number} minute countdown / time the eggs for {number} minutes
?what time is it in {city} / tell me the current time / ?do you know the time
?what is the date (today|tomorrow) / tell me today 's date / ?which day of the month is it
?what is the weather like in {city} / ?is it going to rain (today|on {date}) / give me the forecast for {city}
play (a song|some music) by {name} / put on the playlist for running / start some jazz
?what song is this / ?who sings this tune / tell me the name of the song playing
skip to the next song / go to the next track / !i do not like this song , next
change the volume to {number} / make it louder / turn the sound down
tell me a joke / say something funny / ?do you know any jokes about dogs
flip a coin / heads or tails / toss a coin for me
roll a dice / throw a {number} sided die / roll two dice and tell me what you get
translate hello into (spanish|french) / ?how do you say thank you in (german|japanese) /
  ?what is the french word for bread
?what does the word serendipity mean / define photosynthesis / give me the definition of that word
spell the word (necessary|rhythm) / ?how is broccoli spelled / ?how many c are in accommodate
?what is {number} times {number} / calculate the square root of {number} / add {number} and {number}
convert {number} (ounces|miles) to (grams|kilometers) / ?how many cups are in a liter / ?how many feet in a mile
book a flight to {city} / find me a plane ticket from {city} to {city} / !i need to fly to {city} on {date}
?is my flight on time / check the status of flight {code} / ?when does my plane land
book a hotel in {city} / find a room near {city} for {number} nights / reserve a place to stay in {city}
?how much luggage may i bring / ?what is the carry on policy of the airline / ?can i take two bags on the plane
!my suitcase did not arrive / report lost luggage / ?where did the airline leave my bag
?do i need a visa for {country} / ?is an international visa required to visit {country} /
  tell me about visas for {country}
?which vaccines do i need for {country} / ?what shots should i get before travelling to {country} /
  vaccination rules for {country}
?is it safe to travel to {country} / any travel alerts for {country} / ?are there warnings for {city}
rent a car in {city} / get a rental car from {date} to {date} / ?which car rentals are cheap in {city}
call a (cab|taxi) to {city} station / get me an uber to the airport / !i need a ride for {number} people
?how is the traffic on the way to work / ?is there a jam on the highway / tell me about traffic to {city}
give me directions to the (library|station) / ?how do i get to {city} by bus / navigate home
?how far is {city} / ?what is the distance to the next town / ?how many miles until {city}
?where am i / share my location with {name} / tell me my current location
reserve a table at {shop} for {number} / book a dinner for {date} / make a restaurant reservation under {name}
?does {shop} take reservations / ?can one reserve a table at {shop} / ?do they accept bookings
cancel my table at {shop} / call off the dinner reservation / drop my restaurant booking under {name}
?how is the food at {shop} / read reviews of {shop} / ?is the pizza place any good
suggest a restaurant in {city} / ?where can i eat sushi nearby / find good thai food around here
?how do i make lasagna / find a recipe for (soup|pancakes) / ?what are the steps to bake bread
?what ingredients are in (curry|guacamole) / list what goes into carbonara / ?what do i need to buy for a pie
?how long do i cook (chicken|rice) / ?what is the cooking time of a steak / ?when is the turkey done in the oven
?how many calories are in (an apple|a burger) / ?is there much fat in cheese / nutrition facts for (yogurt|bacon)
?can i use oil instead of butter / ?what can replace eggs in a cake / substitute for (milk|cream) in a recipe
?how long does (milk|meat) last in the fridge / ?is the chicken from {date} still good / ?when does opened yogurt go bad
add {thing} to my shopping list / put {thing} on the shopping list / write {thing} down for shopping
?what is on my shopping list / read my shopping list out / ?did i put {thing} on the shopping list
order (more|some) {thing} online / buy {thing} from {shop} / purchase a new {thing}
?where is my package / track my order from {shop} / ?when is the parcel going to be here
remind me to call {name} at {time} / set a reminder about the {thing} / do not let me forget the {thing} on {date}
?what reminders do i have / list my reminders / ?am i supposed to remember something today
add a meeting with {name} to my calendar / put lunch on the calendar for {date} / schedule an event on {date}
?what is on my calendar for {date} / ?do i have appointments on {date} / read me my events
book a meeting room for {time} / find a free meeting room / reserve a conference room for {number} people
?when is my next day off / request vacation from {date} / put in for leave in {month}
?how many vacation days do i have left / check my remaining days off / ?what is my pto balance
?was my vacation approved / check the status of my leave request / ?did they sign off on my days off
?when is payday / ?when will i get my next paycheck / ?on which day do wages come
?how much do i earn a year / tell me my income / ?what is my salary at work
?how do i get my w2 / ?where can i find the tax form / !i need last year 's tax form
?how do i move my 401k / roll over my retirement fund / change where my pension is
?how much did i spend on (food|travel) this month / show my spending history / ?what did i pay at {shop} lately
?what is my account balance / ?how much money do i have in checking / tell me the balance of my savings
transfer {amount} from checking to savings / move {amount} to my other account / send {amount} to {name}
pay my (electric|water) bill / take care of the phone bill / settle the cable bill from checking
?when is my (rent|electric) bill due / ?what day do i have to pay the gas bill / tell me the due date of the bill
?what is my credit score / check my credit rating / look up my credit score
raise my credit score / ?how can i improve my credit rating / give me tips for a better credit score
raise my credit limit / ask for a higher limit on my visa / ?can you increase what i may charge
?what is the limit of my credit card / tell me my credit limit / ?how high is the limit on my mastercard
?what is the interest rate on my (loan|savings) / tell me the apr of my card / ?how much interest do i pay
freeze my bank account / put a stop on my account / block the account right now
order new checks / !i am out of checks , send more / ?how do i get a checkbook mailed
report fraud on my card / !there is a strange charge from {shop} / !somebody used my card without asking
!my card was declined at {shop} / ?why did they not take my card / ?why was the credit card refused yesterday
!my card is (bent|cracked|scratched) / report a damaged card / !the dog chewed my credit card
change the oil of my car / ?how do i do an oil change / ?what are the steps for changing motor oil
?when should the oil be changed / ?is my car due for an oil change / ?how many miles until the next oil change
?how much air is in my tires / check the tire pressure / ?what pressure should the tires have
change a flat tire / ?how do i swap out a tire / !i need a tire replaced
jump start my car / ?how do i start a car with a dead battery / !the battery is dead , give me instructions to jump it
?how much gas is left in the tank / ?do i need to fill up / tell me the fuel level
?what type of fuel does my car take / ?should i use diesel or regular / ?which gas do i put in
turn the (lights|heating) off / switch off the lamp in the kitchen / kill the bedroom lights
turn the (lights|heating) on / switch on the lamp in the hall / lights on in the living room
send a text to {name} / message {name} that i will be late / write {name} a text saying hi
call {name} / phone {name} on the mobile / dial my mother
find my phone / ?where did i leave my phone / ring my phone so i can locate it
change your name to {name} / i want to call you {name} / ?can i give you a different name
?what is your name / ?what should i call you / tell me who you are
?are you a (bot|human) / ?am i talking to a real person / ?are you a machine or alive
?where are you from / ?in which place were you born / ?what country do you come from
?who made you / ?which company built you / tell me about the people that programmed you
?how old are you / ?what is your age / ?when is your birthday
?do you have pets / ?what kind of animals do you own / ?do you keep a dog
?what are your hobbies / ?what do you like to do in your free time / ?what are you doing for fun
?what can i ask you / ?which things can you do / tell me what you are able to help with
speak (slower|faster) / change how fast you talk / ?can you talk slower please
change your (voice|accent) / use a male voice / ?can you sound british
change the language to (spanish|german) / speak english now / set your language to french
repeat that / say it again / !i did not hear you , what was that
thank you (very much|so much) / thanks for the help / i appreciate it
goodbye / see you later / talk to you next time
hello there / hi how are you / good morning to you
yes that is right / correct / affirmative , true
no that is wrong / nope / definitely not , false
maybe / i am not sure / could be , i do not know
cancel that / stop , never mind / forget what i asked
"""

SHOP = """
cancel (purchase|order) {{order}} / call off the order {{order}} that i made /
  !i cannot afford order {{order}} , cancel it
change (purchase|order) {{order}} / add an item to order {{order}} / swap something in order {{order}} /
  modify what i ordered
change my (shipping|delivery) address / update the address you deliver to / correct the place my stuff goes to
?what are the cancellation fees / check the early termination fee / ?how much is the penalty to cancel the contract
?which (methods|ways) of payment are there / check the accepted payment methods / ?can i pay with paypal
?what is your refund policy / check in which cases i get refunded / see your money back guarantee terms
make a (complaint|claim) / file a consumer complaint against your firm /
  !i am unhappy with the service , i have to complain
get in touch with customer service / ?what is the number of customer support / ?when can i call your helpline
talk to a (human|person|live agent) / speak with somebody real / ?where can i chat with an operator
open (a {{type}}|an) account / create another profile / sign up somebody with you
delete my {{type}} account / remove my profile / close the account under {{name}}
?when does my delivery arrive / check how soon the product arrives / ?how long does shipping take to {{city}}
?what are the delivery options / check the available shipping methods / ?do you ship to {{country}}
edit my {{type}} account / update information in my profile / change details on my user account
get (bill|invoice) {{invoice}} / download the invoice from {{name}} / ?where is my bill for order {{order}}
look at the invoices from {{name}} / see bill {{invoice}} / check my last invoices
newsletter subscription / sign up for your newsletter / cancel the subscription to the corporate mail
!i have an issue with the payment / report a problem when paying / !an error comes up at checkout
place an order / buy {number} of your items / purchase something from your store
recover my password / !i forgot the key of my {{type}} account / reset the pin of my user
!i have problems with registration / report trouble signing up / !there is an error when i register
leave a review of a product / give feedback about your service / post my opinion on the company
set up a new shipping address / enter another delivery address / !it will not let me submit the second address
switch to the {{type}} account / use a different user / change over to my other profile
track (purchase|order) {{order}} / see the current status of order {{order}} / ?where is my order {{order}}
track my refund of {{amount}} / see the status of the refund / ?has the {{amount}} refund been processed
get a refund of {{amount}} / request reimbursement / !i want to be paid back what i spent
"""

HOME = """
schalte das licht im {raum} ein / mach die lampe im {raum} an / ich brauche licht im {raum}
schalte das licht im {raum} aus / mach die lampen im {raum} wieder aus / kein licht mehr im {raum} bitte
wie warm ist es im {raum} / welche temperatur hat der {raum} / sag mir die temperatur im {raum}
stell die heizung auf {number} grad / heize den {raum} auf {number} grad / mach es {number} grad warm
wie wird das wetter morgen / regnet es am wochenende / brauche ich heute einen regenschirm
spiel etwas musik im {raum} / leg ein album von {name} auf / ich will musik von {name} hören
setz {thing} auf die einkaufsliste / schreib {thing} auf den einkaufszettel / wir müssen {thing} einkaufen
stell einen wecker auf {time} / weck mich um {time} / der wecker soll um {time} klingeln
enciende la luz de la {sala} / prende las luces en la {sala} / quiero luz en la {sala}
apaga la luz de la {sala} / que se apaguen las luces de la {sala} / quita la luz en la {sala}
qué temperatura hace en la {sala} / cuántos grados hay en la {sala} / dime la temperatura de la {sala}
pon la calefacción a {number} grados / sube la calefacción hasta {number} grados / calienta la {sala} a {number} grados
qué tiempo hará mañana / va a llover este fin de semana / necesito un paraguas hoy
pon música en la {sala} / reproduce un disco de {name} / quiero escuchar canciones de {name}
añade {thing} a la lista de la compra / apunta {thing} en la lista / tenemos que comprar {thing}
pon una alarma a las {time} / despiértame a las {time} / la alarma debe sonar a las {time}
{heya}の電気をつけて / {heya}の照明をオンにして / {heya}を明るくして
{heya}の電気を消して / {heya}の照明をオフにして / {heya}の明かりを切って
{heya}の温度は何度ですか / {heya}は今何度ですか / {heya}の室温を教えて
暖房を{number}度にして / {heya}を{number}度まで暖めて / 設定温度を{number}度に変えて
明日の天気はどうですか / 週末は雨が降りますか / 今日は傘が必要ですか
{heya}で音楽を流して / {name}の曲を再生して / {name}のアルバムを聴きたい
買い物リストに{thing}を追加して / {thing}を買うとメモして / リストに{thing}を入れて
{time}にアラームをセットして / {time}に起こして / {time}に目覚ましを鳴らして
"""
"""A household in German, Spanish and Japanese: what people ask for is its own kind in each language."""

FRAMES = {
    "": ("how do i {}", "how can i {}", "i want to {}", "i need to {}", "can you {}", "{}", "{} please", "please {}",
         "i would like to {}", "could you help me to {}", "is it possible to {}", "what do i have to do to {}", "help me {}",
         "i'd like help to {}", "where do i go to {}", "i am trying to {}", "would you {} for me"),
    "?": ("{}?", "{}", "hi, {}?", "could you tell me, {}?", "can you say {}", "quick question: {}?", "i wonder, {}"),
    "!": ("{}", "{}.", "{}, what should i do?", "help, {}", "why is it that {}?", "it looks like {}", "{} and i don't know why",
          "{}. can you look into it?", "i think {}"),
}
"""How each way is put."""
LEADS = ("",) * 18 + ("hello, ", "hi there ", "hey ", "good morning. ", "so ", "sorry to bother you but ")
TAILS = ("",) * 18 + (" thanks", " thank you", " asap", " today", " if that is ok", " now")
SLOTS = {
    "amount": ("50", "$120", "300 euros", "20 pounds", "$75.40", "1000", "fifty bucks"),
    "city": ("london", "berlin", "chicago", "osaka", "madrid", "lagos", "toronto", "denver"),
    "country": ("france", "brazil", "japan", "kenya", "mexico", "poland", "india"),
    "date": ("monday", "friday", "next week", "the 5th", "yesterday", "march 3rd", "tomorrow"),
    "month": ("june", "october", "january", "march"), "time": ("7 am", "noon", "18:30", "5 o'clock", "9"),
    "number": ("2", "3", "four", "10", "12", "six", "25"), "name": ("anna", "bob", "dr lee", "my boss", "carla", "sam"),
    "shop": ("the supermarket", "amazon", "a hotel", "luigi's", "the gas station", "ikea"),
    "thing": ("milk", "batteries", "laundry", "a charger", "tomatoes", "medicine", "paper towels"),
    "raum": ("flur", "keller", "bad", "wohnzimmer", "büro"), "sala": ("cocina", "sala", "habitación", "terraza", "oficina"),
    "heya": ("寝室", "台所", "居間", "玄関", "書斎"), "code": ("BA 117", "lh402", "dl 22")}
NEAR = {"want": "wish", "money": "funds", "get": "obtain", "make": "do", "problem": "issue", "card": "debit card", "buy": "get",
        "find": "look for", "tell": "let me know", "show": "display", "change": "switch", "check": "see", "cancel": "stop",
        "transfer": "payment", "fee": "charge", "account": "profile", "song": "track", "work": "function"}
"""Words that some people use for others."""
