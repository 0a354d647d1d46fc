# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks of scripts/docs find what they should find: scripts/docs checks"""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "docs/site"))

import check_links  # noqa: E402
import check_names  # noqa: E402
import check_snippets  # noqa: E402

HEADER = """
namespace adasum {
/// Described, and in the Reference.
void described();
/// Described, and forgotten.
void forgotten();
void silent();
/// A rule.
struct some_rule {
  static constexpr int name = 1;  // its concept says what that is
  int parameter = 0;
};
/// @cond internal
void hidden();
/// @endcond
namespace detail {
void inner();
}
}
"""
FORTRAN = """module adasum
  public :: adasum_one, adasum_two
contains
  subroutine adasum_one(a, ierror)
  subroutine adasum_two(a, b)
"""


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def write(self, **files):
        for name, text in files.items():
            path = pathlib.Path(name.replace("__", "/").replace("_dot_", "."))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def outcome(self, check, *arguments):
        """The check's status, and what it prints."""
        with contextlib.redirect_stdout(io.StringIO()) as text:
            status = check.main(*arguments)
        return status, text.getvalue()

    def test_links(self):
        self.write(site__good_dot_html='<a href="sub/other.html#there">x</a><a href="https://elsewhere/">y</a>',
                   site__sub__other_dot_html='<h1 id="there"></h1><a href="../good.html">x</a>')
        self.assertEqual(self.outcome(check_links, "site")[0], 0)
        self.write(site__bad_dot_html='<a href="sub/other.html#gone">x</a><img src="picture.png"><a href="#nowhere">z</a>')
        status, text = self.outcome(check_links, "site")
        self.assertEqual(status, 1)
        for address in ("sub/other.html#gone", "picture.png", "#nowhere"):
            self.assertIn(address, text)
        self.assertIn("3 broken", text)

    def test_snippets(self):
        self.write(docs__page_dot_md="```sh\nls\n```\n\n* x\n\n  ```cmake\n  message(FATAL_ERROR no)\n  ```\n")
        self.assertEqual(self.outcome(check_snippets), (0, "2 blocks of shell and CMake, 0 cannot be parsed\n"))
        self.write(docs__page_dot_md='```sh\nif true; ls\n```\n```cmake\nmessage("no\n```\n')
        status, text = self.outcome(check_snippets)
        self.assertEqual(status, 1)
        self.assertIn("2 cannot be parsed", text)

    def test_names(self):
        self.write(header_dot_hpp=HEADER, src__fortran__adasum_dot_f90=FORTRAN, src__fortran__adasum_real32_dot_f90="",
                   src__fortran__adasum_reports_dot_f90="",
                   docs__reference__fortran_dot_md="`call adasum_one(a [, ierror])`, `call adasum_two(a)`")
        settings = "QUIET=YES\nGENERATE_XML=YES\nGENERATE_HTML=NO\nGENERATE_LATEX=NO\nEXCLUDE_SYMBOLS=adasum::detail\n"
        for project, pattern in (("adasum", "*.hpp"), ("c", "*.none")):
            pathlib.Path("build/docs/doxygen", project).mkdir(parents=True)
            subprocess.run(["doxygen", "-"], check=True, text=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           input=f"{settings}INPUT=.\nFILE_PATTERNS={pattern}\nOUTPUT_DIRECTORY=build/docs/doxygen/{project}\n")
        ids = {name.full: name.id for name in check_names.names("adasum")}
        self.write(site__docs__reference__all_dot_html="".join(f'<dt id="{ids[name]}">' for name in
                                                               ("adasum::described", "adasum::some_rule")))
        status, text = self.outcome(check_names, "site")
        self.assertEqual(status, 1)
        for problem in ("function adasum::silent() has no comment", "variable adasum::some_rule::parameter has no comment",
                        "function adasum::forgotten() is on no page", "adasum_two(a, b) is not there"):
            self.assertIn(problem, text)
        self.assertIn("2 calls of Fortran, 4 problems", text)


if __name__ == "__main__":
    unittest.main()
