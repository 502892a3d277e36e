#!/usr/bin/env python3
"""Trains detrun-decisions, the small Llama-architecture model in fixtures/models, from scratch.

It writes its own corpus, byte-level BPE tokenizer and weights, then two GGUF files (F16, Q8_0).
It is no benchmark of training and no part of the engine: nothing in the build calls it.
Invariants: only generated text is used; RoPE turns adjacent pairs (2i, 2i+1), as GGUF's llama
does, so no rows are permuted; every row length is a multiple of 256; each file is <= 4 MiB.
Pinned: Python 3.11, torch 2.9.1, tokenizers 0.23.3, gguf 0.19.0, numpy 2.4.6.
"""

import argparse
import json
import math
import random
import re
import time
from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SEED = 20240611
EOT = "<|endoftext|>"
VOCAB, CONTEXT, EMBD, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FF = 1024, 512, 256, 4, 8, 2, 32, 256
EPS, ROPE_BASE = 1e-5, 10000.0
MAX_FILE_BYTES = 4 * 1024 * 1024
BATCH_TOKENS, PEAK_LR, WARMUP = 2048, 3e-3, 60
FACT_LOSS_WEIGHT = 0.3  # facts are random by design; the decision is what must be learned
LINEAR_SHAPES = {
    "attn_q": (HEADS * HEAD_DIM, EMBD), "attn_k": (KV_HEADS * HEAD_DIM, EMBD),
    "attn_v": (KV_HEADS * HEAD_DIM, EMBD), "attn_output": (EMBD, HEADS * HEAD_DIM),
    "ffn_gate": (FF, EMBD), "ffn_up": (FF, EMBD), "ffn_down": (EMBD, FF),
}
PROMPTS = [
    "Credit application. Applicant: Maria Lopez. Income: 4,200 EUR a month. "
    "Requested: 12,000 EUR over 36 months. Missed payments: none.\nDecision:",
    "Credit application. Applicant: Jürgen Weiß. Income: €2,100 a month. "
    "Requested: €45,000 over 60 months. Missed payments: none.\nDecision:",
    "Insurance claim. Policyholder: Zoë Martin. Damage: burst pipe. Claimed: €3,400. "
    "Policy: active. Reported: after 4 days.\nDecision:",
    "Supplier onboarding. Company: Nowak Logistics GmbH. Country: Poland. "
    "Sanctions check: clear. Insurance certificate: expired. References: three.\nDecision:",
    "Expense approval. Employee: David Chen. Item: train tickets. Amount: 180 USD. "
    "Limit: 400 USD. Receipt: missing.\nDecision:",
    "Access request. Employee: Aisha Khan. System: payroll. Role: analyst. "
    "Training: completed. Manager approval: given.\nDecision:",
]

# --- Corpus: facts first, then a decision that follows from them by one rule per outcome. ---
FIRST = ("Maria José Anna Björn Chloé David Elena Fatima Georg Hannah Igor Jürgen Aisha Kenji "
         "Laura Łukasz Mateo Nadia Olga Paul Quentin René Sofia Tomas Ulrike Victor Wei Ximena "
         "Yusuf Zoë James Emma Oliver Grace Henry Alice Noah Ruth Samuel Clara").split()
LAST = ("Lopez Müller Smith Nuñez Kowalski García Nguyen Rossi Andersen Weiß Chen Khan Martin "
        "Dubois Silva Novák Okafor Tanaka Brown Jensen Moreau Schmidt Walker Haddad Petrov "
        "Larsen Costa Bauer Fischer Murphy Evans Singh Cohen Wagner Björk Fernández Lefèvre "
        "Nowak Taylor").split()
SYLLABLES = "ba ber da del fen ga hol in ka lo mar mi nor o pel ra ri sa sen tor va wen".split()
COUNTRIES = "Poland|Spain|Germany|France|Portugal|Canada|Japan|Norway|Ireland|Kenya|Brazil|Austria"
COUNTS = "none one two three four five six".split()

# Each case: titles, facts, and outcome -> (verdict, reasons, rule, next steps); "|" separates
# wordings to choose from, in facts the usual one first; {x} is filled by draw_facts().
CASES = {
    "credit": (
        "Credit application|Loan application|Credit request",
        ["Applicant: {name}|Customer: {name}", "Income: {a} a month|Monthly income: {a}",
         "Requested: {b} over {n} months|Loan: {b} for {n} months", "Missed payments: {word}"],
        {"ok": ("approved", "the income of {a} a month covers a loan of {b} over {n} months, and "
            "there are no missed payments|{name} has no missed payments, and {b} is well within "
            "eight monthly incomes of {a}", "C1: no missed payments and at most eight monthly "
            "incomes", "send the contract to {name} for signature|pay out {b} once {name} has "
            "signed"),
         "big": ("declined", "the requested {b} is far more than eight monthly incomes of {a}, "
            "even over {n} months|an income of {a} a month is too low for a loan of {b}",
            "C2: at most eight monthly incomes", "tell {name} that a smaller amount can be "
            "requested|offer {name} a lower amount"),
         "late": ("declined", "{word} missed payments are more than the two that are allowed|with "
            "{word} missed payments the risk of a default is too high",
            "C3: at most two missed payments", "write to {name} and explain the decision|invite "
            "{name} to apply again in a year"),
         "few": ("referred to manual review", "the income of {a} is sufficient, but the missed "
            "payments ({word}) need an explanation|{name} can afford the loan, but a person has to "
            "look at the missed payments ({word})", "C4: one or two missed payments are reviewed",
            "ask {name} for the bank statements of the last six months")}),
    "claim": (
        "Insurance claim|Claim|Household claim",
        ["Policyholder: {name}|Claimant: {name}", "Damage: {item}|Cause: {item}",
         "Claimed: {a}|Amount: {a}", "Policy: {s}", "Reported: after {n} days"],
        {"ok": ("approved", "the policy is active, the {item} is covered, and the claim was "
            "reported after {n} days|the {item} is an insured event and was reported in time, "
            "after {n} days", "I1: active policy, insured event, reported within 30 days",
            "pay {a} to {name}|transfer {a} to {name} within five working days"),
         "big": ("referred to manual review", "the {item} is covered, but {a} is above the limit "
            "of 10,000 for a decision without an adjuster|a claim of {a} is too large to be "
            "settled without a visit", "I2: claims above 10,000 need an adjuster",
            "send an adjuster to {name}|agree a date for a visit with {name}"),
         "lapsed": ("declined", "the policy had {s2} when the damage happened, so the {item} is "
            "not covered|there was no cover for the {item}, because the policy has {s2}",
            "I3: the policy must be active", "inform {name} and close the claim"),
         "late": ("declined", "the {item} was reported after {n} days, but 30 days are allowed|{n} "
            "days are longer than the 30 days in which a claim must be reported",
            "I4: reported within 30 days", "inform {name} about the right to appeal")}),
    "supplier": (
        "Supplier onboarding|New supplier|Vendor registration",
        ["Company: {firm}|Supplier: {firm}", "Country: {place}", "Sanctions check: {s}",
         "Insurance certificate: {t}", "References: {word}"],
        {"ok": ("approved", "the sanctions check is clear, the insurance certificate is valid, and "
            "{word} references were given|{firm} passed the sanctions check and has a valid "
            "insurance certificate and {word} references", "S1: clear check, valid certificate, "
            "two references", "create an account for {firm}|send the framework contract to {firm}"),
         "hit": ("declined", "the sanctions check of {firm} returned a match|{firm} from {place} "
            "matches an entry on a sanctions list", "S2: no supplier with a sanctions match",
            "inform the compliance team|block {firm} and inform the compliance team"),
         "cert": ("referred to manual review", "the sanctions check is clear, but the insurance "
            "certificate is {t}|{firm} cannot be accepted yet, because its insurance certificate "
            "is {t}", "S3: a valid insurance certificate is required",
            "ask {firm} for a new certificate"),
         "refs": ("declined", "{firm} gave no references, and at least two are required|there are "
            "no references for {firm}", "S4: at least two references", "ask {firm} to apply again "
            "with references")}),
    "expense": (
        "Expense approval|Expense claim|Expense report",
        ["Employee: {name}|Submitted by: {name}", "Item: {item}|For: {item}", "Amount: {a}",
         "Limit: {b}", "Receipt: {s}"],
        {"ok": ("approved", "the amount of {a} for the {item} is within the limit of {b}, and the "
            "receipt is attached|{a} is below the limit of {b}, and there is a receipt for the "
            "{item}", "E1: within the limit and with a receipt", "repay {a} to {name} with the "
            "next salary|repay {a} to {name}"),
         "big": ("declined", "the amount of {a} for the {item} is above the limit of {b}|{a} is "
            "more than the limit of {b} allows for the {item}", "E2: the amount must be within the "
            "limit", "ask {name} to get an approval from the head of department"),
         "none": ("referred to manual review", "the amount of {a} is within the limit of {b}, but "
            "the receipt for the {item} is missing|there is no receipt for the {item}",
            "E3: no payment without a receipt", "ask {name} to send the receipt|remind {name} to "
            "upload the receipt")}),
    "access": (
        "Access request|System access|Request for access",
        ["Employee: {name}|User: {name}", "System: {item}", "Role: {place}", "Training: {s}",
         "Manager approval: {t}"],
        {"ok": ("approved", "{name} has completed the training, and the manager has approved "
            "access to the {item} system|the training is completed and the manager has agreed, so "
            "{name} may use the {item} system", "A1: training and approval are both required",
            "create the account with the role {place} for {name}"),
         "untrained": ("declined", "the training for the {item} system is {s}|{name} has not "
            "completed the training that the {item} system requires",
            "A2: no access without training", "book the training for {name}"),
         "open": ("referred to manual review", "the training is completed, but the approval of the "
            "manager is {t}|only the approval of the manager is {t}",
            "A3: the manager must approve", "ask the manager of {name} for an approval")}),
    "invoice": (
        "Invoice check|Invoice approval|Payment release",
        ["Supplier: {firm}|Vendor: {firm}", "Invoice: {a}", "Order: {b}",
         "Goods: {s}|Delivery: {s}", "Due: in {n} days"],
        {"ok": ("approved", "the invoice and the order are both {a}, and the goods were {s}|the "
            "invoice of {firm} matches the order of {b}, and the goods were {s}",
            "P1: the invoice matches the order and the delivery", "pay {a} to {firm} in {n} "
            "days|release the payment of {a}"),
         "diff": ("declined", "the invoice is {a}, but the order was only {b}|{a} is more than the "
            "{b} that were ordered", "P2: the invoice must match the order",
            "ask {firm} for a corrected invoice"),
         "wait": ("referred to manual review", "the invoice matches the order of {b}, but the "
            "goods are {s}|the goods from {firm} are {s}, so nothing is paid yet",
            "P3: payment only after delivery", "ask the warehouse about the delivery from "
            "{firm}")}),
}
ITEMS = {
    "claim": "burst pipe|fire|storm damage|broken window|stolen bicycle|hail damage",
    "expense": "train tickets|hotel room|team dinner|office chairs|taxi ride|laptop bag|books",
    "access": "payroll|billing|inventory|ticket|customer|reporting|warehouse|travel",
}


def pick(r, options):
    return r.choice(options.split("|"))


def usual(r, options):
    """The first wording two times in three, else one of the others."""
    first, *others = options.split("|")
    return r.choice(others) if others and r.random() < 1 / 3 else first


def draw_name(r, known):
    if r.random() < 0.3:  # made-up names teach the model to copy rather than to recall
        return "".join(r.choices(SYLLABLES, k=r.randint(2, 3))).capitalize()
    return r.choice(known)


def money_format(r):
    """One currency notation, kept throughout a document."""
    style = pick(r, "{} EUR|{} EUR|€{}|€{}|EUR {}|{} USD|${}|£{}|{} GBP")
    return lambda value: style.format(f"{value:,}")


def draw_numbers(r, kind, why):
    """Two amounts and a day or month count that fit the outcome, kept clear of each threshold."""
    if kind == "credit":
        income = r.randrange(1400, 8000, 100)
        loan = income * (r.uniform(11, 28) if why == "big" else r.uniform(0.8, 5.5))
        return income, max(1, round(loan / 500)) * 500, r.choice([12, 24, 36, 48, 60])
    if kind == "claim":
        amount = r.randrange(13000, 60000, 500) if why == "big" else r.randrange(150, 7500, 50)
        return amount, 0, r.randint(45, 160) if why == "late" else r.randint(2, 20)
    if kind == "expense":
        limit = r.randrange(100, 1000, 50)
        share = r.uniform(1.4, 4) if why == "big" else r.uniform(0.15, 0.75)
        return max(10, round(limit * share / 5) * 5), limit, 0
    order = r.randrange(400, 30000, 50)
    invoice = round(order * r.uniform(1.3, 3) / 50) * 50 if why == "diff" else order
    return invoice, order, r.randint(5, 40)


def draw_facts(r, kind, why):
    """The values for the {x} of one case with the outcome `why`."""
    money = money_format(r)
    first, second, n = draw_numbers(r, kind, why)
    trade = pick(r, "Logistics|Foods|Metals|Software|Paper|Textiles|Energy|Tools|Print|Cleaning")
    c = {"name": f"{draw_name(r, FIRST)} {draw_name(r, LAST)}", "n": n, "word": "none",
         "firm": f"{draw_name(r, LAST)} {trade} {pick(r, 'GmbH|Ltd|Inc|SA|AB|BV')}",
         "a": money(first), "b": money(second), "s": "", "s2": "", "t": "",
         "item": pick(r, ITEMS.get(kind, "")), "place": pick(r, COUNTRIES)}
    if kind == "credit":
        c["word"] = {"late": r.choice(COUNTS[3:]), "few": r.choice(COUNTS[1:3])}.get(why, "none")
    elif kind == "claim":
        c["s2"] = pick(r, "lapsed|expired|ended")
        c["s"] = c["s2"] if why == "lapsed" else "active"
    elif kind == "supplier":
        c["s"] = "match" if why == "hit" else "clear"
        c["t"] = pick(r, "expired|missing") if why == "cert" else "valid"
        c["word"] = "none" if why == "refs" else r.choice(COUNTS[2:])
    elif kind == "expense":
        c["s"] = "missing" if why == "none" else "attached"
    elif kind == "access":
        c["place"] = pick(r, "analyst|reader|editor|administrator|clerk|auditor")
        c["s"] = pick(r, "missing|not completed|overdue") if why == "untrained" else "completed"
        c["t"] = pick(r, "pending|missing|open") if why == "open" else "given"
    elif kind == "invoice":
        c["s"] = pick(r, "not received|still missing|delayed") if why == "wait" else "received"
    return c


def make_document(r):
    """One case as (facts with "Decision:", decision text, verdict)."""
    kind = r.choice(list(CASES))
    titles, fact_options, outcomes = CASES[kind]
    why = r.choice(["ok", *outcomes])  # "ok" twice, so that about two in five are approved
    verdict, reasons, rule, steps = outcomes[why]
    c = draw_facts(r, kind, why)
    facts = [usual(r, f).format(**c) for f in fact_options]
    if r.random() < 0.3:
        facts[1:] = r.sample(facts[1:], len(facts) - 1)
    title = usual(r, titles)
    if r.random() < 0.15:
        title = f"Case {r.randint(100, 9999)}. {title}"
    layout = r.random()
    if layout < 0.75:
        text = f"{title}. " + ". ".join(facts) + "."
    elif layout < 0.9:
        text = f"{title}\n" + "\n".join(facts)
    else:
        text = f"{title}:\n" + "\n".join(f"- {f}" for f in facts)
    reason, step = pick(r, reasons).format(**c), pick(r, steps).format(**c)
    return (f"{text}\nDecision:",
            f" {verdict}. Reason: {reason}. Rule {rule}. Next step: {step}.", verdict)


# --- Tokenizer ---
def train_tokenizer(documents):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=[EOT], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    # Digits are set apart here, so that no merge joins two of them: amounts are easier to compare.
    texts = (re.sub(r"(\d)(?=\d)", r"\1,", p + d) for p, d, _ in documents)
    tok.train_from_iterator(texts, trainer)
    assert tok.get_vocab_size() == VOCAB, tok.get_vocab_size()
    return tok


# --- Model: parameters are one flat dict under their GGUF names ---
def init_parameters(generator):
    def normal(shape, std):
        return torch.nn.Parameter(torch.randn(shape, generator=generator) * std)

    p = {"token_embd.weight": normal((VOCAB, EMBD), 0.02),
         "output_norm.weight": torch.nn.Parameter(torch.ones(EMBD))}
    for i in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            p[f"blk.{i}.{name}.weight"] = torch.nn.Parameter(torch.ones(EMBD))
        for name, shape in LINEAR_SHAPES.items():
            residual = name in ("attn_output", "ffn_down")
            std = shape[1] ** -0.5 / (math.sqrt(2 * LAYERS) if residual else 1)
            p[f"blk.{i}.{name}.weight"] = normal(shape, std)
    return p


def rope_table():
    freq = ROPE_BASE ** (-torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)
    angle = torch.arange(CONTEXT).float()[:, None] * freq
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def forward(p, tokens, rope):
    """Logits for a [batch, time] tensor; rows start at position 0."""
    batch, length = tokens.shape
    cos, sin = rope[0][:length], rope[1][:length]
    x = F.embedding(tokens, p["token_embd.weight"])
    for i in range(LAYERS):
        w = {name: p[f"blk.{i}.{name}.weight"] for name in LINEAR_SHAPES}
        h = F.rms_norm(x, (EMBD,), p[f"blk.{i}.attn_norm.weight"], EPS)
        q, k, v = (F.linear(h, w[n]).view(batch, length, -1, HEAD_DIM).transpose(1, 2)
                   for n in ("attn_q", "attn_k", "attn_v"))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, dim=1) for t in (k, v))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(att.transpose(1, 2).reshape(batch, length, -1), w["attn_output"])
        h = F.rms_norm(x, (EMBD,), p[f"blk.{i}.ffn_norm.weight"], EPS)
        gated = F.silu(F.linear(h, w["ffn_gate"])) * F.linear(h, w["ffn_up"])
        x = x + F.linear(gated, w["ffn_down"])
    x = F.rms_norm(x, (EMBD,), p["output_norm.weight"], EPS)
    return F.linear(x, p["token_embd.weight"])


# --- Training ---
def encode_rows(tok, documents, eot):
    """Rows of (token, loss weight); one document a row, plus some packed to the full context."""
    facts = tok.encode_batch([p for p, _, _ in documents])
    decisions = tok.encode_batch([d for _, d, _ in documents])
    rows = [[(eot, 0.0)] + [(t, FACT_LOSS_WEIGHT) for t in f.ids]
            + [(t, 1.0) for t in d.ids + [eot]] for f, d in zip(facts, decisions)]
    cut = len(rows) // 40
    stream = [pair for row in rows[:cut] for pair in row[:-1]]
    packed = [stream[i:i + CONTEXT] for i in range(0, len(stream), CONTEXT)]
    return packed + rows[cut:]


def make_batches(rows, tokens_per_batch, r):
    """Batches of rows of like length, padded, in random order: (tokens, weights)."""
    batches, current = [], []
    for row in sorted(rows, key=len, reverse=True):
        current.append(row)
        if (len(current) + 1) * len(current[0]) > tokens_per_batch:
            batches.append(current)
            current = []
    r.shuffle(batches)
    for batch in batches:
        width = len(batch[0])
        padded = np.array([row + [(0, 0.0)] * (width - len(row)) for row in batch])
        yield (torch.from_numpy(padded[..., 0].astype(np.int64)),
               torch.from_numpy(padded[..., 1].astype(np.float32)))


def train(p, rows, rope):
    matrices = [t for t in p.values() if t.ndim == 2]
    norms = [t for t in p.values() if t.ndim == 1]
    opt = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05},
                             {"params": norms, "weight_decay": 0.0}],
                            lr=PEAK_LR, betas=(0.9, 0.95))
    batches = list(make_batches(rows, BATCH_TOKENS, random.Random(SEED + 2)))
    steps, start, seen, mean = len(batches), time.time(), 0, None
    for step, (tokens, weights) in enumerate(batches):
        progress = max(0.0, (step - WARMUP) / max(1, steps - WARMUP))
        cosine = (1 + math.cos(math.pi * progress)) / 2
        scale = min(1.0, (step + 1) / WARMUP) * (0.03 + 0.97 * cosine)
        for group in opt.param_groups:
            group["lr"] = PEAK_LR * scale
        logits = forward(p, tokens[:, :-1], rope)
        each = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        w = weights[:, 1:].flatten()
        loss = (each * w).sum() / w.sum()
        decision = each.detach()[w == 1.0].mean().item()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(matrices + norms, 1.0)
        opt.step()
        seen += tokens.numel()
        mean = decision if mean is None else 0.95 * mean + 0.05 * decision
        if step % 50 == 0 or step == steps - 1:
            rate = seen / (time.time() - start)
            print(f"step {step + 1}/{steps} loss {loss.item():.4f} decision loss {mean:.4f} "
                  f"({rate:.0f} tokens/s, {time.time() - start:.0f} s)", flush=True)


# --- Checks ---
@torch.no_grad()
def greedy(p, tok, rope, prompt, limit=200):
    """The greedy continuation and the number of steps, the one that gives EOT included."""
    eot = tok.token_to_id(EOT)
    ids = [eot] + tok.encode(prompt).ids
    start = len(ids)
    while len(ids) - start < limit and len(ids) < CONTEXT:
        ids.append(int(forward(p, torch.tensor([ids]), rope)[0, -1].argmax()))
        if ids[-1] == eot:
            break
    return tok.decode(ids[start:]), start, len(ids) - start, ids[-1] == eot


def check_held_out(p, tok, rope, count):
    """How many unseen cases get the right verdict; prints those that do not."""
    r, right = random.Random(SEED + 3), 0
    for _ in range(count):
        prompt, decision, verdict = make_document(r)
        text = greedy(p, tok, rope, prompt, limit=8)[0]
        right += text.startswith(f" {verdict}.")
        if not text.startswith(f" {verdict}."):
            print(f"wrong: {prompt!r} gave {text!r}, not {verdict!r}")
    print(f"held-out verdicts: {right} of {count} right")


# --- GGUF ---
def write_gguf(path, p, tok, file_type):
    kind = gguf.GGMLQuantizationType.F16
    if file_type == gguf.LlamaFileType.MOSTLY_Q8_0:
        kind = gguf.GGMLQuantizationType.Q8_0
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("detrun-decisions")
    w.add_author("detrun")
    w.add_license("MIT")
    w.add_description("Small decision model trained from scratch on generated text only")
    w.add_file_type(file_type)
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    w.add_block_count(LAYERS)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(EMBD)
    w.add_feed_forward_length(FF)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(EPS)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_rope_freq_base(ROPE_BASE)
    w.add_vocab_size(VOCAB)
    add_tokenizer(w, tok)
    for name, tensor in p.items():
        data = tensor.detach().numpy()
        if data.ndim == 1:
            w.add_tensor(name, data)
            continue
        assert data.shape[1] % 256 == 0, name
        packed = gguf.quants.quantize(data, kind)
        w.add_tensor(name, packed, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    size = path.stat().st_size
    assert size <= MAX_FILE_BYTES, size
    print(f"{path}: {size} bytes")


def add_tokenizer(w, tok):
    eot = tok.token_to_id(EOT)
    merges = json.loads(tok.to_str())["model"]["merges"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list([tok.id_to_token(i) for i in range(VOCAB)])
    w.add_token_types([gguf.TokenType.CONTROL if i == eot else gguf.TokenType.NORMAL
                       for i in range(VOCAB)])
    w.add_token_merges([" ".join(pair) for pair in merges])
    w.add_bos_token_id(eot)
    w.add_eos_token_id(eot)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)


def main():
    parser = argparse.ArgumentParser(description="Train and write detrun-decisions.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the two GGUF files")
    parser.add_argument("--documents", type=int, default=28000, help="documents, each seen once")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # saves time only
    r = random.Random(SEED)
    documents = [make_document(r) for _ in range(args.documents)]
    tok = train_tokenizer(documents[:8000])
    rows = encode_rows(tok, documents, tok.token_to_id(EOT))
    p = init_parameters(torch.Generator().manual_seed(SEED + 1))
    print(f"{sum(t.numel() for t in p.values())} parameters, {sum(map(len, rows))} tokens, "
          f"{sum(map(len, rows)) / len(documents):.0f} a document", flush=True)
    rope = rope_table()
    train(p, rows, rope)
    args.out.mkdir(parents=True, exist_ok=True)
    write_gguf(args.out / "detrun-decisions-f16.gguf", p, tok, gguf.LlamaFileType.MOSTLY_F16)
    write_gguf(args.out / "detrun-decisions-q8_0.gguf", p, tok, gguf.LlamaFileType.MOSTLY_Q8_0)
    for prompt in PROMPTS:
        text, given, steps, ended = greedy(p, tok, rope, prompt)
        print(f"--- {given} prompt tokens, {steps} steps, EOT: {ended}\n{prompt}{text}")
    check_held_out(p, tok, rope, 300)


if __name__ == "__main__":
    main()
