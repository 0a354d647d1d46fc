# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is learnt: data, a model, and how it is judged.

A problem has
    model()                        a new module
    batches(size, epochs, seed)    a list of batches, in the order in which workers take them
    loss(module, batch)            the mean over the batch's examples, a tensor of one element
    evaluate(module)               (loss, part of errors) on what is held out
and, where rows can be weighed by themselves, rows_of(module): the lengths of the segments of a gradient."""

import collections
import functools
import gzip
import math
import pathlib
import random
import re
import sys

import torch
import torch.nn.functional as F

import models

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import digits  # noqa: E402


class Images:
    """Digits: MNIST's 10,000-image file, 8,192 of them to train on and 1,808 held out, or generated ones."""

    def __init__(self, network, data=None, training=8192, held_out=1808):
        images, labels = digits.mnist(_folder_of(data, "t10k-images*")) if data else digits.generated(training + held_out, 0)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
        images, labels = images[order], labels[order]
        images = (images - images[:training].mean()) / images[:training].std()
        self.model = network
        self._training = images[:training], labels[:training]
        self._held_out = images[training:training + held_out], labels[training:training + held_out]

    def batches(self, size, epochs, seed):
        return [tuple(part[rows] for part in self._training)
                for rows in _batches_of(len(self._training[1]), size, epochs, seed)]

    def loss(self, module, batch):
        images, labels = batch
        return F.cross_entropy(module(images), labels)

    def evaluate(self, module):
        images, labels = self._held_out
        scores = torch.cat([module(part) for part in images.split(256)])
        return F.cross_entropy(scores, labels).item(), (scores.argmax(1) != labels).float().mean().item()


class Characters:
    """The next character of a text, the last tenth of which is held out."""

    def __init__(self, data=None, length=64, layers=3):
        text = read_text(data)
        self._numbers = {character: number for number, character in enumerate(sorted(set(text)))}
        numbers = torch.tensor([self._numbers[character] for character in text])
        cut = len(numbers) * 9 // 10
        self._length, self._training, held_out = length, numbers[:cut], numbers[cut:]
        windows = held_out[:len(held_out) // (length + 1) * (length + 1)].view(-1, length + 1)
        self._held_out = windows[:: max(1, len(windows) // 256)]
        self.model = functools.partial(models.Transformer, len(self._numbers), length, layers=layers)

    def batches(self, size, epochs, seed):
        # Windows of one epoch lie side by side; those of another begin elsewhere.
        starts = torch.arange(0, len(self._training) - 2 * self._length, self._length)
        shift = random.Random(seed).randrange(self._length)
        rows = _batches_of(len(starts), size, epochs, seed)
        places = torch.arange(self._length + 1)
        return [self._training[starts[r].unsqueeze(1) + (shift + 17 * n) % self._length + places] for n, r in enumerate(rows)]

    def loss(self, module, batch):
        return F.cross_entropy(module(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    def evaluate(self, module):
        losses = [self.loss(module, part).item() * len(part) for part in self._held_out.split(64)]
        return sum(losses) / len(self._held_out), math.nan


class Words:
    """Words and those around them (word2vec), with negative sampling; the last tenth of the text is held out."""

    def __init__(self, data=None, window=5, negatives=5, least=5):
        words = re.findall(r"[a-z]+(?:'[a-z]+)?", read_text(data).lower())
        counts = collections.Counter(words)
        self.vocabulary = [word for word, count in counts.most_common() if count >= least]
        numbers = {word: number for number, word in enumerate(self.vocabulary)}
        text = [numbers[word] for word in words if word in numbers]
        frequency = torch.tensor([float(counts[word]) for word in self.vocabulary]) / len(text)
        self._window, self._negatives = window, negatives
        self._noise = frequency ** 0.75
        self._keep = (1e-3 / frequency).sqrt().clamp(max=1.0)  # frequent words are skipped at random
        cut = len(text) * 9 // 10
        self._training, held_out = torch.tensor(text[:cut]), torch.tensor(text[cut:])
        self._held_out = self._examples(held_out, torch.Generator().manual_seed(0))
        self.model = functools.partial(models.SkipGram, len(self.vocabulary))

    def rows_of(self, module):
        """A segment for each vector of a word."""
        return [parameter.shape[1] for parameter in module.parameters() for _ in range(parameter.shape[0])]

    def batches(self, size, epochs, seed):
        generator = torch.Generator().manual_seed(seed)
        found = []
        for _ in range(math.ceil(epochs)):
            examples = self._examples(self._training, generator)
            order = torch.randperm(len(examples[0]), generator=generator)
            found += [tuple(part[rows] for part in examples) for rows in order.split(size)[:-1]]
        return found[:int(len(found) * epochs / math.ceil(epochs))]

    def loss(self, module, batch):
        # The sum, not the mean: each example is a step of its own in the authors' program, and most touch different words.
        return module(*batch).sum()

    def evaluate(self, module):
        return torch.cat([module(*part) for part in zip(*(x.split(4096) for x in self._held_out))]).mean().item(), math.nan

    def nearest(self, module, word, count=5):
        """The words whose vectors point most nearly the same way."""
        vectors = F.normalize(module.of_centre.weight.detach(), dim=1)
        likeness = vectors @ vectors[self.vocabulary.index(word)]
        nearest = [self.vocabulary[number] for number in likeness.topk(count + 1).indices.tolist()]
        return [other for other in nearest if other != word][:count]

    def _examples(self, text, generator):
        """(centre, around, others): every word with each word of a window whose width is drawn anew for each centre."""
        text = text[torch.rand(len(text), generator=generator) < self._keep[text]]
        width = torch.randint(1, self._window + 1, (len(text),), generator=generator)
        places = torch.arange(len(text))
        pairs = []
        for distance in range(1, self._window + 1):
            for offset in (-distance, distance):
                there = places[(width >= distance) & (places + offset >= 0) & (places + offset < len(text))]
                pairs.append((text[there], text[there + offset]))
        centre, around = (torch.cat(part) for part in zip(*pairs))
        others = torch.multinomial(self._noise, len(centre) * self._negatives, replacement=True, generator=generator)
        return centre, around, others.view(-1, self._negatives)


def read_text(data):
    """shakespeare.txt of a folder, or generated sentences."""
    if not data:
        return generated_text(40_000)
    path = next(iter(sorted(pathlib.Path(data).rglob("shakespeare.txt*"))), None)
    if path is None:
        raise SystemExit(f"{data}: there is no shakespeare.txt")
    return gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()


def generated_text(characters):
    """Sentences of a small grammar, always the same ones."""
    draw = random.Random(1)
    nouns = ["king", "queen", "fool", "ghost", "soldier", "lady", "merchant", "witch", "friar", "duke"]
    verbs = ["loves", "fears", "follows", "mocks", "crowns", "forgives", "betrays", "seeks"]
    kinds = ["noble", "wicked", "gentle", "weary", "proud", "silent"]
    sentences, length = [], 0
    while length < characters:
        noun, other = draw.sample(nouns, 2)
        sentence = f"the {draw.choice(kinds)} {noun} {draw.choice(verbs)} the {draw.choice(kinds)} {other}.\n"
        sentences.append(sentence)
        length += len(sentence)
    return "".join(sentences)


def _batches_of(examples, size, epochs, seed):
    """Numbers of examples, shuffled anew for each epoch: whole batches only."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(math.ceil(epochs)):
        found += torch.randperm(examples, generator=generator)[:examples // size * size].split(size)
    return found[:int(examples // size * epochs)]


def _folder_of(data, pattern):
    path = next(iter(sorted(pathlib.Path(data).rglob(pattern))), None)
    if path is None:
        raise SystemExit(f"{data}: there is no {pattern}")
    return path.parent
