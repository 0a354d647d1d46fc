# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the test programs have found: the files in found/, in the form that findings.hpp writes."""

import pathlib

FOUND = pathlib.Path(__file__).parent / "found"


class Table(dict):
    """{row: {column: [word, ...]}}"""

    def add(self, row, column, words):
        mine = self.setdefault(row, {}).setdefault(column, [])
        mine += [word for word in words if word not in mine]

    def turned(self):
        """With columns for rows."""
        other = Table()
        for row, cells in self.items():
            for column, words in cells.items():
                other.add(column, row, words)
        return other

    def alike(self):
        """[([row, ...], cells)]: rows with the same cells together."""
        groups = []
        for row, cells in self.items():
            same = next((rows for rows, others in groups if others == cells), None)
            if same is None:
                groups.append(([row], cells))
            else:
                same.append(row)
        return groups


def read_all():
    """(tables of all programs together, {program: {what: how often}})"""
    tables, counts = {}, {}
    first = ["local", "threads"]  # which have all rows and columns, in an order for readers
    for file in sorted(FOUND.glob("*.txt"), key=lambda file: (file.stem not in first, file.stem)):
        table, rows = None, []
        for line in file.read_text().splitlines():
            if line.startswith("["):
                table = line[1:-1]
            elif table == "counts":
                what, number = line.rsplit(": ", 1)
                counts.setdefault(file.stem, {})[what] = int(number)
            elif not line.startswith("  "):
                rows = line.split(", ")
            else:
                column, words = line[2:].split(": ", 1)
                for row in rows:
                    tables.setdefault(table, Table()).add(row, column, words.split("; "))
    return tables, counts
