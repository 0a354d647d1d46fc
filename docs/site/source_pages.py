# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source files in the site.

Pages link to headers, examples and folders by relative paths, as a code-hosting site follows them. In the site, each such link
leads to a page with the file's text (source/<path>.html), or to a list of the folder's files. So do mentions of a header or a
page in the Reference, which comes from comments ("core/parts.hpp", "docs/rules.md"): a page that does not exist is a warning.
"""

import functools
import os
import pathlib
import posixpath
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import public_names


def address(path, docname, line=0):
    """From a page to the page of a file: a relative address."""
    page = posixpath.join("source", path, "index.html") if os.path.isdir(path) else posixpath.join("source", path + ".html")
    return posixpath.relpath(page, posixpath.dirname(docname) or ".") + (f"#L-{line}" if line else "")


def note(env, docname, path):
    """Remembers that a page links to a file."""
    env.source_files.setdefault(docname, set()).add(path)
    if os.path.isdir(path):
        env.source_files[docname].update(posixpath.join(path, one) for one in files_in(path))


def files_in(folder):
    return sorted(one.name for one in pathlib.Path(folder).iterdir() if one.is_file())


class LinksToFiles(SphinxTransform):
    """Markdown's links to what is no page."""

    default_priority = 400

    def apply(self):
        wanted = lambda node: isinstance(node, (addnodes.download_reference, addnodes.pending_xref)) and (
            node.get("reftype") == "myst" and node.get("refdomain") is None)
        for link in list(self.document.findall(wanted)):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(self.env.docname), link["reftarget"]))
            if link["reftarget"].startswith("#") or not os.path.exists(path) or path.endswith((".png", ".svg")):
                continue  # MyST resolves it, or says that it cannot; pictures are copied
            note(self.env, self.env.docname, path)
            link.replace_self(nodes.reference("", "", *link.children, internal=True, refuri=address(path, self.env.docname)))


class MentionsInComments(SphinxTransform):
    """Paths in comments, in the Reference."""

    default_priority = 410
    path = re.compile(r"\b(?:docs/[\w/]+\.md|(?:\w+/)*\w+\.hpp)")

    def apply(self):
        if not self.env.docname.startswith("docs/reference/"):
            return
        for file in list(self.document.findall(addnodes.pending_xref)):  # Doxygen knows files, the site does not
            link = self.link(file.astext()) if self.path.fullmatch(file.astext()) else None
            if link is not None:
                file.replace_self(link)
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, (nodes.paragraph, nodes.emphasis)):
                continue
            pieces, end = [], 0
            for found in self.path.finditer(text):
                link = self.link(found.group())
                if link is not None:
                    pieces += [nodes.Text(text[end:found.start()]), link]
                    end = found.end()
            if pieces:
                text.parent.replace(text, [*pieces, nodes.Text(text[end:])])

    def link(self, path):
        if path.startswith("docs/"):
            return addnodes.pending_xref("", nodes.inline("", path), refdomain="std", reftype="doc", refdoc=self.env.docname,
                                         reftarget="/" + path.removesuffix(".md"), refexplicit=True, refwarn=True)
        matches = [one for one in self.env.config.source_headers if one.endswith("/" + path)]
        if len(matches) != 1:
            return None  # a name that several have, or another library's
        note(self.env, self.env.docname, matches[0])
        return nodes.reference("", path, internal=True, refuri=address(matches[0], self.env.docname))


class Signatures(SphinxTransform):
    """Of entities: each has a link to its source. What says nothing to users is taken away: namespaces and values of
    enumerations in the list of the page's entities, the word inline, and the look of a name from template parameters."""

    default_priority = 420

    def apply(self):
        for signature in self.document.findall(addnodes.desc_signature):
            name = signature.get("_toc_name", "").rpartition("::")[2]
            signature["_toc_name"] = "" if signature.parent["objtype"] == "enumerator" else name
            for word in list(signature.findall(addnodes.desc_sig_keyword)):
                if word.astext() == "inline":
                    space = word.parent[word.parent.index(word) + 1]
                    word.parent.remove(space)
                    word.parent.remove(word)
            for parameter in list(signature.findall(addnodes.desc_name))[:-1]:
                parameter.replace_self(parameter.children)
            for target in list(signature.findall(nodes.target)):
                place = self.places().get(target["ids"][0])
                if place is not None:
                    note(self.env, self.env.docname, place[0])
                    label = nodes.inline("", "source", classes=["viewcode-link"])
                    signature.insert(0, nodes.reference("", "", label, internal=True,
                                                        refuri=address(place[0], self.env.docname, place[1])))

    @staticmethod
    @functools.cache
    def places():
        return {name.id: (name.file, name.line) for project in ("adasum", "c") for name in public_names.names(project)}


def pages(app):
    """A page for each file and folder to which something links."""
    known = set().union(*app.env.source_files.values()) if app.env.source_files else set()
    for path in sorted(known):
        if os.path.isdir(path):
            links = "".join(f'<li><a href="{one}.html">{one}</a></li>' for one in files_in(path))
            yield f"source/{path}/index", {"title": path, "body": f"<h1>{path}</h1><ul>{links}</ul>"}, "page.html"
            continue
        text = pathlib.Path(path).read_text()
        lines = app.builder.highlighter.highlight_block(text, language_of(path, text), location=path, linenos="inline",
                                                        lineanchors="L", anchorlinenos=True)
        yield f"source/{path}", {"title": path, "body": f'<h1 class="source-title">{path}</h1>{lines}'}, "page.html"


def language_of(path, text):
    suffix = pathlib.Path(path).suffix
    if text.startswith("#!") and "bash" in text[:30]:
        return "bash"
    return {".hpp": "cpp", ".cpp": "cpp", ".h": "c", ".c": "c", ".cu": "cuda", ".f90": "fortran", ".py": "python",
            ".xml": "xml", ".cmake": "cmake", ".sh": "bash"}.get(suffix, "cmake" if path.endswith("CMakeLists.txt") else "text")


def setup(app):
    app.add_config_value("source_headers", [], "env")
    app.add_transform(LinksToFiles)
    app.add_transform(MentionsInComments)
    app.add_transform(Signatures)
    app.connect("env-before-read-docs",
                lambda app, env, docnames: setattr(env, "source_files", getattr(env, "source_files", {})))
    app.connect("env-purge-doc", lambda app, env, docname: getattr(env, "source_files", {}).pop(docname, None))
    app.connect("html-collect-pages", pages)
    return {"version": "1", "env_version": 1, "parallel_read_safe": False}
