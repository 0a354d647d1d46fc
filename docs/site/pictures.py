# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Sphinx extension for the pictures of pages. A code-hosting site shows <picture> as the browser's colours are; here a reader
can choose others, so it becomes two images, of which the theme shows one: its classes only-light and only-dark. Sphinx then
checks that they exist, and copies them."""

import re

_picture = re.compile(r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]*)">\s*'
                      r'<img alt="([^"]*)"\s+src="([^"]*)">\s*</picture>')


def _as_two_images(found):
    dark, text, light = found.groups()
    text = " ".join(text.split())
    return "\n\n".join(f"```{{image}} {path}\n:alt: \"{text}\"\n:class: {theme}\n```"
                       for path, theme in ((light, "only-light"), (dark, "only-dark")))


def setup(app):
    app.connect("source-read", lambda _, __, source: source.__setitem__(0, _picture.sub(_as_two_images, source[0])))
    return {"parallel_read_safe": True}
