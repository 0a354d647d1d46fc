# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_links.py FOLDER: each address in the pages of a site that leads to another place in it leads somewhere: the file is
there, and has the anchor. Sphinx has checked those that it made of Markdown; here are the others, too."""

import html.parser
import os
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.addresses = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.addresses.add(value)


def main(folder):
    pages = {path: Page(path.read_text()) for path in pathlib.Path(folder).resolve().rglob("*.html")}
    broken, count = [], 0
    for path, page in pages.items():
        for address in sorted(page.addresses):
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                continue  # elsewhere
            count += 1
            anchor = urllib.parse.unquote(parts.fragment)
            target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path))) if parts.path else path
            if not target.is_file():
                broken.append(f"{path}: {address}: there is no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append(f"{path}: {address}: that page has no such anchor")
    print("\n".join(broken))
    print(f"{count} addresses in {len(pages)} pages, {len(broken)} broken")
    return 1 if broken or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
