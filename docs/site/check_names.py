# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_names.py FOLDER: each public name of the headers has a comment and is described in the site in FOLDER, and so is each
call of the Fortran module, as it is declared."""

import pathlib
import re
import sys

from public_names import names

# What a rule, space, communicator, schedule, window or pending exchange has because its concept asks for it: core/concepts.hpp
# says what it means, once for all types.
concepts_members = set("""
    name operator() whole_model degree parameters needs
    leaves_out_nonfinite fallbacks allocate measure mix copy fence can_reach
    measure_in_double mix_in_double upload download transfer host_memory event record enqueue_combine measure_on_device
    weigh_on_device mix_on_device add_pieces write allocate_in_order data exchange post reserve enqueue nodes state
    share pending memory
    test wait ranks of same_address_space has_left progress supports_gram_rules
    stages uses_shared_memory leaf_ranks""".split())


def needs_comment(name):
    last = name.full.rpartition("::")[2]
    if name.kind == "define":
        return last.startswith("ADASUM_VERSION") or name.file.endswith("adasum.h") and not last.endswith(("_H", "_API"))
    if name.kind == "typedef" and name.file.endswith("adasum.h"):
        return False  # of a struct that has the same name
    if last.startswith(("~", "operator=")) or name.arguments.endswith(("=delete", "=default")):
        return False
    return name.parent not in ("class", "struct") or last not in concepts_members


def main(site):
    pages = "".join(path.read_text() for path in pathlib.Path(site).glob("docs/reference/*.html"))
    described = set(re.findall(r'id="([^"]+)"', pages))
    found = [name for project in ("adasum", "c") for name in names(project) if needs_comment(name)]
    problems = [f"{name.file}:{name.line}: {name.kind} {name.full}{name.arguments} has no comment" for name in found
                if not name.documented]
    problems += [f"{name.file}:{name.line}: {name.kind} {name.full}{name.arguments} is on no page of the Reference"
                 for name in found if name.documented and name.kind != "enumvalue" and name.id not in described]
    calls = list(calls_of_fortran())
    page = pathlib.Path("docs/reference/fortran.md").read_text()
    problems += [f"docs/reference/fortran.md: {call} is not there, or is declared otherwise" for call in calls
                 if not re.search(rf"`(call )?{re.escape(call)}`", page.replace(" [, ", ", ").replace("]", ""))]
    print("\n".join(problems))
    print(f"{len(found)} names, {len(calls)} calls of Fortran, {len(problems)} problems")
    return 1 if problems or not found or not calls else 0


def calls_of_fortran():
    """As they are called: adasum_plan_wait(plan, report, ierror)."""
    sources = ("adasum.f90", "adasum_real32.f90", "adasum_reports.f90")
    text = "".join(pathlib.Path("src/fortran", name).read_text() for name in sources)
    declared = dict(re.findall(r"^  (?:[\w()]+ )*?(?:subroutine|function) (\w+)(\([^)]*\))", text, re.MULTILINE))
    generic = dict(re.findall(r"^  interface (\w+)\n +module procedure (\w+)", text, re.MULTILINE))
    public = set(re.findall(r"adasum_\w+", " ".join(re.findall(r"^  public :: (.*)$", text, re.MULTILINE))))
    for name in sorted(public):
        if generic.get(name, name) in declared:
            yield name + declared[generic.get(name, name)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
