# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the test programs have found: the files in found/, in the form that findings.hpp writes."""

import pathlib

FOUND = pathlib.Path(__file__).parent / "found"


class Table(dict):
    """{row: {column: [word, ...]}}"""

    def columns(self):
        return list(dict.fromkeys(column for cells in self.values() for column in cells))

    def alike(self):
        """[([row, ...], cells)]: rows with the same cells together."""
        groups = []
        for row, cells in self.items():
            for rows, same in groups:
                if same == cells:
                    rows.append(row)
                    break
            else:
                groups.append(([row], cells))
        return groups

    def add(self, other):
        for row, cells in other.items():
            for column, words in cells.items():
                mine = self.setdefault(row, {}).setdefault(column, [])
                mine += [word for word in words if word not in mine]


def read(file):
    """(tables by name, counts) of one program."""
    tables, counts, table, rows = {}, {}, None, []
    for line in file.read_text().splitlines():
        if line.startswith("["):
            table = line[1:-1]
        elif table == "counts":
            what, number = line.rsplit(": ", 1)
            counts[what] = int(number)
        elif not line.startswith("  "):
            rows = line.split(", ")
        else:
            column, words = line[2:].split(": ", 1)
            for row in rows:
                tables.setdefault(table, Table()).setdefault(row, {})[column] = words.split("; ")
    return tables, counts


def read_all():
    """(tables of all programs together, {program: counts})"""
    together, counts = {}, {}
    for file in sorted(FOUND.glob("*.txt")):
        tables, counts[file.stem] = read(file)
        for name, table in tables.items():
            together.setdefault(name, Table()).add(table)
    return together, counts
