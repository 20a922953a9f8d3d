"""Texts on which tokenizers and templates disagree, made from a seed.

Equal token ids on prose prove little: encoders part ways on whitespace runs, marks, apostrophes, half-written
special tokens and code points nobody assigned. Every text here comes from `random.Random(seed)`, so that a
difference found once can be found again by its number.
"""

from __future__ import annotations

import argparse
import json
import random
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal

PROSE: tuple[str, ...] = (
    "The yard keeps every rollout until its group is whole, and then a trainer may read it.",
    "Don't say we've lost it; I'd rather they'll find it. That's what you're here for, I'm told.",
    "DON'T SAY WE'VE LOST IT; I'D RATHER THEY'LL FIND IT. THAT'S WHAT YOU'RE HERE FOR, I'M TOLD.",
    "Der Zug fährt über die Brücke, während die Straße naß wird; größer als gedacht.",
    "L'été dernier, j'ai dû réparer le garçon de café à Nîmes, n'est-ce pas\u00a0?",
    "¿Dónde está el tren? ¡Ya llegó, señor! Mañana saldrá otro a las 07:45.",
    "Сегодня поезд опоздал на двадцать минут, и никто не знает почему.",
    "Το τρένο φεύγει στις οκτώ· κανείς δεν περιμένει.",
    "הרכבת יוצאת בשעה שמונה בבוקר. שָׁלוֹם עֲלֵיכֶם",
    "القطار يغادر في الساعة الثامنة صباحًا، ولا أحد ينتظر. ٠١٢٣٤٥٦٧٨٩",
    "रेलगाड़ी सुबह आठ बजे चलती है। १२३४५ क़िला ज़रूर",
    "ট্রেনটি সকাল আটটায় ছাড়ে। ১২৩",
    "รถไฟออกเวลาแปดโมงเช้า ไม่มีใครรอ ๑๒๓๔",
    "列车早上八点出发，没有人等。共有三千二百一十五节车厢！",
    "列車は朝八時に出発します。ガタンゴトン・カタカナー、ひらがな。ﾊﾝｶｸ",
    "기차는 아침 여덟 시에 출발합니다. 아무도 기다리지 않아요.",
    "Xe lửa khởi hành lúc tám giờ sáng, không ai chờ đợi cả.",
    "მატარებელი დილის რვა საათზე გადის. ՀԱՅԱՍՏԱՆ գնացք",
    "ባቡሩ ጠዋት ይነሳል። ᏣᎳᎩ ᓀᐦᐃᔭᐍᐏᐣ ᠮᠣᠩᠭᠣᠯ",
    "İstanbul'da IĞDIR ılık; ǅungla ǈubav ŉ ſtraße ﬁne ﬂow ﬆop",
)

CODE: tuple[str, ...] = (
    'fn main() {\n    let x: Vec<u32> = (0..10).map(|i| i * 2).collect();\n\tprintln!("{x:?}");\n}\n',
    "def reward(text: str) -> float:\r\n    return 1.0 if text.strip() == '42' else -0.5\r\n",
    "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }  // O(n)\n\n\n",
    "SELECT id, count(*) FROM rollouts WHERE step >= 1000 GROUP BY 1 ORDER BY 2 DESC;\n",
    '<div class="row">\n\t<a href="https://example.org/a?b=c&d=%20e">it&#39;s</a>\n</div>\n',
    "$ grep -rn 'TODO' ./src | awk -F: '{print $1}' | sort | uniq -c\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = {'k': [1, 2, 3]}\n```\n",
    "\\frac{1}{2} \\sum_{i=1}^{n} x_i^2 \\leq \\|x\\|_2^2 \\quad \\text{if } x \\in \\mathbb{R}^n",
    "############\n==========\n----------\n//////////\n__________\n**********\n",
)

SPECIALS: tuple[str, ...] = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "im_end|>", "<|im_start|", "|im_start|>",
    "<think>", "</think>", "<think", "</ think>", "<tool_call>", "</tool_call>", "<tool_response>",
    "</tool_response>", "<tool_call", "<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>",
    "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>",
    "<|end_header_id|>", "<|python_tag|>", "<|reserved_special_token_7|>", "<start_of_turn>", "<end_of_turn>",
    "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[INST", "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜fim▁hole｜>",
    "<｜Use", "<|User|>", "<|EOT|>", "<|vision_start|>", "<|fim_prefix|>", "<|file_sep|>", "<unused7>",
    "<0x0A>", "▁", "Ġ", "<|endofprompt|>", "<|im_start|><|im_start|>", "<<|im_end|>>", "<|im_<|im_end|>end|>",
)  # fmt: skip

APOSTROPHES = ("'", "\u2019", "\u02bc", "\uff07", "`", "''", " '", "'\u200d")
CONTRACTIONS = (
    "s",
    "t",
    "re",
    "ve",
    "m",
    "ll",
    "d",
    "\u017f",
    "k",
    "\u212a",
    "st",
    "x",
    "r",
    "v",
    "l",
    "sa",
    "rē",
)
SPACES = (" ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u000b", "\u000c")
EMOJI = ("👩‍🚀", "👍🏽", "🏳️‍🌈", "👨‍👩‍👧‍👦", "🇨🇭", "😀", "❤️", "1️⃣", "🫠", "\U0001fae9", "™️", "⚙")
MARKS = (
    "\u0301",
    "\u0308",
    "\u0323",
    "\u0327",
    "\u0345",
    "\u05b0",
    "\u064b",
    "\u0650",
    "\u093c",
    "\u3099",
    "\u20dd",
)
BLOCKS = (
    (0x20, 0x7E), (0x00, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x2B0, 0x36F), (0x370, 0x52F), (0x590, 0x6FF),
    (0x900, 0xDFF), (0xE00, 0x10FF), (0x1100, 0x11FF), (0x1780, 0x1EFF), (0x1F00, 0x206F), (0x2070, 0x2BFF),
    (0x2E80, 0x30FF), (0x3100, 0x33FF), (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3),
    (0xE000, 0xE0FF), (0xF900, 0xFFFF), (0x10000, 0x10FFF), (0x11000, 0x11FFF), (0x16A00, 0x1BFFF),
    (0x1D000, 0x1F0FF), (0x1F100, 0x1FAFF), (0x20000, 0x323AF), (0xE0000, 0xE01EF), (0xF0000, 0xF00FF),
    (0x10FF00, 0x10FFFF),
)  # fmt: skip

Maker = Callable[[random.Random], str]


def prose(rng: random.Random) -> str:
    return " ".join(rng.choices(PROSE, k=rng.randint(1, 3)))


def words(rng: random.Random) -> str:
    """Slices of prose, so that words begin and end where no word does."""
    text = rng.choice(PROSE)
    start = rng.randrange(len(text))
    return text[start : start + rng.randint(1, 24)]


def code(rng: random.Random) -> str:
    text = rng.choice(CODE)
    return text if rng.random() < 0.5 else text[rng.randrange(len(text)) :]


def json_text(rng: random.Random) -> str:
    value = {
        "name": rng.choice(("search", "run", "查询")),
        "arguments": {
            "query": words(rng),
            "limit": rng.randint(-5, 10**9),
            "exact": rng.random() < 0.5,
            "x": None,
        },
        "scores": [rng.random(), rng.randint(0, 9999), 1e-12],
    }
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 2, 4)))


def numbers(rng: random.Random) -> str:
    digits = "".join(rng.choices("0123456789", k=rng.randint(1, 12)))
    odd = rng.choice(("", "٣", "५", "²", "½", "Ⅷ", "①", "𝟘", "〇", "一"))
    return (
        rng.choice(("", "-", "+", "$", "€"))
        + digits
        + odd
        + rng.choice((".5", ",000", "%", "e-7", "th", "", " "))
    )


def spaces(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(SPACES) * rng.randint(1, 90)
    return "".join(rng.choices(SPACES, weights=(8, 2, 4, 2, 3, 1, 1, 1, 1, 1, 1, 1), k=rng.randint(1, 8)))


def special(rng: random.Random) -> str:
    return rng.choice(SPECIALS)


def contraction(rng: random.Random) -> str:
    tail = rng.choice(CONTRACTIONS)
    tail = rng.choice((tail, tail.upper(), tail.title(), tail.swapcase()))
    return rng.choice(("", "we", "I", "É", "9", "字", "ǅ")) + rng.choice(APOSTROPHES) + tail


def symbols(rng: random.Random) -> str:
    return "".join(
        rng.choices("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~…—–«»。、・「」！？¿¡€£¥§±×÷∑√∞≠", k=rng.randint(1, 9))
    )


def emoji(rng: random.Random) -> str:
    return "".join(rng.choices((*EMOJI, "\u200d", "\ufe0f", "🏿"), k=rng.randint(1, 4)))


def marks(rng: random.Random) -> str:
    """Marks piled on letters in no order: what a normaliser has to sort and compose."""
    base = rng.choice("aeiouAEOnNcsg가각קअकがハ각1 .ＡÅΩ≠")
    return base + "".join(rng.choices(MARKS, k=rng.randint(1, 4)))


def decomposed(rng: random.Random) -> str:
    forms: tuple[Literal["NFD", "NFKD", "NFKC"], ...] = ("NFD", "NFKD", "NFKC")
    return unicodedata.normalize(rng.choice(forms), rng.choice(PROSE)[: rng.randint(5, 80)])


def block(rng: random.Random) -> str:
    """Neighbours in one block of Unicode, assigned or not."""
    first, last = rng.choice(BLOCKS)
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 8)))


def anything(rng: random.Random) -> str:
    points = (rng.randrange(0x110000) for _ in range(rng.randint(1, 5)))
    return "".join(chr(p) for p in points if not 0xD800 <= p <= 0xDFFF)


def controls(rng: random.Random) -> str:
    pool = [chr(c) for c in range(32)] + [
        "\x7f",
        "\u200b",
        "\u200e",
        "\u202e",
        "\ufeff",
        "\u00ad",
        "\u2060",
        "\ufffd",
    ]
    return "".join(rng.choices(pool, k=rng.randint(1, 4)))


def long_word(rng: random.Random) -> str:
    unit = rng.choice(
        ("a", "ab", "Ab", "=", "-", "ha", "字", "가", "é", "e\u0301", "0", " ", "\n", "\\n", "ー", "\u0301")
    )
    if rng.random() < 0.5:
        return unit * rng.randint(10, 300)
    return "".join(
        rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=rng.randint(20, 200))
    )


def cased(rng: random.Random) -> str:
    return "".join(rng.choices("abzABZéÉßǅʰªºıİЖжΩω字가\u0301\u0903", k=rng.randint(1, 8)))


MAKERS: tuple[Maker, ...] = (
    prose, words, words, code, json_text, numbers, spaces, spaces, special, special, contraction, symbols,
    emoji, marks, decomposed, block, block, anything, controls, long_word, cased, cased,
)  # fmt: skip


def mutate(rng: random.Random, text: str) -> str:
    """One small hurt: drop, double, swap or insert."""
    if not text:
        return text
    at = rng.randrange(len(text))
    match rng.randrange(5):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + text[at] * 2 + text[at:]
        case 2:
            return text[:at] + rng.choice(MAKERS)(rng) + text[at:]
        case 3:
            return text[:at].swapcase() + text[at:]
        case _:
            return text[at:] + text[:at]


def text(rng: random.Random) -> str:
    """One text: a few pieces of any kind set together, now and then hurt."""
    parts = [rng.choice(MAKERS)(rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 6)))]
    joined = rng.choice(("", "", " ", "\n")).join(parts)
    while rng.random() < 0.25:
        joined = mutate(rng, joined)
    return joined


def texts(*, seed: int, count: int) -> Iterator[str]:
    """`count` texts, the same for the same seed; the first is empty."""
    rng = random.Random(seed)
    for number in range(count):
        yield "" if number == 0 else text(rng)


def fixed() -> Iterator[str]:
    """Every building block once, alone and next to a space."""
    for piece in (*PROSE, *CODE, *SPECIALS, *EMOJI, *MARKS, *SPACES):
        yield piece
        yield f" {piece}"
        yield f"{piece} "
        yield f"a{piece}b"
    for apostrophe in APOSTROPHES:
        for tail in CONTRACTIONS:
            yield f"we{apostrophe}{tail}"
            yield f"WE{apostrophe.upper()}{tail.upper()} "


def main() -> None:
    """Writes texts as JSON Lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    asked = parser.parse_args()
    for line in (*fixed(), *texts(seed=asked.seed, count=asked.count)):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
