#!/usr/bin/env python3
"""Golden answers of the reference tokenizers. Needs PyPI's `tokenizers` and `sentencepiece`; writes beside itself:

splits.json        pieces of each text for each normalizer and pre-tokenizer (tokenizers)
encodes.json       ids of each text for variants of two tokenizer.json files (tokenizers)
spm_bpe.json       a small SentencePiece-style BPE tokenizer.json with byte fallback, trained on the demo text
tiny.model         a small SentencePiece model, trained on the demo text
sentencepiece.json its ids (sentencepiece)

Special tokens are taken literally (encode_special_tokens) and none are added. The versions are in each file.
"""
import copy
import hashlib
import json
import pathlib
import struct
import tempfile

import sentencepiece
import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
DEMO = HERE.parents[2] / "datasets" / "demo"
VERSIONS = {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__}

TEXTS = [
    "",
    " ",
    "  ",
    "a",
    " 12345",
    "12345 1234567890 007",
    "Hello, world! It's 3.14 o'clock; they'll've said I'M, WE'RE, YOU'D 'tis '  's",
    "don'\u017f kelvin'\u212a I\u2019m",  # long s and Kelvin sign fold to s and k
    "line one\nline two\r\nline three\n\n\nafter\r\rtext\n",
    "\n",
    "\r\n\r\n  \r\n x",
    "tab\tbetween\t\ttabs \t mixed",
    "   leading and trailing   ",
    "spaces  before   words    grow     ",
    "\u00a0nbsp\u00a0\u00a0between\u00a0",
    "\u2003em\u2009thin\u200bzero\u3000ideographic\u2028line\u2029para\u0085next\u180emongol\u1680ogham",
    "\u000bvt\u000cff\u001fus\u0000nul\u0007bel\u007fdel",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \ud55c\uad6d\uc5b4 \u0e44\u0e17\u0e22",
    "\U0001f600\U0001f469\u200d\U0001f469\u200d\U0001f467\U0001f1eb\U0001f1f7 \U0001f44d\U0001f3fd ok",
    "e\u0301 caf\u00e9 nai\u0308ve \u1100\u1161\u11a8 \u0915\u094d\u0937\u093f",
    "\ufb01 \u2460\u2167\u00bd \u00b2\u00b3 \u0663\u0664\u0665 \uff11\uff12\uff13 \u216b \u4e00\u4e8c",
    "\u0130stanbul STRASSE stra\u00dfe \u039f\u0394\u039f\u03a3 \u03a3 \u01c5 \u1e9e",
    "price: $5.00 (\u20ac4) = \u00a33 + 10% <tag> ^caret~ `tick` a|b \\back/ {x} [y]",
    "snake_case camelCase UPPER_lower x1y2 3rd 2nd_4",
    "...!!!???---___***",
    "a--b---c -d- --",
    "http://example.com/?q=1&r=2#frag user@mail.org",
    "<s>literal</s> <|endoftext|> <unk> [PAD] <0x0A> <|im_start|>user",
    "\u2581already\u2581marked \u2581 ",
    "\u0416\u0443\u043a \u03b1\u03b2\u03b3 \u05d0\u05d1 \u0627\u0644\u0639 \u0967\u0968",
    "\U00010348\U0001d400\U0001d7d8 \U000e0041 \ue000 \ufffd \ufeffbom",
    "In the beginning God created the heaven and the earth. And the earth was without form, and void;",
    "x" * 200,
    "ab " * 40,
    "\u00e9" * 30,
    "TOK tok [TOK] a[TOK]b  [TOK]  [TOK][TOK] wordwise wordwise_ wordwise! [CAF\u00c9] [cafe\u0301] [lr]",
]

GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def metaspace(scheme, cut=True):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": cut}


PRE_TOKENIZERS = {
    "gpt2": GPT2,
    "gpt2 with prefix space": GPT2 | {"add_prefix_space": True},
    "llama3": sequence(split(LLAMA3), BYTES),
    "qwen2": sequence(split(QWEN2), BYTES),
    "smollm2": sequence({"type": "Digits", "individual_digits": True}, GPT2),
    "o200k": sequence(split(O200K), BYTES),
    "digits together": {"type": "Digits", "individual_digits": False},
    "punctuation": {"type": "Punctuation", "behavior": "Isolated"},
    "punctuation, contiguous": {"type": "Punctuation", "behavior": "Contiguous"},
    "whitespace": {"type": "Whitespace"},
    "whitespace split": {"type": "WhitespaceSplit"},
    "delimiter": {"type": "CharDelimiterSplit", "delimiter": "-"},
    "metaspace always": metaspace("always"),
    "metaspace first": metaspace("first"),
    "metaspace never, whole": metaspace("never", False),
    "string that looks like a pattern": split(r"\d", kind="String"),
    "empty string": split("", kind="String"),
    "metaspace after digits": sequence({"type": "Digits", "individual_digits": True}, metaspace("first")),
    "prefix space on every piece": sequence(split(r"\p{N}"), GPT2 | {"add_prefix_space": True}),
    "word boundary": split(r"\b"),
    "not a word": split(r"\W+", "Removed"),
    "possessive": split(r"[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}", "Contiguous"),
    "lines": split(r"^.", "Isolated"),
    "line ends": split(r".$", "Isolated"),
    "empty matches": split(r"x*", "Isolated"),
    "escapes": split("\\u0041|\\x{62}|\\t|\\v|[\\w\\-]\\/", "Isolated"),
}
for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
    for invert in [False, True]:
        PRE_TOKENIZERS[f"split {behavior}{' inverted' if invert else ''}"] = split("-|\\s", behavior, invert)

NORMALIZERS = {
    **{form: {"type": form} for form in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]},
    "strip left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "strip both": {"type": "Strip", "strip_left": True, "strip_right": True},
    "replace string": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    "replace pattern": {"type": "Replace", "pattern": {"Regex": r"\s{2,}|\d"}, "content": "<>"},
    "prepend": {"type": "Prepend", "prepend": "\u2581"},
    "sequence": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
}


def unspell():
    """Byte-level character -> byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, spare = {chr(b): b for b in printable}, 0x100
    for b in range(256):
        if b not in printable:
            table[chr(spare)] = b
            spare += 1
    return table


UNSPELL = unspell()


def load(description):
    tokenizer = Tokenizer.from_str(json.dumps(description))
    tokenizer.encode_special_tokens = True
    return tokenizer


def skeleton(normalizer, pre_tokenizer):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}


def pieces(normalizer, pre_tokenizer, text):
    tokenizer = load(skeleton(normalizer, pre_tokenizer))
    if normalizer:
        text = tokenizer.normalizer.normalize_str(text)
    if not pre_tokenizer:
        return [text] if text else []
    found = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    if "ByteLevel" in json.dumps(pre_tokenizer):
        found = [bytes(UNSPELL[c] for c in piece).decode() for piece in found]
    return [piece for piece in found if piece]


def write(name, content):
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    (HERE / name).write_text(text.replace('{"name"', '\n{"name"') + "\n")


def sha(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()


def make_splits():
    cases = [{"name": name, "normalizer": None, "pre_tokenizer": pre, "pieces": [pieces(None, pre, t) for t in TEXTS]}
             for name, pre in PRE_TOKENIZERS.items()]
    cases += [{"name": name, "normalizer": norm, "pre_tokenizer": None, "pieces": [pieces(norm, None, t) for t in TEXTS]}
              for name, norm in NORMALIZERS.items()]
    write("splits.json", {"versions": VERSIONS, "texts": TEXTS, "cases": cases})


def demo_lines(count):
    return (DEMO / "text.txt").read_text().split("\n")[:count]


def train_spm_bpe():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokenizer.train_from_iterator(demo_lines(300), trainers.BpeTrainer(vocab_size=700, special_tokens=special,
                                                                     show_progress=False))
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = description["added_tokens"][:3]  # byte tokens are no added tokens
    description["pre_tokenizer"] = None
    description["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    description["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    (HERE / "spm_bpe.json").write_text(json.dumps(description, ensure_ascii=True, separators=(",", ":")) + "\n")
    return description


def added(content, number, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False} | flags


def variants(spm, demo):
    """(name, base, patch): the patch replaces keys of the file; of its `model`, keys of the model"""
    yield "as it is", "demo", {}
    yield "gpt2 pieces", "demo", {"pre_tokenizer": GPT2}
    yield "one piece", "demo", {"pre_tokenizer": BYTES}
    yield "NFC", "demo", {"normalizer": {"type": "NFC"}}
    first = max(demo["model"]["vocab"].values()) + 1
    end = demo["added_tokens"]
    for name, flags in {"plain": {}, "single word": {"single_word": True}, "lstrip": {"lstrip": True},
                        "rstrip": {"rstrip": True}, "both": {"lstrip": True, "rstrip": True},
                        "special": {"special": True}, "normalized": {"normalized": True}}.items():
        tokens = end + [added("[TOK]", first, **flags), added("wordwise", first + 1, **flags),
                        added("[TOK][TOK]", first + 2, **flags), added("[caf\u00e9]", first + 3, **flags)]
        yield f"added tokens, {name}", "demo", {"added_tokens": tokens}
        yield f"added tokens, {name}, normalizer", "demo", {
            "added_tokens": tokens,
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}}
    yield "special hides what it overlaps", "demo", {
        "added_tokens": end + [added("[TOK", first, special=True), added("TOK]", first + 1)]}
    yield "as it is", "spm", {}
    yield "metaspace first", "spm", {"normalizer": None, "pre_tokenizer": metaspace("first", False)}
    yield "metaspace always, cut", "spm", {"normalizer": None, "pre_tokenizer": metaspace("always")}
    yield "added token in the middle", "spm", {"added_tokens": spm["added_tokens"] + [added("[TOK]", 700)]}
    yield "added token, metaspace first", "spm", {
        "added_tokens": spm["added_tokens"] + [added("[TOK]", 700)], "normalizer": None,
        "pre_tokenizer": metaspace("first", False)}
    yield "unknown, fused", "spm", {"model": {"byte_fallback": False}}
    yield "unknown, each", "spm", {"model": {"byte_fallback": False, "fuse_unk": False}}
    yield "unknown, dropped", "spm", {"model": {"byte_fallback": False, "unk_token": None}}
    yield "pieces that are tokens", "spm", {
        "model": {"ignore_merges": True, "merges": spm["model"]["merges"][:40]}, "normalizer": None,
        "pre_tokenizer": metaspace("always")}


def merge(base, patch):
    base = copy.deepcopy(base)
    for key, value in patch.items():
        base[key] = base[key] | value if key == "model" else value
    return base


def make_encodes(spm):
    demo = json.loads((DEMO / "tokenizer.json").read_text())
    bases = {"demo": demo, "spm": spm}
    cases = []
    for name, base, patch in variants(spm, demo):
        tokenizer = load(merge(bases[base], patch))
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        cases.append({"name": f"{base}: {name}", "base": base, "patch": patch, "ids": ids})
    text = (DEMO / "text.txt").read_bytes().decode()
    whole = {}
    for base, description in bases.items():
        ids = load(description).encode(text, add_special_tokens=False).ids
        whole[base] = {"count": len(ids), "sha256": sha(ids), "first": ids[:16]}
    write("encodes.json", {"versions": VERSIONS, "whole_text": whole, "texts": TEXTS, "cases": cases})


def make_sentencepiece():
    with tempfile.TemporaryDirectory() as folder:
        lines = pathlib.Path(folder) / "lines.txt"
        lines.write_text("\n".join(demo_lines(300)))
        sentencepiece.SentencePieceTrainer.train(
            input=str(lines), model_prefix=f"{folder}/tiny", vocab_size=500, model_type="bpe", byte_fallback=True,
            character_coverage=1.0, user_defined_symbols=["[TOK]"], normalization_rule_name="identity",
            num_threads=1, minloglevel=2)
        model = pathlib.Path(f"{folder}/tiny.model").read_bytes()
    (HERE / "tiny.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    text = (DEMO / "text.txt").read_bytes().decode()
    ids = processor.encode(text)
    write("sentencepiece.json", {
        "versions": VERSIONS, "bos": processor.bos_id(), "eos": processor.eos_id(), "size": processor.get_piece_size(),
        "whole_text": {"count": len(ids), "sha256": sha(ids), "first": ids[:16]}, "texts": TEXTS,
        "ids": [processor.encode(t) for t in TEXTS]})


make_splits()
make_encodes(train_spm_bpe())
make_sentencepiece()
