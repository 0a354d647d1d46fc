# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks that the studies train."""

import torch
import torch.nn.functional as F
from torch import nn


class DigitNetwork(nn.Module):
    """Two convolutions and two linear layers, as in examples/train_mnist: 21,840 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class ResidualNetwork(nn.Module):
    """A residual network (He et al., CVPR 2016, section 4.2) for small images: a convolution, three stages of one block of two
    convolutions each, with 8, 16 and 32 channels, then the mean over the image and a linear layer. 20,000 parameters."""

    class Block(nn.Module):
        def __init__(self, channels_in, channels, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
            self.shortcut = nn.Identity()
            if channels_in != channels:
                self.shortcut = nn.Conv2d(channels_in, channels, 1, stride, bias=False)

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(self.Block(8, 8, 1), self.Block(8, 16, 2), self.Block(16, 32, 2))
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.first(F.avg_pool2d(x, 2))))
        return self.last(self.blocks(x).mean((2, 3)))


class Transformer(nn.Module):
    """A decoder that predicts the next character (Vaswani et al., NeurIPS 2017), normalised before each part (GPT-2).

    Text [batch, length] of character numbers to scores [batch, length, characters]."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.of_attention, self.from_attention = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, future):
            batch, length, width = x.shape
            query, key, value = (self.of_attention(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
                                 .permute(2, 0, 3, 1, 4))
            scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5 + future
            seen = (scores.softmax(3) @ value).transpose(1, 2).reshape(batch, length, width)
            x = x + self.from_attention(seen)
            return x + self.narrow(F.gelu(self.widen(self.norm2(x))))

    def __init__(self, characters, length, width=64, heads=4, layers=3):
        super().__init__()
        self.characters, self.places = nn.Embedding(characters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(self.Block(width, heads) for _ in range(layers))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, characters)
        for parameter in self.parameters():  # as in GPT-2
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.register_buffer("future", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, text):
        length = text.shape[1]
        x = self.characters(text) + self.places.weight[:length]
        for block in self.blocks:
            x = block(x, self.future[:length, :length])
        return self.last(self.norm(x))


class SkipGram(nn.Module):
    """word2vec (Mikolov et al., NeurIPS 2013, section 2.2): words predict the words around them, among words drawn at random.

    centre [batch], around [batch] and others [batch, k] are numbers of words; forward gives the loss of each example,
    -log s(around . centre) - sum of log s(-other . centre)."""

    def __init__(self, words, width=64):
        super().__init__()
        self.of_centre, self.of_context = nn.Embedding(words, width), nn.Embedding(words, width)
        nn.init.uniform_(self.of_centre.weight, -0.5 / width, 0.5 / width)  # as in the authors' program
        nn.init.zeros_(self.of_context.weight)

    def forward(self, centre, around, others):
        v = self.of_centre(centre)
        right = (v * self.of_context(around)).sum(1)
        wrong = torch.bmm(self.of_context(others), v.unsqueeze(2)).squeeze(2)
        return -F.logsigmoid(right) - F.logsigmoid(-wrong).sum(1)
