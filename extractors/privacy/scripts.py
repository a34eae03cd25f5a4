"""Find names in sentences of scripts that have no capitals: Han, kana, Hangul, Thai; Arabic, Hebrew, the scripts
of India and others that separate words.

In: a text. Out: names as they are written (`whole`, in scripts that join words) or their words (in scripts that separate
them). Evidence in joined scripts: a surname with signs of given names, between what stands before and after people:
honorifics, the particles that follow persons, verbs of speaking. In separated ones: neighbouring words that are names in
lists, or one after a title. Does not see: a name that no list and no honorific shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from extractors.privacy import name_lists
from extractors.privacy.letters import LETTERS, lowered, words_in

JOINED = r"[\u0e01-\u0e4e\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
SEPARATED = r"[\u0590-\u0dff\u0e81-\u0fff\u1000-\u10ff\u1200-\u139f\u1780-\u17ff]"
"""What a text in such a script holds, for a filter in Rust."""
SURNAMES_HAN = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任"
    "沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟"
    "熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔汤張劉陳楊"
    "黃趙吳孫馬鄭謝羅許韓馮鄧蕭蔣葉蘇呂盧鍾鐘譚陸賈韋鄒閻龍賀顧龔萬錢嚴湯")
"""Frequent surnames of one sign."""
_HONOUR = "先生|女士|小姐|太太|老师|老師|经理|經理|医生|醫生|同学|同學|师傅|總|总"
_TO_HAN = ("和|跟|与|與|同|给|給|向|找|请|請|由|叫|为|為|对|對|被|让|讓|问|問|告诉|告訴|联系|聯繫|通知|姓名|名叫|客户|客戶|"
           "用户|患者|病人|旅客|乘客|收件人|联系人|"
           "朋友|同事|我是|属于|屬於|归|歸|今天|昨天|早上|上午|下午|晚上|刚才|剛才|：|:")
_SPEAKS_HAN = (f"{_HONOUR}|给我|給我|来电|來電|告诉|告訴|咨询|諮詢|说|說|谈|談|聊|联系|聯繫|通话|通話|通了|通过电话|见面|"
               f"見面|沟通|溝通|对话|一起|询问|詢問|确认|確認|讨论|討論|商量|在|已|今|昨|明|打电话|打電話|"
               "领取|領取|签收|簽收|取|收|处理|處理|来|來|去")
_AFTER_HAN = rf"{_SPEAKS_HAN}|了|要|想|反|会|會|和|与|與|，|,|。|\.|！|!|？|\?|、|；|”|）|\)|\s|\"|'|$"
GIVEN_HAN = ("伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超兰霞刚桂文辉玲健"
              "华红玉萍鹏琳宇欣怡佳雨桐晓思远志海建国梅春龙飞浩然子轩梓涵"
              "诗雅婷晨阳博俊峰凯瑞嘉昊天泽彤颖慧莹"
              "雪倩蕾薇珊珍燕琴云莲凤洁淑惠芬荣德福祥胜利东永庆宝贵光亮斌彬宁安康成学仁义信忠良友才启鸣振宏立新世家豪")
_JAPANESE = "様|さま|さん|氏|くん|君|ちゃん|先生|殿"
_SURNAMES_JA = ("松井 野村 菊地 木下 久保 菅原 工藤 新井 藤本 西田 原田 武田 村田 上田 杉山 増田 平野 大塚 中野 小野 田村 "
                "竹内 金子 和田 中山 石田 上野 森田 小島 柴田 "
                "酒井 横山 宮崎 宮本 内田 高木 安藤 谷口 大野 丸山 今井 河野 高田 島田 野口 桜井 佐野 水野 小山 吉川 山内 "
                "岩崎 浜田 大西")
_NO_PERSON_JA = re.compile(r"(?:お|ご|御|皆|奥|神|王|客|患者|各位|母|父|兄|姉|弟|妹|医者|"
                           r"店員|業者|皆さ|何|誰|たく|担当者|会社|[都道府県市区町村駅店社部課])$")
_SIGN = r"[\u3005\u3400-\u9fff]"
_AFTER_JA = f"(?:{_JAPANESE}|と|は|が|に|を|の|へ|から|より|も|で|宛|、|。|，|\\s|$)"
_HONOUR_KO = "씨|님|고객|선생|과장|부장|대리|사장|팀장|교수|기사"
_PERSON_KO = "에게|께|한테|씨|님"
SURNAMES_KO = "김이박최정강조윤장임한오서신권황안송류전홍문양손배백허유남심노하곽성차주우구민진나지엄채원천방공현함"
GIVEN_KO = ("민수지영현준서연은정호진우성재희경숙미자순철식일상훈동하윤도예주원채나라별빛솔람"
            "온유빈솜아린다혜태규찬혁건승용광석기환")
_TALK_KO = re.compile(r".{0,14}?(?:통화|대화|이야기|얘기|만났|상담|연락|말씀)")
_NO_PERSON_KO = words_in(
    "이용자 고객 선생 사용자 관리자 담당자 회원 손님 사장 팀장 부장 과장 대리 "
    "구매자 판매자 이메일 배송지 전화번 주문자 신청자 "
                         "기사 지점장 원장 점장 주인 임직원 한국인 외국인 여러분 안내자 하느 조교수 부교수")
_THAI_BEFORE = "คุณ|นางสาว|นาย|นาง|กับ|ถึง|ชื่อ|โดย|ให้|จาก|ของ|และ|พบ"
_THAI_ROLES = ("คุณ|นาย|นาง|ฝ่าย|ลูกค้า|พนักงาน|ทีม|"
               "บริษัท|เจ้าหน้าที่|แผนก|ธนาคาร|ร้าน|ผู้|ทาง|คน|เพื่อน|หมอ|แม่|พ่อ|ใคร|เขา|เธอ")
_THAI = r"[\u0e01-\u0e2e\u0e30-\u0e4e]"
_QUOTED = re.compile(rf"(?:(?<=[A-Za-z:：,] )|(?<=[:：(\"“'\[]))"
                     rf"({JOINED}{{2,8}}(?:[ 　・]{JOINED}{{1,12}})?)(?=[\s,.;:!?)\"”'\]]|$)")
"""A few letters that stand alone."""
_TITLES = words_in(
    "السيد السيدة الآنسة الدكتور الدكتورة الأستاذ الأستاذة المهندس العميل العميلة المريض اسمي مع من إلى لـ هذا هذه הגברת מר "
    "גברת דוקטור ושמי שמי עם אל של את باسم بي به با برای از "
    "श्री श्रीमती डॉ कुमारी सुश्री ग्राहक रोगी جناب آقای خانم شری")
_NAMED = words_in("السيد السيدة الآنسة اسمي باسم הגברת מר גברת ושמי שמי श्री श्रीमती جناب آقای خانم")
_FOLLOWS = words_in("से ने को का के की जी התקשר התקשרה אמר אמרה כתב כתבה ביקש ביקשה اتصل اتصلت قال قالت طلب طلبت تماس")
"""Words that follow a person."""
_ALONE = re.compile(rf"(?<![^\s\"'(])({SEPARATED}+(?: {SEPARATED}+){{1,3}})(?=[,.;:!?)\"']|\s|$)")
"""A few words that stand alone."""
_PREFIXES = "وفبلكהובלמשכ"
"""Letters that Arabic and Hebrew write together with the word behind them."""
_WORD = re.compile(LETTERS)
_SIGNED = re.compile(rf"[,\n]\s*\n\s*{SEPARATED}[^,\n]*$")
_LATIN_WORD = re.compile("[A-Za-z]{2,}")
_TOKEN = re.compile(rf"({LETTERS})([^\w\s]*)(\s*)")


@cache
def _han() -> re.Pattern[str]:
    signs = "".join(sorted({*name_lists.han_given(), *GIVEN_HAN}))
    double = "|".join(sorted(each for each in name_lists.han_surnames() if len(each) == 2))
    surname = f"(?:{double}|[{''.join(sorted(SURNAMES_HAN))}])"
    to = "|".join(f"(?<={each})" for each in _TO_HAN.split("|"))
    return re.compile(rf"(?:{to})(?:({surname}(?:[{signs}]{{2}}|[{signs}]))(?={_AFTER_HAN})"
                      rf"|({surname}{_SIGN}{{2}})(?={_SPEAKS_HAN}))"
                      rf"|({surname}[{signs}]{{2}})(?={_SPEAKS_HAN})|({surname}{_SIGN}{{1,2}})(?=先生|女士|小姐|太太|同学|"
                      rf"同學)")


@cache
def _japanese() -> re.Pattern[str]:
    listed = {*name_lists.japanese()[0], *_SURNAMES_JA.split()}
    surnames = "|".join(sorted((each for each in listed if len(each) > 1), key=lambda each: (-len(each), each)))
    given = "|".join(sorted(name_lists.japanese()[1], key=lambda each: (-len(each), each)))
    return re.compile(rf"((?:{surnames})[ 　・]?(?:{given}|{_SIGN}{{1,3}}))(?={_AFTER_JA})"
                      rf"|((?:{surnames})[ぁ-ん]{{2,4}})(?=(?:{_JAPANESE}))"
                      rf"|((?:{_SIGN}{{2,5}}(?:[ 　]{_SIGN}{{1,3}})?|"
                      rf"[\u30a1-\u30ff]{{2,6}}(?:[ 　・][\u30a1-\u30ff]{{2,6}})?))(?=(?:{_JAPANESE}))")


@cache
def _korean() -> re.Pattern[str]:
    surnames = "|".join(sorted({*name_lists.korean()[0], *SURNAMES_KO}, key=lambda each: (-len(each), each)))
    return re.compile(rf"(?<![가-힣])((?:{surnames})([가-힣]{{2}}))(?=(.{{0,3}}))")


@cache
def _thai() -> re.Pattern[str]:
    names = "|".join(sorted(name_lists.thai(), key=lambda each: (-len(each), each)))
    return re.compile(rf"(?:(?:{_THAI_BEFORE}) ?|(?<!{_THAI}))((?:{names}) {_THAI}{{3,20}})"
                      rf"|(?:คุณ|นางสาว|คุยกับ|พูดกับ|ติดต่อกับ|พบกับ|พบ|โทรหา) ?(?!{_THAI_ROLES})({_THAI}{{3,14}} "
                      rf"{_THAI}{{3,20}})")


def joined_names(text: str) -> Iterator[str]:
    """Yield names in a text whose script joins words, or that quotes such a name among Latin letters."""
    yield from (match[1] for match in _QUOTED.finditer(text) if is_joined_name(match[1]))
    is_japanese = re.search(r"[\u3041-\u30ff]", text) is not None
    if re.search(_SIGN, text) or is_japanese:
        for match in (_japanese() if is_japanese else _han()).finditer(text):
            name = next(filter(None, match.groups()))
            if not (is_japanese and _NO_PERSON_JA.search(name)):
                yield name
    if re.search(r"[가-힣]", text):
        yield from _korean_names(text)
    if re.search(_THAI, text):
        yield from (match[1] or match[2] for match in _thai().finditer(text))


def _korean_names(text: str) -> Iterator[str]:
    syllables = {sign for name in name_lists.korean()[1] for sign in name}
    for match in _korean().finditer(text):
        if match[1] in _NO_PERSON_KO:
            continue
        after = match[3].lstrip()
        is_given = match[2] in name_lists.korean()[1]
        is_like = syllables.issuperset(match[2])
        is_person = re.match(_HONOUR_KO, after) or (is_like and re.match(_PERSON_KO, after))
        talks = is_like and _TALK_KO.match(text, match.end(1))
        if is_given or is_person or talks:
            yield match[1]


def is_joined_name(value: str) -> bool:
    """Whether the whole value of a field may be a name in a script that joins words."""
    plain = value.replace(" ", "").replace("　", "").replace("・", "").replace("·", "")
    if re.fullmatch(rf"{_SIGN}{{2,4}}", plain):
        return plain[0] in SURNAMES_HAN or plain[:2] in name_lists.han_surnames() or _is_japanese(plain) or " " in value
    if re.fullmatch(r"[\u3005\u3041-\u30ff\u3400-\u9fff]{2,12}", plain):
        return _is_japanese(plain) or plain != value
    if re.fullmatch(r"[가-힣]{2,5}", plain):
        return plain[0] in name_lists.korean()[0] and plain not in _NO_PERSON_KO
    return re.fullmatch(rf"{_THAI}+(?: {_THAI}+){{0,3}}", value) is not None and (" " in value or value in name_lists.thai())


def _is_japanese(plain: str) -> bool:
    is_listed = any(plain.startswith(each) for each in (*name_lists.japanese()[0], *_SURNAMES_JA.split()))
    return is_listed and not _NO_PERSON_JA.search(plain)


def separated_names(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of names in a text of a script without capitals that separates words."""
    tokens = [(lowered(match[1]), bool(match[2]) or "\n" in match[3]) for match in _TOKEN.finditer(text)]
    yield from _alone_in_latin(text)
    at = 0
    while at < len(tokens):
        before = tokens[at - 1][0] if at and not tokens[at - 1][1] else ""
        n = next((n for n, (_, ends) in enumerate(tokens[at:at + 4], 1) if ends), len(tokens[at:at + 4]))
        name = _name_of([word for word, _ in tokens[at:at + n]], before, n == 4)
        if name:
            yield name
        at += max(1, len(name))


def _name_of(words: list[str], before: str, goes_on: bool) -> tuple[str, ...]:
    """Return the name with which words begin, that stand behind `before`; empty if they begin with none."""
    looks = [_look(word, at == 0) for at, word in enumerate(words)]
    size = next((at for at, look in enumerate(looks) if not look), len(looks))
    first = _without_prefix(words[0]) if looks[:1] == ["prefixed"] else words[0]
    if size > 1 and ("given" in looks[:size] or "prefixed" in looks[:1] or before in _TITLES):
        return (first, *words[1:size])
    after = words[2] if len(words) > 2 else ""
    is_shown = before in _TITLES or after in _FOLLOWS
    is_new = not name_lists.ordinary().intersection(words[:2]) and not any(map(str.isascii, words[:2]))
    if len(words) > 1 and is_shown and is_new:
        is_one_known = bool(looks[0] or looks[1]) and looks[:1] != ["prefixed"]
        if is_one_known or _is_nisba(words[1]) or before in _NAMED:
            return words[0], words[1]
    return ()


def _look(word: str, is_first: bool) -> str:
    """How a word looks: a `given` name, a `family` name, `prefixed` with a letter that belongs to the word before; empty: "
    "no name."""
    if word.isascii() or len(word) < 2:
        return ""
    given, families = name_lists.caseless()
    plain = name_lists.plainly(word)
    if plain in given or (plain.startswith("عبد") and len(plain) > 5):
        return "given"
    if plain in families:
        return "family"
    if not is_first:
        return "family" if _is_nisba(word) else ""
    rest = plain[1:]
    return "prefixed" if len(rest) > 2 and word[0] in _PREFIXES and rest in given else ""


def _without_prefix(word: str) -> str:
    return word[1:]


def _is_nisba(word: str) -> bool:
    """Whether an Arabic or Persian word has the form of a name of origin."""
    return (word.startswith("ال") and word.endswith("ي") and len(word) > 4) or (word.endswith("ی") and len(word) > 3)


def _alone_in_latin(text: str) -> Iterator[tuple[str, ...]]:
    """Yield two to four words of such a script that stand alone in a text in Latin letters: people quote names so."""
    runs = [tuple(_WORD.findall(match[1])) for match in _ALONE.finditer(text)]
    n_words = sum(len(words) for words in runs)
    n_latin = len(_LATIN_WORD.findall(text))
    if len(re.findall(SEPARATED + "+", text)) == n_words and (n_latin > n_words or (n_latin and _SIGNED.search(text))):
        yield from (words for words in runs if not name_lists.ordinary().intersection(words))
