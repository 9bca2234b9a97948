"""Queries for word lists: words with one random edit each."""

import random

#: Of the queries of benchs/results.
SEED = 2012


def edited(word, letters, rng):
    """The word with a letter inserted, removed or replaced."""
    edit = rng.choice(("insert", "remove", "replace")) if word else "insert"
    if edit == "insert":
        place = rng.randrange(len(word) + 1)
        return word[:place] + rng.choice(letters) + word[place:]
    place = rng.randrange(len(word))
    letter = rng.choice(letters) if edit == "replace" else ""
    return word[:place] + letter + word[place + 1 :]


def make_queries(words, count, seed=SEED):
    """`count` words of the list, drawn at random with repeats, each with one
    edit; letters are drawn from all that occur in the list, each as likely."""
    rng = random.Random(seed)
    letters = sorted(set("".join(words)))
    return [edited(rng.choice(words), letters, rng) for _ in range(count)]


def make_phrases(words, count=40000, parts=10, seed=SEED):
    """Texts longer than words: each some words of the list, drawn at random."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(words, k=parts)) for _ in range(count)]


def read_lines(path):
    """The lines of a file in UTF-8."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")
