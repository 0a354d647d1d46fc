# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public names of the headers, as Doxygen has found them (build/docs/doxygen): what is in namespace adasum but not in
detail, nor between @cond internal and @endcond; and what adasum.h has."""

import dataclasses
import pathlib
import re
import xml.etree.ElementTree as xml

folder = pathlib.Path("build/docs/doxygen")


@dataclasses.dataclass(frozen=True)
class Name:
    id: str           # of Doxygen, and in the page that describes it
    full: str         # adasum::rules::mean
    kind: str         # of Doxygen: class, struct, concept, function, variable, typedef, enum, enumvalue, define
    parent: str       # the kind of what it is in: class, struct, namespace, file, enum
    arguments: str    # of a function
    documented: bool
    file: str
    line: int


def names(project):
    """All of them, members too: of project "adasum" (C++) or "c"."""
    for entry in xml.parse(folder / project / "xml/index.xml").getroot():
        kind, name = entry.get("kind"), entry.findtext("name")
        if kind == "file" or re.search(r"\bdetail\b|<", name) or not name.startswith("adasum"):
            continue  # a specialisation is described where its template is
        found = xml.parse(folder / project / "xml" / (entry.get("refid") + ".xml")).getroot().find("compounddef")
        if found.get("prot") == "private":
            continue
        if kind != "namespace":
            yield made(found, name, kind, "namespace")
        for member in found.iter("memberdef"):
            if member.get("prot") == "public" and member.get("kind") != "friend":
                yield from members(member, name, kind)
    for page in (folder / project / "xml").glob("*_8h*.xml"):
        for member in xml.parse(page).getroot().iter("memberdef"):
            if member.get("kind") == "define" or project == "c":
                yield from members(member, "", "file")


def members(member, scope, parent):
    full = (scope and scope + "::") + member.findtext("name")
    yield made(member, full, member.get("kind"), parent)
    for value in member.findall("enumvalue"):
        yield made(value, f"{full}::{value.findtext('name')}", "enumvalue", "enum", member)


def made(element, full, kind, parent, located=None):
    place = (element if located is None else located).find("location")
    text = "".join("".join(one.itertext()) for one in element if one.tag in ("briefdescription", "detaileddescription"))
    return Name(element.get("id"), full, kind, parent, element.findtext("argsstring") or "", bool(text.strip()),
                place.get("file"), int(place.get("line")))
